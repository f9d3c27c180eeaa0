// Random sources with a fixed stream, for tests only: no production target links them, which the tidy test checks.
#ifndef DPAR_CORE_RANDOM_TESTING_FIXED_RANDOM_H_
#define DPAR_CORE_RANDOM_TESTING_FIXED_RANDOM_H_

#include <cstdint>
#include <memory>
#include <span>

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

// The same byte again and again: with 0x00 and 0xFF, the two ends of what bits that are still to be drawn leave open.
class ConstantRandom final : public RandomSource {
 public:
  explicit ConstantRandom(uint8_t byte) : byte_(byte) {}

  void Fill(std::span<uint8_t> bytes) override;
  std::unique_ptr<RandomSource> Split() override;

 private:
  uint8_t byte_;
};

}  // namespace dpar::testing

#endif  // DPAR_CORE_RANDOM_TESTING_FIXED_RANDOM_H_
