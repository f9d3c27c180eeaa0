// Logarithm, sine and cosine as plain arithmetic without branches and calls, so that compilers vectorise loops over
// them. A library's vector functions reached two thirds of the speed: they must reduce any angle.
#ifndef DPAR_CORE_RANDOM_VECTOR_MATH_H_
#define DPAR_CORE_RANDOM_VECTOR_MATH_H_

#include <bit>
#include <cstdint>
#include <numbers>

namespace dpar {

// An integer below 2^52 as a double, exactly. (AVX2 has no instruction for it.)
[[gnu::always_inline]] inline double ExactDouble(uint64_t integer) {
  constexpr uint64_t kTwoTo52 = 0x4330000000000000U;
  return std::bit_cast<double>(integer | kTwoTo52) - 0x1p52;
}

// (bits + 1) 2^-64, rounded to a double: uniform on (0, 1] in steps of 2^-64 near 0 and 2^-53 near 1.
[[gnu::always_inline]] inline double UnitReal(uint64_t bits) {
  return (ExactDouble(bits >> 32U) * 0x1p32 + (ExactDouble(bits & 0xffffffffU) + 1)) * 0x1p-64;
}

// The natural logarithm of a normal x > 0, within 2^-50 of itself. x = 2^e m with m in [sqrt(1/2), sqrt(2)), and log m
// = 2 artanh(s), s = (m - 1) / (m + 1), by its series, rest below 2^-55 of it. With u = 2^-53: m - 1 is exact, s is
// within 2.01u, the series beyond 2s is below 2s/99 and within 14u, their sum rounds by u; so log m is within 3.5u. If
// e is not 0, |log x| >= log(2)/2 >= |log m|, and |e log 2| <= 2 |log x|, within 1.4u; the sum rounds by u: 7.4u.
[[gnu::always_inline]] inline double VectorLog(double x) {
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdU;
  constexpr uint64_t kOne = 0x3ff0000000000000U;
  constexpr uint64_t kMantissa = 0x000fffffffffffffU;
  const uint64_t shifted = std::bit_cast<uint64_t>(x) - kSqrtHalf + kOne;
  const double exponent = ExactDouble(shifted >> 52U) - 1023;
  const double m = std::bit_cast<double>((shifted & kMantissa) + kSqrtHalf);
  const double s = (m - 1) / (m + 1);
  const double y = s * s;
  double series = 1.0 / 19;
  series = series * y + 1.0 / 17;
  series = series * y + 1.0 / 15;
  series = series * y + 1.0 / 13;
  series = series * y + 1.0 / 11;
  series = series * y + 1.0 / 9;
  series = series * y + 1.0 / 7;
  series = series * y + 1.0 / 5;
  series = series * y + 1.0 / 3;
  return exponent * std::numbers::ln2 + (2 * s + 2 * s * y * series);
}

// sin x for |x| <= pi/4, within 3u: Taylor's series, rest below 0.6u. Terms beyond x are below x/9 and within 6u, and
// the sum rounds by u.
[[gnu::always_inline]] inline double VectorSin(double x) {
  const double y = x * x;
  double series = -1.0 / 1307674368000;
  series = series * y + 1.0 / 6227020800;
  series = series * y - 1.0 / 39916800;
  series = series * y + 1.0 / 362880;
  series = series * y - 1.0 / 5040;
  series = series * y + 1.0 / 120;
  series = series * y - 1.0 / 6;
  return x + x * y * series;
}

// cos x for |x| <= pi/4, within 3u: the rest is below 0.1u, 1 - x^2/2 rounds by u and has 0.4u of x^2, the terms beyond
// are below 1/60 and within 7u, and the sum rounds by u.
[[gnu::always_inline]] inline double VectorCos(double x) {
  const double y = x * x;
  double series = 1.0 / 20922789888000;
  series = series * y - 1.0 / 87178291200;
  series = series * y + 1.0 / 479001600;
  series = series * y - 1.0 / 3628800;
  series = series * y + 1.0 / 40320;
  series = series * y - 1.0 / 720;
  series = series * y + 1.0 / 24;
  return 1 - 0.5 * y + y * y * series;
}

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_VECTOR_MATH_H_
