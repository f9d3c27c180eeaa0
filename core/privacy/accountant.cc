#include "core/privacy/accountant.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/privacy/gaussian.h"
#include "core/privacy/renyi.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr double kRoundUp = 1 + 16 * std::numeric_limits<double>::epsilon();
constexpr PldPrecision kRough = {1e-3};  // usually enough to see which direction is the larger
// Losses of bounded support are cheap to cut this much finer. Beside a Gaussian, whose window is wide, it would take
// most of a second.
constexpr double kBoundedLossShare = 1.0 / 80;

const SampledEvent* AsSample(const FlatEvent& event) {
  const bool only = event.gaussian_mu == 0 && event.mixtures.empty() && event.changes.empty() &&
                    event.laplaces.empty() && event.selections.empty() && event.sampled.size() == 1 &&
                    event.sampled.front().count == 1;
  return only ? &event.sampled.front() : nullptr;
}

bool HasSelections(const FlatEvent& event) {
  return !event.selections.empty() ||
         std::any_of(event.sampled.begin(), event.sampled.end(),
                     [](const SampledEvent& sampled) { return HasSelections(sampled.inner); });
}

// Renyi divergences can be the better bound for selections, and for samples composed with something else, whose
// rounding errors count as infinite loss.
bool NeedsRenyi(const FlatEvent& event) {
  return HasSelections(event) || (!event.sampled.empty() && AsSample(event) == nullptr);
}

bool IsSymmetric(const FlatEvent& event) { return event.mixtures.empty() && event.sampled.empty(); }

PldPrecision PrecisionFor(const FlatEvent& event, const PldPrecision& precision) {
  const bool bounded = IsSymmetric(event) && event.gaussian_mu == 0 && event.changes.empty();
  return bounded ? PldPrecision{precision.fraction * kBoundedLossShare} : precision;
}

// ln(1 + q (e^eps - 1)).
double AmplifiedRemoval(double rate, double epsilon) {
  constexpr double kLarge = 500;
  return epsilon < kLarge ? std::log1p(rate * std::expm1(epsilon)) : epsilon + std::log(rate);
}

// x - ln(q + (1-q) e^x).
double AmplifiedAddition(double rate, double x) { return -std::log1p(rate * std::expm1(-x)); }

absl::StatusOr<double> Epsilon(const FlatEvent& event, double delta, Direction direction,
                               const PldPrecision& precision);
absl::StatusOr<double> Delta(const FlatEvent& event, double epsilon, Direction direction,
                             const PldPrecision& precision);

// The smallest x with q delta(x) <= delta' (q + (1-q) e^x).
absl::StatusOr<double> AdditionThreshold(const SampledEvent& sampled, double delta, const PldPrecision& precision) {
  const double rate = sampled.sampling_rate;
  const auto limit = [rate, delta](double x) { return delta * (1 + (1 - rate) / rate * std::exp(std::min(x, 700.0))); };
  DPAR_ASSIGN_OR_RETURN(double high, Epsilon(sampled.inner, std::min(limit(0), 0.5), Direction::kAdd,
                                             sampled.inner.IsGaussian() ? precision : kRough));
  if (!sampled.inner.IsGaussian()) {
    const double guess = std::min(limit(high), 0.5);
    return std::min(high, PldEpsilon(sampled.inner, Direction::kAdd, guess, precision, limit).value);
  }
  double low = 0;
  while (high - low > 1e-13 * high) {
    const double middle = (low + high) / 2;
    DPAR_ASSIGN_OR_RETURN(const double at, Delta(sampled.inner, middle, Direction::kAdd, precision));
    (at <= limit(middle) ? high : low) = middle;
  }
  return high;
}

absl::StatusOr<double> SampledEpsilon(const SampledEvent& sampled, double delta, Direction direction,
                                      const PldPrecision& precision) {
  if (delta >= sampled.sampling_rate) {
    return 0.0;  // no outcome has a chance more than q of telling
  }
  if (direction == Direction::kRemove) {
    DPAR_ASSIGN_OR_RETURN(const double inner,
                          Epsilon(sampled.inner, delta / sampled.sampling_rate / kRoundUp, direction, precision));
    return AmplifiedRemoval(sampled.sampling_rate, inner) * kRoundUp;
  }
  DPAR_ASSIGN_OR_RETURN(const double threshold, AdditionThreshold(sampled, delta / kRoundUp, precision));
  return AmplifiedAddition(sampled.sampling_rate, threshold) * kRoundUp;
}

