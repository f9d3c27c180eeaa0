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
constexpr double kFewSteps = 0x1p50;
constexpr double kLargestNoise = 45;  // of any sampler, in scales

// The value in lattice steps.
int64_t ToSteps(double value, double step) {
  const double steps = value / step;
  if (!std::isfinite(value) || std::isnan(steps)) {
    return 0;
  }
  return std::llrint(std::clamp(steps, -kLargestSteps, kLargestSteps));
}

using FillNoise = void (*)(RandomSource&, std::span<double>);

// The nearest integer, of equally near ones the even one, for |x| < 2^51: what llrint gives, in vector instructions.
[[gnu::always_inline]] inline double NearestInteger(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// Whether all values are finite and within kFewSteps of 0.
bool AreFewSteps(std::span<const double> values, double steps_per_unit) {
  bool few = true;
  for (const double value : values) {
    few &= std::abs(value * steps_per_unit) < kFewSteps;
  }
  return few;
}

// values[i] = the sum of both in steps, rounded each. The two forms give the same bits where both may be used.
void AddFewSteps(std::span<const double> noise, double scale, double step, std::span<double> values) {
  const double steps_per_unit = 1 / step;
  for (size_t i = 0; i < values.size(); ++i) {
    const double value_steps = NearestInteger(values[i] * steps_per_unit);
    values[i] = (value_steps + NearestInteger(noise[i] * (scale * steps_per_unit))) * step;
  }
}

void AddAnySteps(std::span<const double> noise, double scale, double step, std::span<double> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t released = ToSteps(values[i], step) + ToSteps(noise[i] * scale, step);
    values[i] = static_cast<double>(released) * step;
  }
}

void AddNoise(RandomSource& random, FillNoise fill, double scale, int lattice_bits, std::span<double> values) {
  const double step = LatticeStep(scale, lattice_bits);
  const bool noise_is_few_steps = kLargestNoise * (scale / step) < kFewSteps && std::isfinite(1 / step);
  std::array<double, kBlock> noise{};
  while (!values.empty()) {
    const std::span<double> block = values.first(std::min(values.size(), kBlock));
    const std::span<double> block_noise = std::span(noise).first(block.size());
    fill(random, block_noise);
    if (noise_is_few_steps && AreFewSteps(block, 1 / step)) {
      AddFewSteps(block_noise, scale, step, block);
    } else {
      AddAnySteps(block_noise, scale, step, block);
    }
    values = values.subspan(block.size());
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
