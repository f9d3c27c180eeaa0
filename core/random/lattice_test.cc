#include "core/random/lattice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/random/testing/fixed_random.h"
#include "core/random/testing/statistics.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using ::dpar::testing::kKolmogorovLimit;
using ::dpar::testing::KolmogorovStatistic;
using ::dpar::testing::NormalCdf;
using ::dpar::testing::ScriptedRandom;

constexpr int kBits = 30;

TEST(LatticeStep, IsAPowerOfTwoAtMostTheScaledDeviation) {
  EXPECT_EQ(LatticeStep(1.0, 30), 0x1p-30);
  EXPECT_EQ(LatticeStep(1.999, 30), 0x1p-30);
  EXPECT_EQ(LatticeStep(12.0, 10), 0x1p-7);
  EXPECT_EQ(LatticeStep(0.3, 0), 0.25);
}

TEST(StepsPerScale, IsTheScaleInStepsExactly) {
  EXPECT_EQ(StepsPerScale(1.0, 30), 0x1p30);
  EXPECT_EQ(StepsPerScale(12.0, 10), 1536);
  EXPECT_EQ(StepsPerScale(0.3, 24) * LatticeStep(0.3, 24), 0.3);
  EXPECT_EQ(StepsPerScale(0x1.8p-900, 24), 0x1.8p24);
}

TEST(TruncateToLattice, GoesTowardsZero) {
  EXPECT_EQ(TruncateToLattice(0.7, 0.25), 0.5);
  EXPECT_EQ(TruncateToLattice(-0.7, 0.25), -0.5);
  EXPECT_EQ(TruncateToLattice(0.2499999, 0.25), 0);
  EXPECT_EQ(TruncateToLattice(-0.2499999, 0.25), 0);
  EXPECT_EQ(TruncateToLattice(7, 4), 4);
  EXPECT_EQ(TruncateToLattice(0, 0.25), 0);
}

TEST(TruncateToLattice, KeepsMultiplesAndMovesOthersByLessThanAStep) {
  FixedRandom random(10);
  for (const double step : {0x1p-40, 0x1p-3, 1.0, 0x1p9}) {
    for (int i = 0; i < 10'000; ++i) {
      const double value = (UniformReal(random) - 0.5) * 0x1p20;
      const double truncated = TruncateToLattice(value, step);
      EXPECT_LE(std::abs(truncated), std::abs(value));
      EXPECT_LT(std::abs(truncated - value), step);
      EXPECT_EQ(std::fmod(truncated, step), 0);
      EXPECT_EQ(TruncateToLattice(truncated, step), truncated);
    }
  }
  EXPECT_EQ(TruncateToLattice(0x1p52 - 0.5, 1), 0x1p52 - 1);
  EXPECT_EQ(TruncateToLattice(-0x1p52 + 0.5, 1), -0x1p52 + 1);
}

TEST(AddNoiseSteps, RoundsTheValueToTheNearestMultipleAndTiesToTheEvenOne) {
  EXPECT_EQ(AddNoiseSteps(0.7, 0, 0.25), 0.75);
  EXPECT_EQ(AddNoiseSteps(-0.7, 2, 0.25), -0.25);
  EXPECT_EQ(AddNoiseSteps(5, -1, 4), 0);
  EXPECT_EQ(AddNoiseSteps(0.125, 0, 0.25), 0);
  EXPECT_EQ(AddNoiseSteps(0.375, 0, 0.25), 0.5);
  EXPECT_EQ(AddNoiseSteps(-0.625, 0, 0.25), -0.5);
}

TEST(AddNoiseSteps, BoundsTheSumSoThatItIsAFunctionOfTheSum) {
  constexpr int64_t kNoiseBound = int64_t{1} << 62U;
  for (const double value : {0.0, 1e300, -1e300, std::nan("")}) {
    EXPECT_EQ(AddNoiseSteps(value, kNoiseBound, 0.5), 0x1p60) << value;
    EXPECT_EQ(AddNoiseSteps(value, -kNoiseBound, 0.5), -0x1p60) << value;
  }
  EXPECT_EQ(AddNoiseSteps(1e300, -(int64_t{1} << 61U), 0.5), 0);
  EXPECT_EQ(AddNoiseSteps(std::numeric_limits<double>::infinity(), 3, 0.5), 1.5);
}

