#include "core/random/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/random/testing/fixed_random.h"
#include "core/random/testing/plain_noise.h"
#include "core/random/testing/statistics.h"
#include "core/random/vector_math.h"

namespace dpar {
namespace {

using ::dpar::testing::ChiSquareTail;
using ::dpar::testing::ConstantRandom;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::kKolmogorovLimit;
using ::dpar::testing::KolmogorovStatistic;
using ::dpar::testing::kUnlikely;
using ::dpar::testing::NormalCdf;
using ::dpar::testing::NormalUpperQuantile;
using ::dpar::testing::PoissonTail;
using ::dpar::testing::ScriptedRandom;
using std::numbers::ln2;

constexpr uint64_t kAllOnes = ~uint64_t{0};

// Steps fine enough to be taken for real numbers.
constexpr double kFine = 0x1p24;
template <void (*kFill)(RandomSource& random, double steps_per_unit, std::span<int64_t> out)>
void FillFine(RandomSource& random, std::span<double> out) {
  std::vector<int64_t> steps(out.size());
  kFill(random, kFine, steps);
  std::transform(steps.begin(), steps.end(), out.begin(), [](int64_t n) { return static_cast<double>(n) / kFine; });
}

struct Sampler {
  const char* name;
  void (*fill_steps)(RandomSource& random, double steps_per_unit, std::span<int64_t> out);
  void (*fill)(RandomSource& random, std::span<double> out);
  double (*cdf)(double x);
  double (*upper)(double p);  // exceeded with probability p
};

constexpr Sampler kGaussian = {"Gaussian", FillGaussianSteps, FillFine<FillGaussianSteps>, NormalCdf,
                               [](double p) { return NormalUpperQuantile(p); }};
constexpr Sampler kLaplace = {"Laplace", FillLaplaceSteps, FillFine<FillLaplaceSteps>,
                              [](double x) { return x < 0 ? std::exp(x) / 2 : 1 - std::exp(-x) / 2; },
                              [](double p) { return -std::log(2 * p); }};

std::string NameOf(const ::testing::TestParamInfo<Sampler>& sampler) { return sampler.param.name; }

class EverySampler : public ::testing::TestWithParam<Sampler> {};
INSTANTIATE_TEST_SUITE_P(Noise, EverySampler, ::testing::Values(kGaussian, kLaplace), NameOf);

TEST_P(EverySampler, HasItsDistribution) {
  FixedRandom random(1);
  std::vector<double> sample(400'001);  // odd: the last pair is cut
  GetParam().fill(random, sample);
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(sample, GetParam().cdf), kKolmogorovLimit);
}

TEST_P(EverySampler, HasItsDistributionInFillsOfOne) {
  FixedRandom random(2);
  std::vector<double> sample(100'000);
  for (double& value : sample) {
    GetParam().fill(random, {&value, 1});
  }
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(sample, GetParam().cdf), kKolmogorovLimit);
}

TEST_P(EverySampler, HasItsTails) {
  constexpr int64_t kDraws = 30'000'000;
  constexpr std::array<double, 4> kTails = {1e-3, 1e-4, 1e-5, 1e-6};
  std::array<double, kTails.size()> upper{};
  std::transform(kTails.begin(), kTails.end(), upper.begin(), GetParam().upper);
  FixedRandom random(3);
  std::vector<double> block(100'000);
  std::array<int64_t, kTails.size()> above{};
  std::array<int64_t, kTails.size()> below{};
  for (int64_t done = 0; done < kDraws; done += static_cast<int64_t>(block.size())) {
    GetParam().fill(random, block);
    for (const double value : block) {
      for (size_t i = 0; i < kTails.size() && value > upper[i]; ++i) {
        ++above[i];
      }
      for (size_t i = 0; i < kTails.size() && value < -upper[i]; ++i) {
        ++below[i];
      }
    }
  }
  // False-alarm rate 2e-6 each, sixteen in a million together; 30 draws are expected in the furthest tail.
  for (size_t i = 0; i < kTails.size(); ++i) {
    EXPECT_GT(PoissonTail(above[i], kTails[i] * kDraws), kUnlikely) << above[i] << " above " << upper[i];
    EXPECT_GT(PoissonTail(below[i], kTails[i] * kDraws), kUnlikely) << below[i] << " below " << -upper[i];
  }
}

// Cells of the lattice that are far wider than any rounding, against their probabilities.
TEST_P(EverySampler, GivesEveryCellItsProbability) {
  constexpr int64_t kDraws = 4'000'000;
  for (const double scale : {0.2, 1.0, 7.3}) {
    FixedRandom random(4);
    std::vector<int64_t> steps(kDraws);
    GetParam().fill_steps(random, scale, steps);
    const auto furthest = static_cast<int64_t>(std::floor(3 * scale));
    std::vector<int64_t> counts(static_cast<size_t>(2 * furthest + 3));
    for (const int64_t n : steps) {
      ++counts[static_cast<size_t>(std::clamp(n, -furthest - 1, furthest + 1) + furthest + 1)];
    }
    std::vector<double> expected;
    double below = 0;
    for (int64_t n = -furthest - 1; n <= furthest; ++n) {
      const double up_to = GetParam().cdf((static_cast<double>(n) + 0.5) / scale);
      expected.push_back(kDraws * (up_to - below));
      below = up_to;
    }
    expected.push_back(kDraws * (1 - below));
    // False-alarm rate 1e-6.
    EXPECT_GT(ChiSquareTail(counts, expected), kUnlikely) << scale;
  }
}

TEST_P(EverySampler, FillsExactlyWhatItIsAskedTo) {
  constexpr int64_t kUntouched = -1;
  for (const size_t size : {1U, 2U, 3U, 511U, 512U, 513U, 1023U, 1024U, 1025U, 2047U, 2048U, 2049U}) {
    FixedRandom random(4);
    std::vector<int64_t> out(size + 1, kUntouched);
    GetParam().fill_steps(random, 0x1p50, std::span(out).first(size));
    EXPECT_EQ(out.back(), kUntouched) << size;
    out.pop_back();
    // Two equal draws in 2^11 have a probability of about 2^-30.
    EXPECT_EQ(std::set<int64_t>(out.begin(), out.end()).size(), size);
  }
}

TEST_P(EverySampler, DrawsNothingForNothing) {
  ScriptedRandom random({});
  GetParam().fill(random, {});
}

TEST_P(EverySampler, HasIndependentNeighbours) {
  FixedRandom random(5);
  std::vector<double> sample(1'000'000);
  GetParam().fill(random, sample);
  // Scores rather than values, so that one limit fits every distribution: uniform, and uniform in how far out it is.
  std::vector<double> place(sample.size());
  std::vector<double> distance(sample.size());
  for (size_t i = 0; i < sample.size(); ++i) {
    place[i] = std::sqrt(12) * (GetParam().cdf(sample[i]) - 0.5);
    distance[i] = std::sqrt(5) / 2 * (place[i] * place[i] - 1);
  }
  // 512 apart are the two halves of a Gaussian pair.
  for (const size_t lag : {1U, 2U, 512U, 1023U, 1024U}) {
    double places = 0;
    double distances = 0;
    for (size_t i = 0; i + lag < sample.size(); ++i) {
      places += place[i] * place[i + lag];
      distances += distance[i] * distance[i + lag];
    }
    // Five standard errors: false-alarm rate 5.7e-7 each, six in a million together.
    EXPECT_LT(std::abs(places) / std::sqrt(sample.size()), 5) << "lag " << lag;
    EXPECT_LT(std::abs(distances) / std::sqrt(sample.size()), 5) << "lag " << lag;
  }
}

// The way through doubles against intervals, and both ends of what the bits to come can make of a draw. Words with many
// leading zeros are the tail, with many leading ones the origin.
constexpr std::array<uint8_t, 3> kEnds = {0x00, 0x5A, 0xFF};
uint64_t RaggedWord(RandomSource& random, int round) {
  const uint64_t word = UniformBits(random) >> (static_cast<unsigned>(round) % 24U);
  return round % 48 < 24 ? word : ~word;
}

TEST(FillGaussianSteps, DecidesInDoublesOnlyWhatAnyFurtherBitsConfirm) {
  constexpr int kPairs = 20'000;
  // At 2^46 the cells are about as wide as the doubles' errors, so that an error above its bound would show.
  for (const double scale : {0.7, 0x1.8p24, 0x1p30, 0x1p44, 0x1p46}) {
    FixedRandom words(6);
    int decided = 0;
    for (int round = 0; round < kPairs; ++round) {
      const uint64_t radius = RaggedWord(words, round);
      const uint64_t turn = RaggedWord(words, round / 48) ^ (UniformBits(words) << 52U);
      std::array<int64_t, 2> steps{};
      ScriptedRandom only({radius, turn});
      try {
        FillGaussianSteps(only, scale, steps);
      } catch (const std::out_of_range&) {
        continue;  // it asked for more bits
      }
      ++decided;
      for (const uint8_t byte : kEnds) {
        ConstantRandom more(byte);
        ASSERT_EQ(GaussianPairSteps(LazyUniform(radius), LazyTurn(turn), scale, more), steps)
            << radius << " " << turn << " at " << scale;
      }
    }
    EXPECT_GT(decided, scale < 0x1p44 ? kPairs / 2 : kPairs / 50) << scale;
    EXPECT_LT(decided, kPairs) << scale;
  }
}

TEST(FillLaplaceSteps, DecidesInDoublesOnlyWhatAnyFurtherBitsConfirm) {
  constexpr int kDraws = 20'000;
  for (const double scale : {0.7, 0x1.8p24, 0x1p30, 0x1p44, 0x1p46}) {
    FixedRandom words(7);
    int decided = 0;
    for (int round = 0; round < kDraws; ++round) {
      const uint64_t word = RaggedWord(words, round);
      std::array<int64_t, 1> steps{};
      ScriptedRandom only({word});
      try {
        FillLaplaceSteps(only, scale, steps);
      } catch (const std::out_of_range&) {
        continue;  // it asked for more bits
      }
      ++decided;
      for (const uint8_t byte : kEnds) {
        ConstantRandom more(byte);
        ASSERT_EQ(LaplaceSteps(LazyUniform(word >> 1U, 63), (word & 1U) != 0, scale, more), steps[0])
            << word << " at " << scale;
      }
    }
    EXPECT_GT(decided, scale < 0x1p44 ? kDraws / 2 : kDraws / 50) << scale;
  }
}

TEST(FillGaussianSteps, HardlyEverNeedsMoreBits) {
  // Counts the calls: one for each block's words, and more for what they leave open.
  class Counting final : public RandomSource {
   public:
    void Fill(std::span<uint8_t> bytes) override {
      words += static_cast<int64_t>(bytes.size() / sizeof(uint64_t));
      random_.Fill(bytes);
    }
    std::unique_ptr<RandomSource> Split() override { return random_.Split(); }

    int64_t words = 0;

   private:
    FixedRandom random_{8};
  };
  constexpr int64_t kDraws = 20'000'000;
  Counting random;
  std::vector<int64_t> block(100'000);
  for (int64_t done = 0; done < kDraws; done += static_cast<int64_t>(block.size())) {
    FillGaussianSteps(random, 0x1.8p24, block);
  }
  // A pair goes on for its radius, beyond 5, with probability e^-12.5, and for a border with about 2^-21: 42 of ten
  // million are expected, at three words each.
  const int64_t more = random.words - kDraws;
  EXPECT_GT(more, 3 * 20);
  EXPECT_LT(more, 3 * 80);
}

// Few leading bits, so that what they leave open is wide: a sampler that stops there misses cells of the lattice, and
// one that goes on gives each its probability.
constexpr unsigned kFewBits = 4;
constexpr uint64_t kFewValues = uint64_t{1} << kFewBits;
constexpr double kFewScale = 128;
constexpr int64_t kFurthest = 320;  // 2.5 standard deviations

// Whether each cell from -kFurthest to kFurthest came.
size_t MissingCells(const std::map<int64_t, int64_t>& counts) {
  size_t missing = 0;
  for (int64_t n = -kFurthest; n <= kFurthest; ++n) {
    missing += counts.contains(n) ? 0U : 1U;
  }
  return missing;
}

TEST(PlainNoise, MissesCellsThatItsBitsDoNotReach) {
  std::map<int64_t, int64_t> counts;
  for (uint64_t radius = 0; radius < kFewValues; ++radius) {
    // The highest two bits turn by quarters, and the highest of the 52 lowest place within one.
    for (uint64_t turn = 0; turn < 8 * kFewValues; ++turn) {
      ScriptedRandom random({radius << (64U - kFewBits), (turn << 62U) | ((turn >> 2U) << (51U - kFewBits))});
      std::array<double, 2> pair{};
      testing::FillGaussian(random, pair);
      ++counts[std::llrint(kFewScale * pair[0])];
      ++counts[std::llrint(kFewScale * pair[1])];
    }
  }
  EXPECT_GT(MissingCells(counts), 190U) << "of 641";
}

TEST(GaussianPairSteps, GivesEveryCellItsProbabilityFromAnyNumberOfFirstBits) {
  constexpr int64_t kPairs = 150'000;
  FixedRandom random(9);
  std::map<int64_t, int64_t> counts;
  for (int64_t i = 0; i < kPairs; ++i) {
    const LazyUniform radius(UniformBelow(random, kFewValues), static_cast<int>(kFewBits));
    const LazyTurn turn(UniformBelow(random, 8),
                        LazyUniform(UniformBelow(random, kFewValues), static_cast<int>(kFewBits)));
    for (const int64_t n : GaussianPairSteps(radius, turn, kFewScale, random)) {
      ++counts[std::clamp(n, -kFurthest - 1, kFurthest + 1)];
    }
  }
  EXPECT_EQ(MissingCells(counts), 0U);
  std::vector<int64_t> listed;
  std::vector<double> expected;
  for (int64_t n = -kFurthest - 1; n <= kFurthest + 1; ++n) {
    listed.push_back(counts[n]);
    const double from = n < -kFurthest ? 0 : NormalCdf((static_cast<double>(n) - 0.5) / kFewScale);
    const double to = n > kFurthest ? 1 : NormalCdf((static_cast<double>(n) + 0.5) / kFewScale);
    expected.push_back(2 * kPairs * (to - from));
  }
  // False-alarm rate 1e-6.
  EXPECT_GT(ChiSquareTail(listed, expected), kUnlikely);
}

TEST(LaplaceSteps, GivesEveryCellItsProbabilityFromAnyNumberOfFirstBits) {
  constexpr int64_t kDraws = 150'000;
  constexpr double kScale = 16;
  constexpr int64_t kLast = 64;  // four scales
  FixedRandom random(10);
  std::vector<int64_t> counts(2 * kLast + 3);
  for (int64_t i = 0; i < kDraws; ++i) {
    const LazyUniform magnitude(UniformBelow(random, 4), 2);
    const int64_t n = LaplaceSteps(magnitude, UniformBelow(random, 2) == 1, kScale, random);
    ++counts[static_cast<size_t>(std::clamp(n, -kLast - 1, kLast + 1) + kLast + 1)];
  }
  std::vector<double> expected;
  double below = 0;
  for (int64_t n = -kLast - 1; n <= kLast; ++n) {
    const double up_to = kLaplace.cdf((static_cast<double>(n) + 0.5) / kScale);
    expected.push_back(kDraws * (up_to - below));
    below = up_to;
  }
  expected.push_back(kDraws * (1 - below));
  // False-alarm rate 1e-6.
  EXPECT_GT(ChiSquareTail(counts, expected), kUnlikely);
}

// Beyond what 64 bits can tell.
TEST(GaussianPairSteps, TheTailGoesOnWhereTheFirstWordEnds) {
  constexpr size_t kPairs = 20'000;
  FixedRandom random(11);
  std::vector<double> beyond(kPairs);
  for (double& excess : beyond) {
    const auto pair = GaussianPairSteps(LazyUniform(0), LazyTurn(UniformBits(random)), kFine, random);
    const double x = static_cast<double>(pair[0]) / kFine;
    const double y = static_cast<double>(pair[1]) / kFine;
    excess = (x * x + y * y) / 2 - 64 * ln2;
  }
  EXPECT_GT(*std::min_element(beyond.begin(), beyond.end()), -1e-5);
  // Half the square of the radius is exponential, and so is what it has beyond 64 log 2. False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(beyond, [](double x) { return -std::expm1(-x); }), kKolmogorovLimit);
}

TEST(FillGaussianSteps, FurtherBitsDecideARadiusBeyondTheFirstWord) {
  // U = 2^-128 (1 + 2^-64 ...): a radius of sqrt(256 log 2) = 13.3 at an angle of 0, in quarters.
  ScriptedRandom random({0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0});
  std::array<int64_t, 2> steps{};
  FillGaussianSteps(random, 4, steps);
  EXPECT_EQ(steps[0], std::llround(4 * std::sqrt(256 * ln2)));
  EXPECT_EQ(steps[1], 0);
}

constexpr uint64_t kHalf = uint64_t{1} << 63U;

std::array<int64_t, 2> StepsOf(uint64_t radius, uint64_t turn) {
  ScriptedRandom random({radius, turn});
  std::array<int64_t, 2> steps{};
  FillGaussianSteps(random, 100, steps);
  return steps;
}

TEST(FillGaussianSteps, TheHighestBitsAreSignsAndAnExchange) {
  // The radius of U = 1/2 is 1.17741, at an angle of pi/16.
  constexpr uint64_t kQuarterOfAnEighth = uint64_t{1} << 50U;
  constexpr int64_t kCosine = 115;
  constexpr int64_t kSine = 23;
  const auto turned = [](uint64_t eighth) { return StepsOf(kHalf, kQuarterOfAnEighth | (eighth << 61U)); };
  using Pair = std::array<int64_t, 2>;
  EXPECT_EQ(turned(0), (Pair{kCosine, kSine}));
  EXPECT_EQ(turned(4), (Pair{-kCosine, kSine}));
  EXPECT_EQ(turned(2), (Pair{kCosine, -kSine}));
  EXPECT_EQ(turned(6), (Pair{-kCosine, -kSine}));
  EXPECT_EQ(turned(1), (Pair{kSine, kCosine}));
  EXPECT_EQ(turned(5), (Pair{-kSine, kCosine}));
  EXPECT_EQ(turned(3), (Pair{kSine, -kCosine}));
  EXPECT_EQ(turned(7), (Pair{-kSine, -kCosine}));
}

TEST(FillGaussianSteps, PairsAreUniformOnTheCircleWithAnIndependentRayleighRadius) {
  constexpr size_t kPairs = 400'000;
  constexpr double kTurn = 2 * std::numbers::pi;
  FixedRandom random(6);
  std::vector<double> turns(kPairs);
  std::vector<double> squares(kPairs);
  std::array<int64_t, 32> cells{};  // sixteenths of a turn, within and beyond the median radius
  for (size_t i = 0; i < kPairs; ++i) {
    std::array<double, 2> pair{};
    kGaussian.fill(random, pair);
    turns[i] = std::atan2(pair[1], pair[0]) / kTurn + 0.5;
    squares[i] = (pair[0] * pair[0] + pair[1] * pair[1]) / 2;
    const auto sixteenth = std::min(static_cast<size_t>(16 * turns[i]), size_t{15});
    ++cells[2 * sixteenth + (squares[i] > ln2 ? 1 : 0)];
  }
  // False-alarm rate 7.5e-6 twice and 1e-6.
  EXPECT_LT(KolmogorovStatistic(turns, [](double x) { return x; }), kKolmogorovLimit);
  EXPECT_LT(KolmogorovStatistic(squares, [](double x) { return -std::expm1(-x); }), kKolmogorovLimit);
  EXPECT_GT(ChiSquareTail(cells), kUnlikely);
}

TEST(FillGaussianSteps, SumsOfManyHaveTheirVariance) {
  constexpr int kSums = 20'000;
  FixedRandom random(8);
  std::vector<double> block(1000);
  std::vector<double> sums(kSums);
  for (double& sum : sums) {
    kGaussian.fill(random, block);
    for (const double value : block) {
      sum += value / std::sqrt(block.size());
    }
  }
  // False-alarm rate 7.5e-6. Neighbours that lean the same way ever so little would widen it.
  EXPECT_LT(KolmogorovStatistic(sums, NormalCdf), kKolmogorovLimit);
}

TEST(LaplaceSteps, AreBoundedNotUndefined) {
  ConstantRandom zeros(0);
  // -log 2^-63, times 2^60, is above 2^62.
  EXPECT_EQ(LaplaceSteps(LazyUniform(1), false, 0x1p60, zeros), kLargestNoiseSteps);
  EXPECT_EQ(LaplaceSteps(LazyUniform(1), true, 0x1p60, zeros), -kLargestNoiseSteps);
}

TEST(FillLaplaceSteps, TakesItsSignFromTheLowestBit) {
  ScriptedRandom random({kHalf, kHalf | 1U});
  std::array<int64_t, 2> steps{};
  FillLaplaceSteps(random, 1000, steps);
  EXPECT_EQ(steps[0], 693);
  EXPECT_EQ(steps[1], -693);
}

TEST(FillLaplaceSteps, ItsSignSaysNothingAboutItsMagnitude) {
  FixedRandom random(11);
  std::vector<double> sample(400'000);
  kLaplace.fill(random, sample);
  std::vector<double> positive;
  std::vector<double> negative;
  for (const double value : sample) {
    (value > 0 ? positive : negative).push_back(std::abs(value));
  }
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(positive, negative), kKolmogorovLimit);
}

}  // namespace
}  // namespace dpar
