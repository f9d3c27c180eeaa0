#include "core/random/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <set>
#include <vector>

#include "core/random/secure_random.h"
#include "core/random/testing/fixed_random.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;

// A source that hands out what it was given, for exact values at the edges.
class ScriptedRandom final : public RandomSource {
 public:
  explicit ScriptedRandom(std::vector<uint64_t> words) : words_(std::move(words)) {}

  void Fill(std::span<uint8_t> bytes) override {
    ASSERT_EQ(bytes.size() % 8, 0U);
    for (size_t i = 0; i < bytes.size(); i += 8) {
      const uint64_t word = words_.at(next_++);
      std::copy_n(reinterpret_cast<const uint8_t*>(&word), 8, bytes.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

 private:
  std::vector<uint64_t> words_;
  size_t next_ = 0;
};

double NormalCdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// The Kolmogorov-Smirnov statistic of a sorted sample, times the square root of its size.
template <typename Cdf>
double ScaledKolmogorov(std::vector<double> sample, Cdf cdf) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<double>(sample.size());
  double largest = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    const double p = cdf(sample[i]);
    largest =
        std::max({largest, std::abs(p - static_cast<double>(i) / n), std::abs(p - static_cast<double>(i + 1) / n)});
  }
  return largest * std::sqrt(n);
}

// P(scaled statistic > 2.5) < 2 exp(-2 * 2.5^2) = 7.5e-6: the false-alarm rate had the seed not been fixed.
constexpr double kKolmogorovLimit = 2.5;

TEST(UniformReal, IsNeverZeroOrOne) {
  ScriptedRandom random({0, ~uint64_t{0}});
  EXPECT_EQ(UniformReal(random), 0x1p-53);
  EXPECT_EQ(UniformReal(random), 1.0 - 0x1p-53);
}

TEST(UniformReal, IsUniform) {
  FixedRandom random(1);
  std::vector<double> sample(200'000);
  std::generate(sample.begin(), sample.end(), [&] { return UniformReal(random); });
  EXPECT_LT(ScaledKolmogorov(sample, [](double x) { return x; }), kKolmogorovLimit);
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

TEST(UniformBelow, HitsEveryValueEquallyOften) {
  FixedRandom random(2);
  std::array<int, 7> counts{};
  constexpr int kDraws = 700'000;
  for (int i = 0; i < kDraws; ++i) {
    ++counts[UniformBelow(random, 7)];
  }
  double chi_square = 0;
  for (const int count : counts) {
    chi_square += std::pow(count - kDraws / 7.0, 2) / (kDraws / 7.0);
  }
  EXPECT_LT(chi_square, 35.9);  // 6 degrees of freedom, false-alarm rate 3e-6
}

TEST(FillGaussian, IsStandardNormal) {
  FixedRandom random(3);
  std::vector<double> sample(400'001);  // odd: the last pair is cut
  FillGaussian(random, sample);
  EXPECT_LT(ScaledKolmogorov(sample, NormalCdf), kKolmogorovLimit);
}

TEST(FillGaussian, HasTheNormalsTails) {
  FixedRandom random(4);
  constexpr size_t kDraws = 20'000'000;
  std::vector<double> block(100'000);
  std::array<double, 3> beyond{};
  constexpr std::array<double, 3> kBounds = {3, 4, 5};
  for (size_t done = 0; done < kDraws; done += block.size()) {
    FillGaussian(random, block);
    for (size_t i = 0; i < kBounds.size(); ++i) {
      beyond[i] += static_cast<double>(
          std::count_if(block.begin(), block.end(), [&](double z) { return std::abs(z) > kBounds[i]; }));
    }
  }
  for (size_t i = 0; i < kBounds.size(); ++i) {
    const double expected = 2 * NormalCdf(-kBounds[i]) * kDraws;
    // Five standard deviations of a Poisson count: false-alarm rate below 1e-5 even for the 11 expected beyond 5.
    EXPECT_NEAR(beyond[i], expected, 5 * std::sqrt(expected)) << "beyond " << kBounds[i];
  }
}

TEST(FillGaussian, ReachesAtMostTheStatedRadius) {
  ScriptedRandom random({0, 0});
  std::array<double, 1> out{};
  FillGaussian(random, out);
  EXPECT_NEAR(out[0], std::sqrt(2 * 64 * std::numbers::ln2), 1e-12);
  EXPECT_LT(out[0], 9.42);
}

TEST(FillGaussian, RadiiInTheTailComeFromEveryBit) {
  ScriptedRandom random({1, 0});
  std::array<double, 1> out{};
  FillGaussian(random, out);
  EXPECT_NEAR(out[0], std::sqrt(2 * 63 * std::numbers::ln2), 1e-12);
}

TEST(FillGaussian, CoordinatesAreUncorrelated) {
  FixedRandom random(5);
  std::vector<double> sample(1'000'000);
  FillGaussian(random, sample);
  for (const size_t lag : {1U, 2U}) {
    double sum = 0;
    for (size_t i = 0; i + lag < sample.size(); ++i) {
      sum += sample[i] * sample[i + lag];
    }
    EXPECT_LT(std::abs(sum) / std::sqrt(static_cast<double>(sample.size())), 5) << "lag " << lag;
  }
}

TEST(SecureRandom, TwoSourcesAndTwoCallsDiffer) {
  SecureRandom first;
  SecureRandom second;
  std::set<uint64_t> words;
  for (int i = 0; i < 1000; ++i) {
    words.insert(UniformBits(first));
    words.insert(UniformBits(second));
  }
  EXPECT_EQ(words.size(), 2000U);
}

TEST(SecureRandom, LargeRequestsAcrossKeyChangesAreUniform) {
  SecureRandom random;
  std::vector<uint8_t> bytes((size_t{33} << 20U) + 13);
  random.Fill(bytes);
  std::array<double, 256> counts{};
  for (const uint8_t byte : bytes) {
    ++counts[byte];
  }
  const double expected = static_cast<double>(bytes.size()) / 256;
  double chi_square = 0;
  for (const double count : counts) {
    chi_square += std::pow(count - expected, 2) / expected;
  }
  EXPECT_LT(chi_square, 255 + 7 * std::sqrt(2 * 255.0));  // false-alarm rate below 1e-9
}

TEST(SecureRandom, NeverRepeatsABlockAcrossAKeyChange) {
  SecureRandom random;
  std::set<uint64_t> words;
  constexpr int kBlocks = 20;
  std::vector<uint8_t> skip((size_t{1} << 20U) - 8);
  for (int i = 0; i < kBlocks; ++i) {
    words.insert(UniformBits(random));
    random.Fill(skip);
  }
  EXPECT_EQ(words.size(), static_cast<size_t>(kBlocks));
}

}  // namespace
}  // namespace dpar
