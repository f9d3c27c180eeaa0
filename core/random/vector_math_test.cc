#include "core/random/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/random/testing/fixed_random.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using std::numbers::ln2;

constexpr uint64_t kAllOnes = ~uint64_t{0};
// The highest word whose uniform value is below 1.
constexpr uint64_t kLastBelowOne = kAllOnes - 1025;

double RelativeError(double value, long double expected) {
  return static_cast<double>(std::abs((static_cast<long double>(value) - expected) / expected));
}

TEST(UnitReal, IsOneMoreThanTheBitsAndNeverZero) {
  EXPECT_EQ(UnitReal(0), 0x1p-64);
  EXPECT_EQ(UnitReal(1), 0x1p-63);
  EXPECT_EQ(UnitReal(0xffffffffU), 0x1p-32);
  EXPECT_EQ(UnitReal(0x100000000U), 0x1p-32 + 0x1p-64);
  EXPECT_EQ(UnitReal(0x7fffffffffffffffU), 0.5);
}

TEST(UnitReal, RoundsToTheNearestDouble) {
  EXPECT_EQ(UnitReal(kLastBelowOne - 1), 1 - 0x1p-53);
  EXPECT_EQ(UnitReal(kLastBelowOne), 1 - 0x1p-53);
  EXPECT_EQ(UnitReal(kLastBelowOne + 1), 1);
  EXPECT_EQ(UnitReal(kAllOnes), 1);
}

TEST(VectorLog, IsExactAtOneAndBesideIt) {
  EXPECT_EQ(VectorLog(1), 0);
  EXPECT_EQ(VectorLog(1 - 0x1p-53), -0x1p-53);
  EXPECT_EQ(VectorLog(1 + 0x1p-52), 0x1p-52);
}

TEST(VectorLog, IsWithinItsBound) {
  constexpr int kSteps = 2000;
  double worst = 0;
  const auto check = [&](double x) {
    if (x == 1) {
      return;  // exact, and 0
    }
    worst = std::max(worst, RelativeError(VectorLog(x), std::log(static_cast<long double>(x))));
  };
  // Every exponent of a uniform value and of an exponential one.
  for (int exponent = -64; exponent <= 6; ++exponent) {
    for (int i = 0; i < kSteps; ++i) {
      check(std::ldexp(1 + static_cast<double>(i) / kSteps, exponent));
    }
    // Where the exponent changes, and where the reduction does.
    for (const double edge : {1.0, std::sqrt(0.5)}) {
      double x = std::ldexp(edge, exponent) * (1 - 0x1p-45);
      for (int i = 0; i < 1000; ++i, x = std::nextafter(x, 1e9)) {
        check(x);
      }
    }
  }
  for (int k = 1; k <= 52; ++k) {
    check(1 + std::ldexp(1, -k));
    check(1 - std::ldexp(1, -k));
  }
  EXPECT_LE(worst, 0x1p-50);
}

TEST(VectorSinAndVectorCos, AreWithinTheirBoundOnAnEighthTurnEitherSide) {
  constexpr int kSteps = 200'000;
  double worst_sine = 0;
  double worst_cosine = 0;
  const auto check = [&](double x) {
    const auto exact = static_cast<long double>(x);
    worst_sine = std::max(worst_sine, RelativeError(VectorSin(x), std::sin(exact)));
    worst_cosine = std::max(worst_cosine, RelativeError(VectorCos(x), std::cos(exact)));
  };
  for (int i = 1; i <= kSteps; ++i) {
    check(-std::numbers::pi / 4 * i / kSteps);
    check(std::numbers::pi / 4 * i / kSteps);
  }
  for (int k = 2; k <= 60; ++k) {
    check(std::ldexp(1, -k));
    check(-std::ldexp(1, -k));
  }
  EXPECT_LE(worst_sine, 3 * 0x1p-53);
  EXPECT_LE(worst_cosine, 3 * 0x1p-53);
  EXPECT_EQ(VectorSin(0), 0);
  EXPECT_EQ(VectorCos(0), 1);
}

}  // namespace
}  // namespace dpar
