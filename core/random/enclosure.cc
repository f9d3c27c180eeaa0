#include "core/random/enclosure.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "core/random/vector_math.h"

namespace dpar {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSmallest = 0x1p-1000;
constexpr double kLogarithmError = 0x1p-49;  // twice that of VectorLog

// 1 - e^-t for 0 <= t <= 100, within 27u of itself. Up to 1/2 by Taylor's series, rest below 2^-58, 5u for rounding;
// beyond, at most eight times 1 - e^-2t = v (2 - v), v = 1 - e^-t, which lessens v's relative error and adds 2u.
double OneMinusExp(double t) {
  constexpr std::array<double, 16> kReciprocals = {0,        1,        1.0 / 2,  1.0 / 3, 1.0 / 4,  1.0 / 5,
                                                   1.0 / 6,  1.0 / 7,  1.0 / 8,  1.0 / 9, 1.0 / 10, 1.0 / 11,
                                                   1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15};
  int doublings = 0;
  while (t > 0.5) {
    t /= 2;
    ++doublings;
  }
  constexpr double kSmall = 0x1p-6;
  constexpr size_t kTermsIfSmall = 8;
  double series = 1;
  for (size_t k = t < kSmall ? kTermsIfSmall : kReciprocals.size() - 1; k > 1; --k) {
    series = 1 - series * (t * kReciprocals[k]);
  }
  double v = t * series;
  for (; doublings > 0; --doublings) {
    v *= 2 - v;
  }
  return v;
}

Enclosure OneMinusExp(const Enclosure& t) {
  constexpr double kLargest = 100;  // the next double below 1 is that of 37
  constexpr double kError = 0x1p-48;
  return {OneMinusExp(std::min(t.low, kLargest)) * (1 - kError),
          std::min(1.0, OneMinusExp(std::min(t.high, kLargest)) * (1 + kError))};
}

}  // namespace

Enclosure ExponentialFrom(uint64_t bits, int count) {
  // U is in w .. w+1 in steps of 2^-count, and x is (w + 1) 2^-count within u: |log x - log U| <= 1.01u + 1/w. The
  // margin of 4u covers the other roundings.
  const double x = UnitReal(((bits + 1) << (64U - static_cast<unsigned>(count))) - 1);
  const double exponential = -VectorLog(x);
  const double error = kLogarithmError * exponential + 0x1p-51 + 1 / static_cast<double>(bits);
  return {std::max(0.0, exponential - error), exponential + error};
}

Enclosure MinusLog(const Enclosure& x) {
  const double low = x.high < kInfinity ? -VectorLog(std::max(x.high, kSmallest)) : -kInfinity;
  const double high = x.low >= kSmallest ? -VectorLog(x.low) : kInfinity;
  return {low - kLogarithmError * std::abs(low), high + kLogarithmError * std::abs(high)};
}

Enclosure RadiusAt(const Enclosure& t) {
  const Enclosure half_square = MinusLog(OneMinusExp(t));
  return Outward(std::sqrt(2 * std::max(0.0, half_square.low)), std::sqrt(2 * half_square.high));
}

std::optional<int64_t> KnownSteps(const Enclosure& x, double steps_per_unit) {
  constexpr double kLargest = 0x1p62;
  const Enclosure scaled = Outward(x.low * steps_per_unit, x.high * steps_per_unit);
  const double nearest = std::nearbyint(scaled.low);
  if (nearest != std::nearbyint(scaled.high) || !(std::abs(nearest) < kLargest)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(nearest);
}

}  // namespace dpar
