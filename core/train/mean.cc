#include "core/train/mean.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/infer/input_rows.h"
#include "core/pace.h"
#include "core/plan/plan_event.h"
#include "core/random/lattice.h"

namespace dpar {
namespace {

constexpr double kUnitGuard = 1 - 0x1p-24;  // keeps |u| <= 1 despite the rounding of its norm

void AddUnitRow(v1::Transform transform, std::span<const int32_t> columns, std::span<const float> values,
                std::vector<float>& phi, std::vector<double>& sum) {
  phi.resize(values.size());
  TransformEntries(transform, values, phi);
  double square = 0;
  for (const float value : phi) {
    square += static_cast<double>(value) * static_cast<double>(value);
  }
  if (square == 0) {
    return;
  }
  const double scale = kUnitGuard / std::sqrt(square);
  for (size_t i = 0; i < columns.size(); ++i) {
    sum[static_cast<size_t>(columns[i])] += scale * static_cast<double>(phi[i]);
  }
}

}  // namespace

absl::StatusOr<std::vector<float>> PrivateMean(const v1::Plan& plan, const GraphView& graph, RandomSource& random,
                                               const std::function<bool()>& keep_going) {
  const auto d = static_cast<size_t>(graph.sizes.feature_count);
  std::vector<double> sum(d, 0.0);
  std::vector<double> block(d, 0.0);
  std::vector<float> phi;
  Pace pace(keep_going);
  for (int64_t first = 0; first < graph.sizes.node_count; first += kSummationBlock) {
    std::fill(block.begin(), block.end(), 0.0);
    for (int64_t slot = first; slot < std::min(first + kSummationBlock, graph.sizes.node_count); ++slot) {
      const auto values = graph.features.row_values(slot);
      if (!pace.GoOn(static_cast<int64_t>(values.size()))) {
        return absl::CancelledError("training was cancelled");
      }
      AddUnitRow(plan.transform(), graph.features.row_columns(slot), values, phi, block);
    }
    std::transform(sum.begin(), sum.end(), block.begin(), sum.begin(), std::plus<>());
  }
  const double noise = plan.mean().noise_stddev();
  if (!plan.non_private()) {
    AddLatticeNoise(random, noise, plan.lattice_bits(), sum);
  }
  const double square = std::inner_product(sum.begin(), sum.end(), sum.begin(), 0.0);
  const double expected = plan.node_sampling_rate() * static_cast<double>(plan.training_slots());
  const double shrink = square > 0 ? std::fmax(0, 1 - static_cast<double>(d) * noise * noise / square) : 0;
  std::vector<float> mean(d);
  std::transform(sum.begin(), sum.end(), mean.begin(),
                 [&](double value) { return static_cast<float>(value * shrink / expected); });
  return mean;
}

}  // namespace dpar