absl::StatusOr<double> Epsilon(const FlatEvent& event, double delta, Direction direction,
                               const PldPrecision& precision) {
  if (event.IsGaussian()) {
    return event.gaussian_mu > 0 ? GaussianEpsilon(event.gaussian_mu, delta) : 0.0;
  }
  double epsilon = 0;
  if (const SampledEvent* sampled = AsSample(event)) {
    DPAR_ASSIGN_OR_RETURN(epsilon, SampledEpsilon(*sampled, delta, direction, precision));
  } else {
    epsilon = PldEpsilon(event, direction, delta, PrecisionFor(event, precision)).value;
  }
  if (NeedsRenyi(event) || std::isinf(epsilon)) {
    epsilon = std::min(epsilon, RenyiEpsilon(event, direction, delta));
  }
  return epsilon;
}

absl::StatusOr<double> SampledDelta(const SampledEvent& sampled, double epsilon, Direction direction,
                                    const PldPrecision& precision) {
  const double rate = sampled.sampling_rate;
  if (direction == Direction::kRemove) {
    const double inner_epsilon = epsilon < 500 ? std::log1p(std::expm1(epsilon) / rate) : epsilon - std::log(rate);
    DPAR_ASSIGN_OR_RETURN(const double inner,
                          Delta(sampled.inner, inner_epsilon * (2 - kRoundUp), direction, precision));
    return rate * inner * kRoundUp;
  }
  const double rest = std::expm1(-epsilon) + rate;
  if (rest <= 0) {
    return 0.0;
  }
  const double x = std::log(rate / rest) * (2 - kRoundUp);
  DPAR_ASSIGN_OR_RETURN(const double inner, Delta(sampled.inner, std::max(0.0, x), direction, precision));
  return rate * inner / (rate + (1 - rate) * std::exp(x)) * kRoundUp;
}

absl::StatusOr<double> Delta(const FlatEvent& event, double epsilon, Direction direction,
                             const PldPrecision& precision) {
  if (event.IsGaussian()) {
    return event.gaussian_mu > 0 ? GaussianDelta(event.gaussian_mu, epsilon) : 0.0;
  }
  double delta = 0;
  if (const SampledEvent* sampled = AsSample(event)) {
    DPAR_ASSIGN_OR_RETURN(delta, SampledDelta(*sampled, epsilon, direction, precision));
  } else {
    delta = PldDelta(event, direction, epsilon, PrecisionFor(event, precision)).value;
  }
  if (NeedsRenyi(event) || delta >= 1) {
    delta = std::min(delta, RenyiDelta(event, direction, epsilon));
  }
  return delta;
}

}  // namespace

absl::StatusOr<double> EventEpsilon(const v1::PrivacyEvent& event, double delta) {
  DPAR_ASSIGN_OR_RETURN(const FlatEvent flat, Flatten(event));
  return EventEpsilon(flat, delta);
}

absl::StatusOr<double> EventEpsilon(const FlatEvent& event, double delta) {
  DPAR_RETURN_IF_ERROR(ValidateProbability("delta", delta));
  DPAR_ASSIGN_OR_RETURN(const double remove, Epsilon(event, delta, Direction::kRemove, PldPrecision()));
  if (IsSymmetric(event)) {
    return remove;
  }
  DPAR_ASSIGN_OR_RETURN(const double rough_add, Epsilon(event, delta, Direction::kAdd, kRough));
  if (rough_add <= remove) {
    return remove;
  }
  DPAR_ASSIGN_OR_RETURN(const double add, Epsilon(event, delta, Direction::kAdd, PldPrecision()));
  return std::max(remove, add);
}

absl::StatusOr<double> EventEpsilon(const v1::PrivacyEvent& event, double delta, Direction direction) {
  DPAR_RETURN_IF_ERROR(ValidateProbability("delta", delta));
  DPAR_ASSIGN_OR_RETURN(const FlatEvent flat, Flatten(event));
  return Epsilon(flat, delta, direction, PldPrecision());
}

absl::StatusOr<double> EventDelta(const v1::PrivacyEvent& event, double epsilon) {
  return EventDelta(event, epsilon, PldPrecision());
}

absl::StatusOr<double> EventDelta(const v1::PrivacyEvent& event, double epsilon, const PldPrecision& precision) {
  DPAR_RETURN_IF_ERROR(ValidateRange("epsilon", epsilon, 0.0, std::numeric_limits<double>::max()));
  DPAR_ASSIGN_OR_RETURN(const FlatEvent flat, Flatten(event));
  DPAR_ASSIGN_OR_RETURN(const double remove, Delta(flat, epsilon, Direction::kRemove, precision));
  if (IsSymmetric(flat)) {
    return remove;
  }
  DPAR_ASSIGN_OR_RETURN(const double rough_add, Delta(flat, epsilon, Direction::kAdd, kRough));
  if (rough_add <= remove) {
    return remove;
  }
  DPAR_ASSIGN_OR_RETURN(const double add, Delta(flat, epsilon, Direction::kAdd, precision));
  return std::max(remove, add);
}

}  // namespace dpar
