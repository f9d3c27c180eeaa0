#include "core/random/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

namespace dpar {
namespace {

constexpr double kUniformStep = 0x1p-53;
// Pairs of normals made from one request of random bytes.
constexpr size_t kPairsPerBlock = 512;

// A multiple of 2^-53 in (0, 1].
double HalfOpenReal(uint64_t bits) { return static_cast<double>((bits >> 11U) + 1) * kUniformStep; }

// Uniform in (0, 1], so that its logarithm is finite. Near 0 in steps of 2^-64: large radii come from there, and in
// steps of 2^-53 they would lie further apart than the lattice.
double RadiusUniform(uint64_t bits) { return (static_cast<double>(bits) + 1) * 0x1p-64; }

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
  // Values below 2^64 mod bound would make the small remainders likelier than the others.
  const uint64_t rejected = (0 - bound) % bound;
  uint64_t bits = UniformBits(random);
  while (bits < rejected) {
    bits = UniformBits(random);
  }
  return bits % bound;
}

void FillGaussian(RandomSource& random, std::span<double> out) {
  std::array<uint64_t, 2 * kPairsPerBlock> bits{};
  size_t done = 0;
  while (done < out.size()) {
    const size_t pairs = std::min(kPairsPerBlock, (out.size() - done + 1) / 2);
    random.Fill({reinterpret_cast<uint8_t*>(bits.data()), 2 * pairs * sizeof(uint64_t)});
    for (size_t i = 0; i < pairs; ++i) {
      const double radius = std::sqrt(-2 * std::log(RadiusUniform(bits[2 * i])));
      const double angle = 2 * std::numbers::pi * HalfOpenReal(bits[2 * i + 1]);
      out[done++] = radius * std::cos(angle);
      if (done < out.size()) {
        out[done++] = radius * std::sin(angle);
      }
    }
  }
}

}  // namespace dpar
