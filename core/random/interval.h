// Intervals of real numbers that certainly hold the result of a computation, to any precision. GNU MPFR rounds every
// function correctly in a given direction. Each operation here is monotone in every argument, so it maps ends to ends.
#ifndef DPAR_CORE_RANDOM_INTERVAL_H_
#define DPAR_CORE_RANDOM_INTERVAL_H_

#include <mpfr.h>

#include <cstdint>
#include <optional>
#include <span>

#include "core/random/enclosure.h"

namespace dpar {

class Interval {
 public:
  // The number 0; `precision` bits for each end, of this interval's later values too.
  explicit Interval(int precision);
  Interval(Interval&& other) noexcept;
  Interval(const Interval&) = delete;
  Interval& operator=(const Interval&) = delete;
  Interval& operator=(Interval&&) = delete;
  ~Interval();

  // All numbers on [0, 1] whose binary expansion starts with the lowest `count` bits of `first`, then `more`.
  static Interval StartingWith(uint64_t first, int count, std::span<const uint64_t> more, int precision);
  static Interval Quotient(double dividend, double divisor, int precision);  // divisor > 0
  static Interval Pi(int precision);

  Interval& Add(double number);
  Interval& Add(const Interval& other);
  Interval& Multiply(double factor);           // factor > 0
  Interval& Multiply(const Interval& factor);  // neither has numbers below 0
  Interval& Divide(int64_t divisor);           // divisor > 0
  Interval& Divide(const Interval& divisor);   // no dividend is below 0, all divisors are above
  Interval& Negate();
  Interval& Sqrt();
  Interval& Log();
  Interval& LogOnePlus();
  Interval& OneMinusExp();  // 1 - e^x, for x <= 0
  Interval& Sin();          // within [0, pi / 2]
  Interval& Cos();          // within [0, pi]

  [[nodiscard]] bool IsBelow(const Interval& other) const;
  // The whole part of all numbers in the interval, if they share one. Beyond +-2^62 it is that bound.
  [[nodiscard]] std::optional<int64_t> Floor() const;
  [[nodiscard]] Enclosure Doubles() const;

 private:
  mpfr_t low_;
  mpfr_t high_;
};

// Calls decide(precision) with rising precision until it gives something, and returns that.
template <typename Decide>
auto AtRisingPrecision(const Decide& decide) {
  constexpr int kFirstPrecision = 128;
  for (int precision = kFirstPrecision;; precision *= 2) {
    if (const auto decided = decide(precision); decided.has_value()) {
      return *decided;
    }
  }
}

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_INTERVAL_H_
