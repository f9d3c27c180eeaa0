// core/ never makes its own source of randomness: one is passed in, so a test can fix the stream and production cannot.
#ifndef DPAR_CORE_RANDOM_RANDOM_H_
#define DPAR_CORE_RANDOM_RANDOM_H_

#include <cstdint>
#include <memory>
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

  // A new stream, independent of this one, for another thread or another piece of work.
  virtual std::unique_ptr<RandomSource> Split() = 0;
};

uint64_t UniformBits(RandomSource& random);

// Uniform on (0, 1): an odd multiple of 2^-53, so never 0 or 1.
double UniformReal(RandomSource& random);

// Uniform on 0..bound-1, exactly (by rejection). bound >= 1.
uint64_t UniformBelow(RandomSource& random, uint64_t bound);

}  // namespace dpar

#endif  // DPAR_CORE_RANDOM_RANDOM_H_
