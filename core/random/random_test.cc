#include "core/random/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "core/random/secure_random.h"
#include "core/random/testing/fixed_random.h"
#include "core/random/testing/statistics.h"

namespace dpar {

class SecureRandomPeer {
 public:
  static SecureRandom Make(const std::array<uint8_t, 48>& seed) { return SecureRandom(seed); }
};

namespace {

using ::dpar::testing::ChiSquareTail;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::kKolmogorovLimit;
using ::dpar::testing::KolmogorovStatistic;
using ::dpar::testing::kUnlikely;
using ::dpar::testing::ScriptedRandom;

std::vector<uint64_t> Words(RandomSource& random, size_t count) {
  std::vector<uint64_t> words(count);
  std::generate(words.begin(), words.end(), [&] { return UniformBits(random); });
  return words;
}

size_t Distinct(const std::vector<std::vector<uint64_t>>& streams) {
  std::set<uint64_t> words;
  for (const std::vector<uint64_t>& stream : streams) {
    words.insert(stream.begin(), stream.end());
  }
  return words.size();
}

TEST(UniformReal, IsNeverZeroOrOne) {
  ScriptedRandom random({0, ~uint64_t{0}});
  EXPECT_EQ(UniformReal(random), 0x1p-53);
  EXPECT_EQ(UniformReal(random), 1.0 - 0x1p-53);
}

TEST(UniformReal, IsUniform) {
  FixedRandom random(1);
  std::vector<double> sample(200'000);
  std::generate(sample.begin(), sample.end(), [&] { return UniformReal(random); });
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(sample, [](double x) { return x; }), kKolmogorovLimit);
}

TEST(UniformBelow, RejectsTheIncompleteCycle) {
  // 2^64 mod 3 = 1, so the word 0 is rejected and the next one decides.
  ScriptedRandom random({0, 5});
  EXPECT_EQ(UniformBelow(random, 3), 2U);
}

TEST(UniformBelow, OneIsAlwaysZero) {
  ScriptedRandom random({42});
  EXPECT_EQ(UniformBelow(random, 1), 0U);
}

TEST(UniformBelow, APowerOfTwoRejectsNothing) {
  ScriptedRandom random({0, ~uint64_t{0}});
  EXPECT_EQ(UniformBelow(random, uint64_t{1} << 63U), 0U);
  EXPECT_EQ(UniformBelow(random, uint64_t{1} << 63U), (uint64_t{1} << 63U) - 1);
}

TEST(UniformBelow, TheLargestBoundRejectsOneWord) {
  ScriptedRandom random({0, ~uint64_t{0}, 1});
  EXPECT_EQ(UniformBelow(random, ~uint64_t{0}), 0U);
  EXPECT_EQ(UniformBelow(random, ~uint64_t{0}), 1U);
}

TEST(UniformBelow, HitsEveryValueEquallyOften) {
  FixedRandom random(2);
  std::array<int64_t, 7> counts{};
  for (int i = 0; i < 700'000; ++i) {
    ++counts[UniformBelow(random, 7)];
  }
  // False-alarm rate 1e-6.
  EXPECT_GT(ChiSquareTail(counts), kUnlikely);
}

TEST(FixedRandom, SplitsAreReproducible) {
  FixedRandom first(3);
  FixedRandom second(3);
  const std::unique_ptr<RandomSource> first_child = first.Split();
  const std::unique_ptr<RandomSource> second_child = second.Split();
  EXPECT_EQ(Words(*first_child, 100), Words(*second_child, 100));
  EXPECT_EQ(Words(first, 100), Words(second, 100));
}

TEST(FixedRandom, SplitsShareNoWordWithEachOtherOrTheirParent) {
  FixedRandom parent(4);
  const std::vector<uint64_t> before = Words(parent, 1000);
  const std::unique_ptr<RandomSource> first = parent.Split();
  const std::unique_ptr<RandomSource> second = parent.Split();
  const std::unique_ptr<RandomSource> grandchild = first->Split();
  // Twelve million pairs of 64-bit words: false-alarm rate 7e-13.
  EXPECT_EQ(
      Distinct({before, Words(parent, 1000), Words(*first, 1000), Words(*second, 1000), Words(*grandchild, 1000)}),
      5000U);
}

TEST(FixedRandom, ASplitDoesNotDependOnWhenItIsRead) {
  FixedRandom early(5);
  FixedRandom late(5);
  const std::unique_ptr<RandomSource> early_child = early.Split();
  const std::unique_ptr<RandomSource> late_child = late.Split();
  const std::vector<uint64_t> expected = Words(*early_child, 10);
  Words(late, 1000);
  EXPECT_EQ(Words(*late_child, 10), expected);
}

TEST(SecureRandom, TwoSourcesAndTwoCallsDiffer) {
  SecureRandom first;
  SecureRandom second;
  EXPECT_EQ(Distinct({Words(first, 1000), Words(second, 1000)}), 2000U);
}

TEST(SecureRandom, SplitsShareNoWordWithEachOtherOrTheirParent) {
  SecureRandom parent;
  const std::vector<uint64_t> before = Words(parent, 1000);
  const std::unique_ptr<RandomSource> first = parent.Split();
  const std::unique_ptr<RandomSource> second = parent.Split();
  const std::unique_ptr<RandomSource> grandchild = first->Split();
  // False-alarm rate 7e-13.
  EXPECT_EQ(
      Distinct({before, Words(parent, 1000), Words(*first, 1000), Words(*second, 1000), Words(*grandchild, 1000)}),
      5000U);
}

TEST(SecureRandom, ASplitOutlivesItsParent) {
  auto parent = std::make_unique<SecureRandom>();
  const std::unique_ptr<RandomSource> child = parent->Split();
  const std::vector<uint64_t> before = Words(*parent, 1000);
  parent.reset();
  EXPECT_EQ(Distinct({before, Words(*child, 1000)}), 2000U);
}

TEST(SecureRandom, FillsEveryByteOfAnyLength) {
  SecureRandom random;
  constexpr int kFills = 64;
  // Around what is served from the buffer and what is not.
  for (const size_t size : {1U, 7U, 8U, 4095U, 4096U, 4097U, 8191U, 12'289U}) {
    std::vector<uint8_t> seen(size + 1);
    for (int i = 0; i < kFills; ++i) {
      std::vector<uint8_t> bytes(size + 1);
      random.Fill(std::span(bytes).first(size));
      std::transform(bytes.begin(), bytes.end(), seen.begin(), seen.begin(),
                     [](uint8_t a, uint8_t b) { return static_cast<uint8_t>(a | b); });
    }
    // A byte that is 0 sixty-four times has a probability of 256^-64.
    EXPECT_EQ(std::count(seen.begin(), seen.end() - 1, 0), 0) << size;
    EXPECT_EQ(seen.back(), 0) << size;
  }
}

TEST(SecureRandom, NothingAskedNothingWritten) {
  SecureRandom random;
  std::array<uint8_t, 1> untouched = {42};
  random.Fill(std::span(untouched).first(0));
  EXPECT_EQ(untouched[0], 42);
}

TEST(SecureRandom, LargeRequestsAcrossKeyChangesAreUniform) {
  SecureRandom random;
  std::vector<uint8_t> bytes((size_t{33} << 20U) + 13);
  random.Fill(bytes);
  std::array<int64_t, 256> counts{};
  for (const uint8_t byte : bytes) {
    ++counts[byte];
  }
  // This source has no seed, so it really is a false alarm once in 10^9 runs.
  EXPECT_GT(ChiSquareTail(counts), 1e-9);
}

// The next `count` bytes under this key and counter, which it moves on.
class ReferenceCipher {
 public:
  explicit ReferenceCipher(const std::array<uint8_t, 48>& seed) : cipher_(EVP_CIPHER_CTX_new()) {
    EXPECT_EQ(EVP_EncryptInit_ex(cipher_, EVP_aes_256_ctr(), nullptr, seed.data(), seed.data() + 32), 1);
  }
  ReferenceCipher(const ReferenceCipher&) = delete;
  ReferenceCipher& operator=(const ReferenceCipher&) = delete;
  ~ReferenceCipher() { EVP_CIPHER_CTX_free(cipher_); }

  std::vector<uint8_t> Next(size_t count) {
    std::vector<uint8_t> bytes(count, 0);
    int written = 0;
    EXPECT_EQ(EVP_EncryptUpdate(cipher_, bytes.data(), &written, bytes.data(), static_cast<int>(count)), 1);
    return bytes;
  }

 private:
  EVP_CIPHER_CTX* cipher_;
};

TEST(SecureRandom, IsAesInCounterModeAndReplacesItsKeyByItsOwnKeystream) {
  constexpr size_t kBytesPerKey = size_t{16} << 20U;
  std::array<uint8_t, 48> seed{};
  std::iota(seed.begin(), seed.end(), uint8_t{1});
  SecureRandom random = SecureRandomPeer::Make(seed);
  ReferenceCipher first(seed);
  std::vector<uint8_t> drawn(kBytesPerKey);
  random.Fill(drawn);
  EXPECT_EQ(drawn, first.Next(kBytesPerKey));
  const std::vector<uint8_t> next_seed = first.Next(seed.size());
  std::copy(next_seed.begin(), next_seed.end(), seed.begin());
  ReferenceCipher second(seed);
  drawn.resize(10'000);
  random.Fill(drawn);
  EXPECT_EQ(drawn, second.Next(10'000));
}

// The reference is the openssl command: SHA-384 of the label and the seed, and AES-256-CTR of zeros under it.
TEST(ReproducibleRandom, IsTheStreamThatAnybodyCanDeriveFromTheSeed) {
  std::array<uint8_t, 16> drawn{};
  ReproducibleRandom(0x012A)->Fill(drawn);
  EXPECT_THAT(drawn, ::testing::ElementsAre(0xD2, 0x1F, 0x32, 0xBD, 0x56, 0x48, 0x48, 0x33, 0x61, 0x6B, 0x5B, 0xE6,
                                            0x84, 0xB3, 0xCF, 0xE4));
  std::array<uint8_t, 16> other{};
  ReproducibleRandom(0x012B)->Fill(other);
  EXPECT_NE(drawn, other);
}

TEST(SecureRandom, RepeatsNoBlockOfTheCipherInThreeKeys) {
  using Block = std::array<uint64_t, 2>;
  SecureRandom random;
  std::vector<Block> blocks((size_t{34} << 20U) / sizeof(Block));
  random.Fill({reinterpret_cast<uint8_t*>(blocks.data()), blocks.size() * sizeof(Block)});
  std::sort(blocks.begin(), blocks.end());
  // Two million blocks of 128 bits: false-alarm rate 1e-26.
  EXPECT_EQ(std::adjacent_find(blocks.begin(), blocks.end()), blocks.end());
}

}  // namespace
}  // namespace dpar
