#include "core/random/lattice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace dpar {
namespace {

constexpr size_t kBlock = 1024;
constexpr double kLargestSteps = 0x1p61;

// The value in lattice steps.
int64_t ToSteps(double value, double step) {
  const double steps = value / step;
  if (!std::isfinite(steps)) {
    return 0;
  }
  return std::llrint(std::clamp(steps, -kLargestSteps, kLargestSteps));
}

}  // namespace

double LatticeStep(double noise_stddev, int lattice_bits) {
  return std::ldexp(1.0, std::ilogb(noise_stddev) - lattice_bits);
}

void AddLatticeNoise(RandomSource& random, double noise_stddev, int lattice_bits, std::span<double> values) {
  const double step = LatticeStep(noise_stddev, lattice_bits);
  std::array<double, kBlock> noise{};
  while (!values.empty()) {
    const size_t size = std::min(values.size(), kBlock);
    FillGaussian(random, std::span(noise).first(size));
    for (size_t i = 0; i < size; ++i) {
      const int64_t released = ToSteps(values[i], step) + ToSteps(noise[i] * noise_stddev, step);
      values[i] = static_cast<double>(released) * step;
    }
    values = values.subspan(size);
  }
}

}  // namespace dpar
