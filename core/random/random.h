// Where randomness comes from. core/ never makes its own source: one is passed in, so a test can fix the stream and
// production has no way to.
#ifndef DPAR_CORE_RANDOM_RANDOM_H_
#define DPAR_CORE_RANDOM_RANDOM_H_

#include <cstdint>
#include <span>

namespace dpar {

// A stream of uniform random bytes. Not thread-safe: one per thread.
class RandomSource {
 public:
  RandomSource() = default;
  RandomSource(const RandomSource&) = delete;
  RandomSource& operator=(const RandomSource&) = delete;
  virtual ~RandomSource() = default;

  virtual void Fill(std::span<uint8_t> bytes) = 0;
};

// 64 uniform bits.
uint64_t UniformBits(RandomSource& random);

// Uniform on (0, 1): an odd multiple of 2^-53, so never 0 or 1.
double UniformReal(RandomSource& random);

// Uniform on 0..bound-1, exactly (by rejection). bound >= 1.
uint64_t UniformBelow(RandomSource& random, uint64_t bound);

// Independent standard normals by Box-Muller, the radius from a 64-bit uniform and the angle from a 53-bit one. The
// sampler's own error: radii above 9.42 never occur (mass 2^-64 a pair), radii are further apart than 2^-k only in a
// tail of mass about 2^(k-64), and angles and radii are rounded to doubles. Low bits are porous and must not be
// released: core/random/lattice.h rounds them away.
void FillGaussian(RandomSource& random, std::span<double> out);

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_RANDOM_H_
