#include "core/random/random.h"

#include <array>
#include <cstring>

namespace dpar {
namespace {

constexpr double kUniformStep = 0x1p-53;

}  // namespace

uint64_t UniformBits(RandomSource& random) {
  std::array<uint8_t, sizeof(uint64_t)> bytes{};
  random.Fill(bytes);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

double UniformReal(RandomSource& random) {
  return static_cast<double>((UniformBits(random) >> 11U) | 1U) * kUniformStep;
}

uint64_t UniformBelow(RandomSource& random, uint64_t bound) {
  // Values below 2^64 mod bound would favour small remainders.
  const uint64_t rejected = (0 - bound) % bound;
  uint64_t bits = UniformBits(random);
  while (bits < rejected) {
    bits = UniformBits(random);
  }
  return bits % bound;
}

}  // namespace dpar
