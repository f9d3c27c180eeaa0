#include "core/random/lattice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/random/noise.h"

namespace dpar {
namespace {

constexpr size_t kBlock = 1024;
constexpr double kLargestSteps = 0x1p61;

// The value in lattice steps.
int64_t ToSteps(double value, double step) {
  const double steps = value / step;
  if (!std::isfinite(value) || std::isnan(steps)) {
    return 0;
  }
  return std::llrint(std::clamp(steps, -kLargestSteps, kLargestSteps));
}

using FillNoise = void (*)(RandomSource&, std::span<double>);

void AddNoise(RandomSource& random, FillNoise fill, double scale, int lattice_bits, std::span<double> values) {
  const double step = LatticeStep(scale, lattice_bits);
  std::array<double, kBlock> noise{};
  while (!values.empty()) {
    const size_t size = std::min(values.size(), kBlock);
    fill(random, std::span(noise).first(size));
    for (size_t i = 0; i < size; ++i) {
      const int64_t released = ToSteps(values[i], step) + ToSteps(noise[i] * scale, step);
      values[i] = static_cast<double>(released) * step;
    }
    values = values.subspan(size);
  }
}

}  // namespace

double LatticeStep(double noise_scale, int lattice_bits) {
  return std::ldexp(1.0, std::ilogb(noise_scale) - lattice_bits);
}

double RoundToLattice(double value, double step) { return std::nearbyint(value / step) * step; }

double TruncateToLattice(double value, double step) { return std::trunc(value / step) * step; }

void AddLatticeNoise(RandomSource& random, double noise_stddev, int lattice_bits, std::span<double> values) {
  AddNoise(random, FillGaussian, noise_stddev, lattice_bits, values);
}

void AddLatticeLaplace(RandomSource& random, double scale, int lattice_bits, std::span<double> values) {
  AddNoise(random, FillLaplace, scale, lattice_bits, values);
}

}  // namespace dpar
