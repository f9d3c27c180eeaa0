#include "core/privacy/published_rivals.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/error.h"
#include "core/privacy/event.h"
#include "core/privacy/flat_event.h"
#include "core/privacy/renyi.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

// (a - 1) R_a is convex, and so is what the conversions add to it; divided by a - 1 that falls and then rises.
double LeastOverOrders(const std::function<double(double)>& value) {
  const std::vector<double>& orders = RenyiOrders();
  size_t low = 0;
  size_t high = orders.size() - 1;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const bool rises = value(orders[middle]) <= value(orders[middle + 1]);
    (rises ? high : low) = rises ? middle : middle + 1;
  }
  return value(orders[low]);
}

double LogHypergeometric(double slots, double terms, double drawn, double found) {
  const auto log_choose = [](double n, double k) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
  };
  return log_choose(terms, found) + log_choose(slots - terms, drawn - found) - log_choose(slots, drawn);
}

double SageRenyi(const SagePipeline& pipeline, double order) {
  const auto slots = static_cast<double>(pipeline.slots);
  const double terms = std::min(static_cast<double>(pipeline.max_degree) + 1, slots);
  const auto drawn = static_cast<double>(pipeline.batch_size);
  std::vector<double> exponents;
  for (double found = std::max(0.0, drawn + terms - slots); found <= std::min(terms, drawn); ++found) {
    const double mu = 2 * found / pipeline.noise_multiplier;
    exponents.push_back(LogHypergeometric(slots, terms, drawn, found) + order * (order - 1) * mu * mu / 2);
  }
  const double largest = *std::max_element(exponents.begin(), exponents.end());
  double sum = 0;
  for (const double exponent : exponents) {
    sum += std::exp(exponent - largest);
  }
  return std::max(0.0, largest + std::log(sum)) / (order - 1);
}

absl::Status ValidateNoise(double noise_multiplier, int64_t steps, double delta) {
  DPAR_RETURN_IF_ERROR(ValidateRange("noise_multiplier", noise_multiplier, kMinNoiseMultiplier, kMaxNoiseMultiplier));
  DPAR_RETURN_IF_ERROR(ValidateRange("steps", steps, 1, kMaxEventCount));
  return ValidateProbability("delta", delta);
}

}  // namespace

absl::StatusOr<double> PublishedEpsilon(const GapPipeline& pipeline, double delta) {
  DPAR_RETURN_IF_ERROR(ValidateNoise(pipeline.noise_multiplier, pipeline.steps, delta));
  DPAR_RETURN_IF_ERROR(ValidateRange("max_degree", pipeline.max_degree, 1, kMaxEventCount));
  const double sensitivity = std::sqrt(static_cast<double>(pipeline.max_degree));
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent hops,
                        MakeGaussianEvent(sensitivity, pipeline.aggregation_noise, pipeline.hops));
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent step,
                        MakePoissonGaussianEvent(pipeline.sampling_rate, 1, pipeline.noise_multiplier));
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent steps, MakeRepetitionEvent(2 * pipeline.steps, step));
  DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent whole, MakeCompositionEvent({hops, steps}));
  DPAR_ASSIGN_OR_RETURN(const FlatEvent flat, Flatten(whole));
  return LeastOverOrders(
      [&](double order) { return RenyiOf(flat, order).In(Direction::kRemove) - std::log(delta) / (order - 1); });
}

absl::StatusOr<double> PublishedEpsilon(const SagePipeline& pipeline, double delta) {
  DPAR_RETURN_IF_ERROR(ValidateNoise(pipeline.noise_multiplier, pipeline.steps, delta));
  DPAR_RETURN_IF_ERROR(ValidateRange("max_degree", pipeline.max_degree, 1, kMaxEventCount));
  DPAR_RETURN_IF_ERROR(ValidateRange("slots", pipeline.slots, 1, kMaxEventCount * 4));
  DPAR_RETURN_IF_ERROR(ValidateRange("batch_size", pipeline.batch_size, 1, pipeline.slots));
  return LeastOverOrders([&](double order) {
    return RenyiToEpsilon(static_cast<double>(pipeline.steps) * SageRenyi(pipeline, order), order, delta);
  });
}

}  // namespace dpar