TEST(AddLatticeNoise, EveryReleaseIsOnTheLattice) {
  FixedRandom random(1);
  std::vector<double> values(10'000, 1.0 / 3.0);
  AddLatticeNoise(random, 12.5, kBits, values);
  const double step = LatticeStep(12.5, kBits);
  for (const double value : values) {
    EXPECT_EQ(std::nearbyint(value / step) * step, value);
  }
}

TEST(AddLatticeNoise, TheSameNoiseMovesALatticeValueByExactlyItself) {
  const double step = LatticeStep(2.0, kBits);
  std::vector<double> at_zero(1000, 0.0);
  std::vector<double> moved(1000, 17 * step);
  FixedRandom first(2);
  FixedRandom second(2);
  AddLatticeNoise(first, 2.0, kBits, at_zero);
  AddLatticeNoise(second, 2.0, kBits, moved);
  for (size_t i = 0; i < moved.size(); ++i) {
    EXPECT_EQ(moved[i] - at_zero[i], 17 * step);
  }
}

TEST(AddLatticeNoise, HasTheAskedVariance) {
  FixedRandom random(3);
  constexpr size_t kDraws = 1'000'000;
  std::vector<double> values(kDraws, 5.0);
  AddLatticeNoise(random, 3.0, kBits, values);
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value - 5.0;
    squares += (value - 5.0) * (value - 5.0);
  }
  // Five standard errors each: false-alarm rate 1.2e-6 had the seed not been fixed.
  EXPECT_NEAR(sum / kDraws, 0, 5 * 3.0 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 9.0, 5 * 9.0 * std::sqrt(2.0 / kDraws));
}

TEST(AddLatticeNoise, ValuesThatAreNotFiniteCountAsZero) {
  std::vector<double> bad = {std::nan(""), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()};
  std::vector<double> zero(3, 0.0);
  FixedRandom first(4);
  FixedRandom second(4);
  AddLatticeNoise(first, 1.0, kBits, bad);
  AddLatticeNoise(second, 1.0, kBits, zero);
  EXPECT_EQ(bad, zero);
}

TEST(AddLatticeNoise, HugeValuesAreBoundedNotUndefined) {
  std::vector<double> values = {1e200, -1e200};
  FixedRandom random(5);
  AddLatticeNoise(random, 1.0, kBits, values);
  EXPECT_NEAR(values[0], 0x1p31, 10);
  EXPECT_NEAR(values[1], -0x1p31, 10);
}

// A value that is far away has its whole block take the other way through the code.
TEST(AddLatticeNoise, GivesTheSameBitsNextToAValueThatIsFarAway) {
  for (const double scale : {1.0, 0.37, 1e-6, 123.0}) {
    std::vector<double> near(1000);
    FixedRandom values(6);
    for (double& value : near) {
      value = scale * 100 * (UniformReal(values) - 0.5);
    }
    near.front() = 2.5 * LatticeStep(scale, kBits);  // halfway: to the even one
    std::vector<double> far = near;
    far.back() = scale * 0x1p25;
    FixedRandom first(7);
    FixedRandom second(7);
    AddLatticeNoise(first, scale, kBits, near);
    AddLatticeNoise(second, scale, kBits, far);
    near.pop_back();
    far.pop_back();
    EXPECT_EQ(near, far);
  }
}

TEST(AddLatticeNoise, ValuesWhoseStepsOverflowAreBoundedToo) {
  const double scale = 0x1p-900;
  const double bound = 0x1p61 * LatticeStep(scale, kBits);
  std::vector<double> values = {1e200, -1e200};
  FixedRandom random(5);
  AddLatticeNoise(random, scale, kBits, values);
  EXPECT_NEAR(values[0] / bound, 1, 1e-6);
  EXPECT_NEAR(values[1] / bound, -1, 1e-6);
}

TEST(AddLatticeNoise, NothingInNothingOut) {
  FixedRandom random(6);
  std::vector<double> values;
  AddLatticeNoise(random, 1.0, kBits, values);
  EXPECT_TRUE(values.empty());
}

