#include "core/train/class_shares.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>

#include "core/infer/label_shift.h"
#include "core/infer/logits.h"
#include "core/plan/plan_event.h"
#include "core/random/lattice.h"

namespace dpar {
namespace {

constexpr double kUnitGuard = 1 - 0x1p-24;  // keeps |p| <= 1 despite the rounding of its sum
// Of the equal share n / c: keeps a class that noise made rare from a correction without bound.
constexpr double kLeastShare = 0.05;

// Logits are finite and bounded, so the sum of exponentials is at least 1 and at most c.
void AddProbabilities(std::span<const float> logits, double scale, std::vector<double>& p, std::vector<double>& sum) {
  const double most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::transform(logits.begin(), logits.end(), p.begin(),
                 [&](float logit) { return std::exp(scale * (static_cast<double>(logit) - most)); });
  const double share = kUnitGuard / std::accumulate(p.begin(), p.end(), 0.0);
  std::transform(sum.begin(), sum.end(), p.begin(), sum.begin(), [&](double s, double e) { return s + share * e; });
}

}  // namespace

absl::StatusOr<std::vector<double>> NoisyClassSums(const v1::Plan& plan, const Model& model, const GraphView& graph,
                                                   int threads, RandomSource& random,
                                                   const std::function<bool()>& keep_going) {
  const auto classes = static_cast<size_t>(graph.sizes.class_count);
  const double scale = ScoreScale(model.logit_noise);
  std::vector<double> sums(classes, 0.0);
  std::vector<double> p(classes);
  for (int64_t first = 0; first < graph.sizes.node_count; first += kSummationBlock) {
    const int64_t count = std::min(kSummationBlock, graph.sizes.node_count - first);
    const absl::StatusOr<NodeMatrix> logits = Logits(model, graph.features.rows(first, count), threads, keep_going);
    if (!logits.ok()) {
      return absl::CancelledError("training was cancelled");
    }
    std::vector<double> block(classes, 0.0);
    for (int64_t row = 0; row < count; ++row) {
      if (graph.labels[static_cast<size_t>(first + row)] != kUnlabelled) {
        AddProbabilities({logits->row(row).data(), classes}, scale, p, block);
      }
    }
    std::transform(sums.begin(), sums.end(), block.begin(), sums.begin(), std::plus<>());
  }
  if (!plan.non_private()) {
    AddLatticeNoise(random, plan.class_shares().noise_stddev(), plan.lattice_bits(), sums);
  }
  return sums;
}

std::vector<float> ClassShares(const v1::Plan& plan, const std::vector<double>& sums) {
  const double expected = plan.node_sampling_rate() * static_cast<double>(plan.training_slots());
  const double least = kLeastShare * expected / static_cast<double>(sums.size());
  const auto kept = [least](double sum) { return std::fmax(sum, least); };
  const double total = std::transform_reduce(sums.begin(), sums.end(), 0.0, std::plus<>(), kept);
  std::vector<float> shares(sums.size());
  std::transform(sums.begin(), sums.end(), shares.begin(),
                 [&](double sum) { return static_cast<float>(kept(sum) / total); });
  return shares;
}

}  // namespace dpar
