#include "core/random/lattice.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/random/noise.h"

namespace dpar {
namespace {

constexpr size_t kBlock = 1024;
constexpr int64_t kLargestSteps = int64_t{1} << 61U;
constexpr double kFewSteps = 0x1p50;

int64_t ToSteps(double value, double step) {
  constexpr auto kLargest = static_cast<double>(kLargestSteps);
  const double steps = value / step;
  if (!std::isfinite(value) || std::isnan(steps)) {
    return 0;
  }
  return std::llrint(std::clamp(steps, -kLargest, kLargest));
}

using FillSteps = void (*)(RandomSource&, double, std::span<int64_t>);

// x + kToWhole with |x| < 2^51 rounds to a whole number (ties to even), which its low bits hold: llrint, vectorised.
constexpr double kToWhole = 0x1.8p52;
[[gnu::always_inline]] inline double NearestInteger(double x) { return (x + kToWhole) - kToWhole; }
[[gnu::always_inline]] inline double WholeDouble(int64_t integer) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(kToWhole) + static_cast<uint64_t>(integer)) - kToWhole;
}

// Whether all values, in steps, and all noise are within kFewSteps of 0. Doubles that are not, or not finite, have bit
// patterns from kFewSteps's on; a negative difference has its highest bit set.
bool AreFewSteps(std::span<const double> values, double steps_per_unit, std::span<const int64_t> noise) {
  constexpr uint64_t kMagnitude = ~(uint64_t{1} << 63U);
  constexpr auto kFew = static_cast<uint64_t>(kFewSteps);
  uint64_t differences = 0;
  uint64_t shifted = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t steps = std::bit_cast<uint64_t>(values[i] * steps_per_unit) & kMagnitude;
    differences |= (std::bit_cast<uint64_t>(kFewSteps) - 1) - steps;
    shifted |= static_cast<uint64_t>(noise[i]) + kFew;
  }
  return (differences & ~kMagnitude) == 0 && shifted < 2 * kFew;
}

// values[i] = the sum of both in steps; gives the same bits as AddNoiseSteps where both apply.
void AddFewSteps(std::span<const int64_t> noise, double step, std::span<double> values) {
  const double steps_per_unit = 1 / step;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = (NearestInteger(values[i] * steps_per_unit) + WholeDouble(noise[i])) * step;
  }
}

void AddAnySteps(std::span<const int64_t> noise, double step, std::span<double> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = AddNoiseSteps(values[i], noise[i], step);
  }
}

void AddNoise(RandomSource& random, FillSteps fill, double scale, int lattice_bits, std::span<double> values) {
  const double step = LatticeStep(scale, lattice_bits);
  const double steps_per_scale = StepsPerScale(scale, lattice_bits);
  std::array<int64_t, kBlock> noise{};
  while (!values.empty()) {
    const std::span<double> block = values.first(std::min(values.size(), kBlock));
    const std::span<int64_t> block_noise = std::span(noise).first(block.size());
    fill(random, steps_per_scale, block_noise);
    if (std::isfinite(1 / step) && AreFewSteps(block, 1 / step, block_noise)) {
      AddFewSteps(block_noise, step, block);
    } else {
      AddAnySteps(block_noise, step, block);
    }
    values = values.subspan(block.size());
  }
}

}  // namespace

double LatticeStep(double noise_scale, int lattice_bits) {
  return std::ldexp(1.0, std::ilogb(noise_scale) - lattice_bits);
}

double StepsPerScale(double noise_scale, int lattice_bits) {
  return std::ldexp(noise_scale, lattice_bits - std::ilogb(noise_scale));
}

double TruncateToLattice(double value, double step) { return std::trunc(value / step) * step; }

double AddNoiseSteps(double value, int64_t noise_steps, double step) {
  // Bounds the sum, not the noise, so that the release is a function of the sum.
  static_assert(kLargestNoiseSteps - kLargestSteps >= kLargestSteps,
                "noise at its bound makes every sum reach its own");
  const int64_t released = std::clamp(ToSteps(value, step) + noise_steps, -kLargestSteps, kLargestSteps);
  return static_cast<double>(released) * step;
}

void AddLatticeNoise(RandomSource& random, double noise_stddev, int lattice_bits, std::span<double> values) {
  AddNoise(random, FillGaussianSteps, noise_stddev, lattice_bits, values);
}

void AddLatticeLaplace(RandomSource& random, double scale, int lattice_bits, std::span<double> values) {
  AddNoise(random, FillLaplaceSteps, scale, lattice_bits, values);
}

}  // namespace dpar
