#include "core/privacy/published.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/privacy/event.h"
#include "core/privacy/flat_event.h"
#include "core/privacy/renyi.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

absl::Status ValidatePipeline(const DparPipeline& pipeline) {
  if (pipeline.method != ApprMethod::kNone) {
    DPAR_RETURN_IF_ERROR(ValidateRange("seeds", pipeline.seeds, 1, kMaxSeeds));
    DPAR_RETURN_IF_ERROR(ValidateRange("top_k", pipeline.top_k, 1, kMaxTopK));
    DPAR_RETURN_IF_ERROR(ValidateRange("appr_noise", pipeline.appr_noise, kMinNoiseMultiplier, kMaxNoiseMultiplier));
  }
  if (pipeline.method == ApprMethod::kEm1) {
    DPAR_RETURN_IF_ERROR(ValidateRange("value_noise", pipeline.value_noise, kMinNoiseMultiplier, kMaxNoiseMultiplier));
  }
  DPAR_RETURN_IF_ERROR(ValidateRange("sampling_rate", pipeline.sampling_rate, 0.0, 1.0));
  DPAR_RETURN_IF_ERROR(
      ValidateRange("noise_multiplier", pipeline.noise_multiplier, kMinNoiseMultiplier, kMaxNoiseMultiplier));
  DPAR_RETURN_IF_ERROR(ValidateRange("steps", pipeline.steps, 1, kMaxEventCount));
  DPAR_RETURN_IF_ERROR(ValidateRange("max_occurrence", pipeline.max_occurrence, 0, kMaxEventRows - 1));
  return ValidatePositive("node_sampling_rate", pipeline.node_sampling_rate, 1);
}

double RowEpsilon(const DparPipeline& pipeline, double delta) {
  const double unit = 1 / pipeline.appr_noise;
  if (pipeline.method == ApprMethod::kGm) {
    return std::sqrt(2 * std::log(1.25 / delta)) * unit;
  }
  const auto k = static_cast<double>(pipeline.top_k);
  const double advanced = k * unit * std::tanh(unit) + unit * std::sqrt(2 * k * std::log(1 / delta));
  const double indices = 2 * std::min(k * unit, advanced);
  return indices + (pipeline.method == ApprMethod::kEm1 ? k / pipeline.value_noise : 0);
}

// Solves row = e_g / (2 sqrt(M ln(e + e_g / delta))), whose right-hand side rises with e_g.
double ComposeRows(double row, double seeds, double delta) {
  const auto right = [&](double total) {
    return total / (2 * std::sqrt(seeds * std::log(std::exp(1.0) + total / delta)));
  };
  double low = 0;
  double high = row;
  while (right(high) < row) {
    high *= 2;
  }
  while (high - low > 1e-13 * high) {
    const double middle = low + (high - low) / 2;
    (right(middle) < row ? low : high) = middle;
  }
  return high;
}

// Epsilon of the moments accountant with the conversion of the released code, eps = R_a - ln(delta) / (a - 1), as in
// the paper's figures. (a - 1) R_a is convex, so eps falls and then rises with a: bisection finds the best order.
double MomentsEpsilon(const FlatEvent& steps, double delta) {
  const std::vector<double>& orders = RenyiOrders();
  const auto epsilon = [&](size_t i) {
    return RenyiOf(steps, orders[i]).In(Direction::kRemove) - std::log(delta) / (orders[i] - 1);
  };
  size_t low = 0;
  size_t high = orders.size() - 1;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const bool rises = epsilon(middle) <= epsilon(middle + 1);
    (rises ? high : low) = rises ? middle : middle + 1;
  }
  return epsilon(low);
}

}  // namespace

absl::StatusOr<PublishedClaim> PublishedEpsilon(const DparPipeline& pipeline, double delta) {
  DPAR_RETURN_IF_ERROR(ValidatePipeline(pipeline));
  DPAR_RETURN_IF_ERROR(ValidateProbability("delta", delta));
  PublishedClaim cost;
  const bool has_appr = pipeline.method != ApprMethod::kNone;
  cost.sgd_delta = delta / ((has_appr ? 2 : 1) * pipeline.node_sampling_rate);
  if (!(cost.sgd_delta < 1)) {
    return InvalidField("delta", "delta must be below twice the node_sampling_rate for the published theorems");
  }
  if (has_appr) {
    const auto seeds = static_cast<double>(pipeline.seeds);
    cost.appr_delta = cost.sgd_delta;
    cost.appr_epsilon = ComposeRows(RowEpsilon(pipeline, cost.appr_delta / (2 * seeds)), seeds, cost.appr_delta);
  }
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent step,
                        MakePoissonGaussianEvent(pipeline.sampling_rate, 1, pipeline.noise_multiplier));
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent steps, MakeRepetitionEvent(pipeline.steps, step));
  DPAR_ASSIGN_OR_RETURN(const FlatEvent flat, Flatten(steps));
  cost.sgd_epsilon = MomentsEpsilon(flat, cost.sgd_delta);
  cost.epsilon = pipeline.node_sampling_rate * (cost.appr_epsilon + cost.sgd_epsilon);
  return cost;
}

absl::StatusOr<v1::PrivacyEvent> SoundEvent(const DparPipeline& pipeline) {
  DPAR_RETURN_IF_ERROR(ValidatePipeline(pipeline));
  const int64_t entries = pipeline.seeds * pipeline.top_k;
  std::vector<v1::PrivacyEvent> parts;
  if (pipeline.method == ApprMethod::kGm) {
    const double sensitivity = std::sqrt(2 * static_cast<double>(pipeline.seeds)) * (1 + 1e-15);
    DPAR_ASSIGN_OR_RETURN(parts.emplace_back(), MakeGaussianEvent(sensitivity, pipeline.appr_noise, 1));
  } else if (pipeline.method != ApprMethod::kNone) {
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent selection, MakeBoundedRangeEvent(2 / pipeline.appr_noise));
    DPAR_ASSIGN_OR_RETURN(parts.emplace_back(), MakeRepetitionEvent(entries, selection));
  }
  if (pipeline.method == ApprMethod::kEm1) {
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent value, MakeLaplaceEvent(1, pipeline.value_noise));
    DPAR_ASSIGN_OR_RETURN(parts.emplace_back(), MakeRepetitionEvent(entries, value));
  }
  DPAR_ASSIGN_OR_RETURN(
      const v1::PrivacyEvent step,
      MakeRowMixtureEvent(1 + pipeline.max_occurrence, pipeline.sampling_rate, 1, pipeline.noise_multiplier));
  DPAR_ASSIGN_OR_RETURN(parts.emplace_back(), MakeRepetitionEvent(pipeline.steps, step));
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent whole, MakeCompositionEvent(parts));
  return pipeline.node_sampling_rate == 1 ? whole : MakeNodeSamplingEvent(pipeline.node_sampling_rate, whole);
}

}  // namespace dpar
