#include "core/random/interval.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace dpar {
namespace {

constexpr int kPrecision = 128;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The doubles next to each other around a number that is none: as narrow as an interval's doubles can be.
void ExpectAround(const Interval& interval, double nearest) {
  const Enclosure doubles = interval.Doubles();
  EXPECT_TRUE(doubles.low <= nearest && nearest <= doubles.high) << doubles.low << " " << doubles.high;
  EXPECT_EQ(std::nextafter(doubles.low, kInfinity), doubles.high);
}

TEST(Interval, StartingWithHoldsEveryContinuation) {
  const Enclosure eighth = Interval::StartingWith(0b101, 3, {}, kPrecision).Doubles();
  EXPECT_EQ(eighth.low, 0.625);
  EXPECT_EQ(eighth.high, 0.75);
  constexpr std::array<uint64_t, 1> kMore = {uint64_t{1} << 63U};
  const Enclosure longer = Interval::StartingWith(0b101, 3, kMore, kPrecision).Doubles();
  EXPECT_EQ(longer.low, 0.6875);
  EXPECT_EQ(longer.high, std::nextafter(0.6875, 1));
  const Enclosure all = Interval::StartingWith(~uint64_t{0}, 64, {}, kPrecision).Doubles();
  EXPECT_LT(all.low, 1);
  EXPECT_EQ(all.high, 1);
}

TEST(Interval, EveryFunctionRoundsItsEndsApart) {
  ExpectAround(Interval::Quotient(1, 3, kPrecision), 1.0 / 3);
  ExpectAround(Interval::Pi(kPrecision), std::numbers::pi);
  Interval third = Interval::Quotient(1, 3, kPrecision);
  ExpectAround(third.Log(), std::log(1.0 / 3));
  ExpectAround(third.Negate(), -std::log(1.0 / 3));
  ExpectAround(third.Sqrt(), std::sqrt(-std::log(1.0 / 3)));
  ExpectAround(Interval::Quotient(-1, 3, kPrecision).LogOnePlus(), std::log1p(-1.0 / 3));
  ExpectAround(Interval::Quotient(-1, 3, kPrecision).OneMinusExp(), -std::expm1(-1.0 / 3));
  ExpectAround(Interval::Quotient(1, 3, kPrecision).Sin(), std::sin(1.0 / 3));
  ExpectAround(Interval::Quotient(1, 3, kPrecision).Cos(), std::cos(1.0 / 3));
  ExpectAround(Interval::Quotient(1, 3, kPrecision).Multiply(Interval::Pi(kPrecision)), std::numbers::pi / 3);
  ExpectAround(Interval::Pi(kPrecision).Divide(7), std::numbers::pi / 7);
  ExpectAround(Interval::Pi(kPrecision).Multiply(0.3), 0.3 * std::numbers::pi);
  ExpectAround(Interval::Pi(kPrecision).Add(0.25), 0.25 + std::numbers::pi);
}

TEST(Interval, FunctionsKeepTheWidthOfTheirArgument) {
  // [1/4, 1/2] through a falling and a rising function.
  const auto wide = [] { return Interval::StartingWith(1, 2, {}, kPrecision); };
  const Enclosure cosine = wide().Cos().Doubles();
  EXPECT_NEAR(cosine.low, std::cos(0.5), 1e-15);
  EXPECT_NEAR(cosine.high, std::cos(0.25), 1e-15);
  const Enclosure ratio = wide().Divide(wide()).Doubles();
  EXPECT_EQ(ratio.low, 0.5);
  EXPECT_EQ(ratio.high, 2);
  const Enclosure sum = wide().Add(wide()).Doubles();
  EXPECT_EQ(sum.low, 0.5);
  EXPECT_EQ(sum.high, 1);
}

TEST(Interval, LogarithmsAtTheEndsAreOpen) {
  const Enclosure smallest = Interval::StartingWith(0, 64, {}, kPrecision).Log().Doubles();
  EXPECT_EQ(smallest.low, -kInfinity);
  EXPECT_LT(smallest.high, -44);
  EXPECT_EQ(Interval::StartingWith(~uint64_t{0}, 64, {}, kPrecision).Log().Doubles().high, 0);
}

TEST(Interval, IsBelowOnlyWhatItIsApartFrom) {
  const auto quarter = [](uint64_t n) { return Interval::StartingWith(n, 2, {}, kPrecision); };
  EXPECT_TRUE(quarter(0).IsBelow(quarter(2)));
  EXPECT_FALSE(quarter(0).IsBelow(quarter(1))) << "they share an end";
  EXPECT_FALSE(quarter(2).IsBelow(quarter(0)));
  EXPECT_FALSE(quarter(1).IsBelow(quarter(1)));
}

TEST(Interval, FloorIsGivenOnceItIsSure) {
  EXPECT_EQ(Interval::Quotient(7, 2, kPrecision).Floor(), 3);
  EXPECT_EQ(Interval::Quotient(-7, 2, kPrecision).Floor(), -4);
  EXPECT_EQ(Interval::StartingWith(1, 2, {}, kPrecision).Add(0.6).Floor(), std::nullopt);
  EXPECT_EQ(Interval::StartingWith(1, 2, {}, kPrecision).Add(0.4).Floor(), 0);
}

TEST(Interval, FloorIsBounded) {
  constexpr int64_t kBound = int64_t{1} << 62U;
  EXPECT_EQ(Interval::Quotient(0x1p100, 1, kPrecision).Floor(), kBound);
  EXPECT_EQ(Interval::Quotient(-0x1p100, 1, kPrecision).Floor(), -kBound);
  // From 44 on without an end: beyond the bound only once it is large.
  EXPECT_EQ(Interval::StartingWith(0, 64, {}, kPrecision).Log().Negate().Floor(), std::nullopt);
  EXPECT_EQ(Interval::StartingWith(0, 64, {}, kPrecision).Log().Negate().Multiply(0x1p60).Floor(), kBound);
}

}  // namespace
}  // namespace dpar