TEST(AddLatticeNoise, IsTheRoundedValuePlusTheRoundedNoise) {
  // The radius of U = 1/2 is sqrt(2 log 2) = 1.177, at an angle of 0; steps of 1/4.
  ScriptedRandom random({uint64_t{1} << 63U, 0});
  std::vector<double> values = {0.3};
  AddLatticeNoise(random, 1.0, 2, values);
  EXPECT_EQ(values[0], 0.25 + 1.25);
}

TEST(AddLatticeNoise, IsGaussianAcrossBlocks) {
  FixedRandom random(11);
  std::vector<double> values(100'001, -40.0);
  AddLatticeNoise(random, 7.0, kBits, values);
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(values, [](double x) { return NormalCdf((x + 40) / 7); }), kKolmogorovLimit);
}

TEST(AddLatticeLaplace, IsTheRoundedValuePlusTheRoundedNoise) {
  // The magnitude log 2 = 0.693..., once with each sign; steps of 1/4, and scale 1.5 in them.
  ScriptedRandom random({0x8000000000000000U, 0x8000000000000001U});
  std::vector<double> values = {0.3, 0.3};
  AddLatticeLaplace(random, 1.5, 2, values);
  EXPECT_EQ(values[0], 0.25 + 1.0);
  EXPECT_EQ(values[1], 0.25 - 1.0);
}

TEST(AddLatticeLaplace, EveryReleaseIsOnTheLattice) {
  FixedRandom random(12);
  std::vector<double> values(10'000, 1.0 / 3.0);
  AddLatticeLaplace(random, 12.5, kBits, values);
  const double step = LatticeStep(12.5, kBits);
  for (const double value : values) {
    EXPECT_EQ(std::nearbyint(value / step) * step, value);
  }
}

TEST(AddLatticeLaplace, TheSameNoiseMovesALatticeValueByExactlyItself) {
  const double step = LatticeStep(2.0, kBits);
  std::vector<double> at_zero(1025, 0.0);
  std::vector<double> moved(1025, -17 * step);
  FixedRandom first(13);
  FixedRandom second(13);
  AddLatticeLaplace(first, 2.0, kBits, at_zero);
  AddLatticeLaplace(second, 2.0, kBits, moved);
  for (size_t i = 0; i < moved.size(); ++i) {
    EXPECT_EQ(moved[i] - at_zero[i], -17 * step);
  }
}

TEST(AddLatticeLaplace, HasTheAskedScale) {
  FixedRandom random(14);
  std::vector<double> values(400'001, 5.0);
  AddLatticeLaplace(random, 3.0, kBits, values);
  const auto cdf = [](double x) { return x < 5 ? std::exp((x - 5) / 3) / 2 : 1 - std::exp((5 - x) / 3) / 2; };
  // False-alarm rate 7.5e-6.
  EXPECT_LT(KolmogorovStatistic(values, cdf), kKolmogorovLimit);
}

TEST(AddLatticeLaplace, ValuesThatAreNotFiniteCountAsZero) {
  std::vector<double> bad = {std::nan(""), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()};
  std::vector<double> zero(3, 0.0);
  FixedRandom first(15);
  FixedRandom second(15);
  AddLatticeLaplace(first, 1.0, kBits, bad);
  AddLatticeLaplace(second, 1.0, kBits, zero);
  EXPECT_EQ(bad, zero);
}

TEST(AddLatticeLaplace, HugeValuesAreBoundedNotUndefined) {
  std::vector<double> values = {1e200, -1e200};
  FixedRandom random(16);
  AddLatticeLaplace(random, 1.0, kBits, values);
  EXPECT_NEAR(values[0], 0x1p31, 64 * std::numbers::ln2);
  EXPECT_NEAR(values[1], -0x1p31, 64 * std::numbers::ln2);
}

TEST(AddLatticeLaplace, NothingInNothingOut) {
  ScriptedRandom random({});
  std::vector<double> values;
  AddLatticeLaplace(random, 1.0, kBits, values);
  EXPECT_TRUE(values.empty());
}

}  // namespace
}  // namespace dpar
