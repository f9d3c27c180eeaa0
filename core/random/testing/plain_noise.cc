#include "core/random/testing/plain_noise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/random/vector_math.h"

namespace dpar::testing {
namespace {

// Words of random bits turned into noise at a time: they stay in the first-level cache.
constexpr size_t kBlock = 1024;
constexpr uint64_t kSignBit = 0x8000000000000000U;
// Uniform bits that round to 1 have the logarithm 0; half the smallest other one stands for them.
constexpr double kSmallestExponential = 0x1p-54;

// Makes `count` values, an even number, of as many words. Each loop is compiled twice, once for any processor and once
// for those with AVX2.
using Kernel = void (*)(const uint64_t* bits, size_t count, double* out);

// The first half of the bits makes radii, the second angles. Within a quarter turn around 0 the angle has 51 bits; the
// two highest bits turn the point by 0, 90, 180 or 270 degrees, by an exchange of coordinates and a sign.
[[gnu::always_inline]] inline void GaussianLoop(const uint64_t* bits, size_t count, double* __restrict out) {
  constexpr uint64_t kQuarterBits = 0x000ffffffffffffeU;
  constexpr uint64_t kOne = 0x3ff0000000000000U;
  const size_t pairs = count / 2;
  for (size_t i = 0; i < pairs; ++i) {
    const uint64_t turn = bits[pairs + i];
    const double radius = std::sqrt(-2 * VectorLog(UnitReal(bits[i])));
    const double quarter = std::bit_cast<double>((turn & kQuarterBits) | kOne) - 1.5;
    const double angle = quarter * (std::numbers::pi / 2);
    const auto sine = std::bit_cast<uint64_t>(radius * VectorSin(angle));
    const uint64_t cosine = std::bit_cast<uint64_t>(radius * VectorCos(angle)) ^ (turn & kSignBit);
    const uint64_t exchange = (sine ^ cosine) & (0 - ((turn >> 62U) & 1U));
    out[i] = std::bit_cast<double>(cosine ^ exchange);
    out[pairs + i] = std::bit_cast<double>(sine ^ exchange);
  }
}

[[gnu::always_inline]] inline void ExponentialLoop(const uint64_t* bits, size_t count, double* __restrict out) {
  for (size_t i = 0; i < count; ++i) {
    const double exponential = -VectorLog(UnitReal(bits[i]));
    out[i] = exponential > kSmallestExponential ? exponential : kSmallestExponential;
  }
}

[[gnu::always_inline]] inline void GumbelLoop(const uint64_t* bits, size_t count, double* __restrict out) {
  ExponentialLoop(bits, count, out);
  for (size_t i = 0; i < count; ++i) {
    out[i] = -VectorLog(out[i]);
  }
}

// The sign is the lowest bit, which moves the magnitude least.
[[gnu::always_inline]] inline void LaplaceLoop(const uint64_t* bits, size_t count, double* __restrict out) {
  for (size_t i = 0; i < count; ++i) {
    const double magnitude = -VectorLog(UnitReal(bits[i] | 1U));
    out[i] = std::bit_cast<double>(std::bit_cast<uint64_t>(magnitude) ^ (bits[i] << 63U));
  }
}

// The two forms of a kernel.
#define DPAR_KERNEL_(attributes, name, loop) \
  attributes void name(const uint64_t* bits, size_t count, double* out) { loop(bits, count, out); }
#if defined(__x86_64__)
#define DPAR_KERNELS_(name)               \
  DPAR_KERNEL_(, Plain##name, name##Loop) \
  DPAR_KERNEL_([[gnu::target("avx2,fma")]], Avx2##name, name##Loop)
#else
#define DPAR_KERNELS_(name) DPAR_KERNEL_(, Plain##name, name##Loop)
#endif
// clang-format off: it takes these for declarations without an end
DPAR_KERNELS_(Gaussian)
DPAR_KERNELS_(Exponential)
DPAR_KERNELS_(Gumbel)
DPAR_KERNELS_(Laplace)
// clang-format on
#undef DPAR_KERNELS_
#undef DPAR_KERNEL_

struct Kernels {
  Kernel gaussian = PlainGaussian;
  Kernel exponential = PlainExponential;
  Kernel gumbel = PlainGumbel;
  Kernel laplace = PlainLaplace;
};

// The ones for this processor. They differ by a few units in the last place, since AVX2 machines fuse multiplications
// and additions.
Kernels Choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    return {Avx2Gaussian, Avx2Exponential, Avx2Gumbel, Avx2Laplace};
  }
#endif
  return {};
}

void FillWith(Kernel kernel, RandomSource& random, std::span<double> out) {
  std::array<uint64_t, kBlock> bits;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before it is read
  std::array<double, kBlock> values;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (!out.empty()) {
    const size_t size = std::min(out.size(), kBlock);
    const size_t even = size + size % 2;
    random.Fill({reinterpret_cast<uint8_t*>(bits.data()), even * sizeof(uint64_t)});
    kernel(bits.data(), even, values.data());
    std::copy_n(values.begin(), size, out.begin());
    out = out.subspan(size);
  }
}

}  // namespace

void FillGaussian(RandomSource& random, std::span<double> out) { FillWith(Choose().gaussian, random, out); }
void FillExponential(RandomSource& random, std::span<double> out) { FillWith(Choose().exponential, random, out); }
void FillGumbel(RandomSource& random, std::span<double> out) { FillWith(Choose().gumbel, random, out); }
void FillLaplace(RandomSource& random, std::span<double> out) { FillWith(Choose().laplace, random, out); }

}  // namespace dpar::testing
