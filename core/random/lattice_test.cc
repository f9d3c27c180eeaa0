#include "core/random/lattice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/random/testing/fixed_random.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;

constexpr int kBits = 30;

TEST(LatticeStep, IsAPowerOfTwoAtMostTheScaledDeviation) {
  EXPECT_EQ(LatticeStep(1.0, 30), 0x1p-30);
  EXPECT_EQ(LatticeStep(1.999, 30), 0x1p-30);
  EXPECT_EQ(LatticeStep(12.0, 10), 0x1p-7);
  EXPECT_EQ(LatticeStep(0.3, 0), 0.25);
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

TEST(AddLatticeNoise, NothingInNothingOut) {
  FixedRandom random(6);
  std::vector<double> values;
  AddLatticeNoise(random, 1.0, kBits, values);
  EXPECT_TRUE(values.empty());
}

}  // namespace
}  // namespace dpar
