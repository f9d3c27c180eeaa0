// Two doubles that a real number lies between: what is known of a random number before more bits are drawn. Bounds hold
// for arithmetic that rounds to the nearest double, with or without fused operations. u is 2^-53. Arguments are 0 or
// within 2^-1000 .. 2^1000, where nothing underflows.
#ifndef DPAR_CORE_RANDOM_ENCLOSURE_H_
#define DPAR_CORE_RANDOM_ENCLOSURE_H_

#include <cmath>
#include <cstdint>
#include <optional>

namespace dpar {

struct Enclosure {
  double low = 0;
  double high = 0;
};

// Around ends that were rounded up to three times each: 3u, and u for the rounding here.
inline Enclosure Outward(double low, double high) {
  constexpr double kMargin = 0x1p-51;
  return {low - std::abs(low) * kMargin, high + std::abs(high) * kMargin};
}

// -log U for a uniform U of which the leading bits are known, the lowest `count` (1..64) of `bits`.
Enclosure ExponentialFrom(uint64_t bits, int count);

// -log x, for 0 <= x. At 0 it is infinite.
Enclosure MinusLog(const Enclosure& x);

// sqrt(-2 log(1 - e^-t)) for 0 <= t: the radius of two normals, if t is an exponential variable.
Enclosure RadiusAt(const Enclosure& t);

// The whole number nearest to steps_per_unit x, if that is certain and below 2^62. steps_per_unit > 0.
std::optional<int64_t> KnownSteps(const Enclosure& x, double steps_per_unit);

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_ENCLOSURE_H_
