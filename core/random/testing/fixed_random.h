// A random source with a fixed stream, for tests only: no production target links it, which the tidy test checks.
#ifndef DPAR_CORE_RANDOM_TESTING_FIXED_RANDOM_H_
#define DPAR_CORE_RANDOM_TESTING_FIXED_RANDOM_H_

#include <cstdint>
#include <memory>

#include "core/random/random.h"

namespace dpar::testing {

// SplitMix64 from a seed.
class FixedRandom final : public RandomSource {
 public:
  explicit FixedRandom(uint64_t seed) : state_(seed) {}

  void Fill(std::span<uint8_t> bytes) override;
  std::unique_ptr<RandomSource> Split() override;

 private:
  uint64_t state_;
};

}  // namespace dpar::testing

#endif  // DPAR_CORE_RANDOM_TESTING_FIXED_RANDOM_H_
