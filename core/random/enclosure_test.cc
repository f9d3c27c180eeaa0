#include "core/random/enclosure.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/random/lazy_uniform.h"
#include "core/random/testing/fixed_random.h"

namespace dpar {
namespace {

using ::dpar::testing::ConstantRandom;
using ::dpar::testing::FixedRandom;

constexpr int kPrecision = 256;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<uint8_t, 2> kEnds = {0x00, 0xFF};

void ExpectHolds(const Enclosure& known, const Interval& exact) {
  EXPECT_LE(known.low, exact.Doubles().low);
  EXPECT_GE(known.high, exact.Doubles().high);
}

// From 2^-70 to 70: from the largest noise to the smallest.
double RaggedTime(RandomSource& random) { return std::exp(-48 + 52 * UniformReal(random)); }

TEST(ExponentialFrom, HoldsTheLogarithmForAnyFurtherBits) {
  FixedRandom random(1);
  for (int round = 0; round < 20'000; ++round) {
    const int count = 1 + round % 64;
    const unsigned unknown = 64U - static_cast<unsigned>(count);
    const uint64_t bits = (UniformBits(random) >> unknown) >> (static_cast<unsigned>(round / 64) % 64U);
    for (const uint64_t leading : {bits, (~uint64_t{0} >> unknown) - bits}) {
      const Enclosure known = ExponentialFrom(leading, count);
      for (const uint8_t byte : kEnds) {
        ConstantRandom more(byte);
        ExpectHolds(known, LazyUniform(leading, count).EncloseExponential(kPrecision, more));
      }
    }
  }
}

TEST(ExponentialFrom, IsNarrowInTheMiddleAndOpenAtTheEnds) {
  const Enclosure middle = ExponentialFrom(uint64_t{1} << 63U, 64);
  EXPECT_LT(middle.high - middle.low, 0x1p-48);
  EXPECT_EQ(ExponentialFrom(0, 64).high, kInfinity);
  EXPECT_EQ(ExponentialFrom(~uint64_t{0}, 64).low, 0);
}

TEST(MinusLog, HoldsTheLogarithm) {
  FixedRandom random(2);
  for (int round = 0; round < 20'000; ++round) {
    const double x = RaggedTime(random);
    Interval exact = Interval::Quotient(x, 1, kPrecision);
    exact.Log().Negate();
    ExpectHolds(MinusLog({x, x}), exact);
  }
  EXPECT_EQ(MinusLog({0, kInfinity}).low, -kInfinity);
  EXPECT_EQ(MinusLog({0, kInfinity}).high, kInfinity);
}

TEST(RadiusAt, HoldsTheRadius) {
  FixedRandom random(3);
  for (int round = 0; round < 20'000; ++round) {
    const double t = RaggedTime(random);
    Interval exact = Interval::Quotient(-t, 1, kPrecision);
    exact.OneMinusExp().Log().Negate().Multiply(2).Sqrt();
    const Enclosure known = RadiusAt({t, t});
    ExpectHolds(known, exact);
    if (t < 1) {
      EXPECT_LT(known.high - known.low, 0x1p-44) << t;
    }
  }
  EXPECT_EQ(RadiusAt({0, kInfinity}).low, 0);
  EXPECT_EQ(RadiusAt({0, kInfinity}).high, kInfinity);
}

TEST(KnownSteps, AreTheNearestIfThatIsSure) {
  EXPECT_EQ(KnownSteps({0.4, 0.5}, 10), std::nullopt);
  EXPECT_EQ(KnownSteps({0.41, 0.44}, 10), 4);
  EXPECT_EQ(KnownSteps({-0.44, -0.36}, 10), -4);
  EXPECT_EQ(KnownSteps({-0.04, 0.04}, 10), 0);
  EXPECT_EQ(KnownSteps({0.5, 0.5}, 1), std::nullopt);
  EXPECT_EQ(KnownSteps({0x1p61, 0x1p61}, 2), std::nullopt);
  EXPECT_EQ(KnownSteps({1, kInfinity}, 1), std::nullopt);
}

}  // namespace
}  // namespace dpar
