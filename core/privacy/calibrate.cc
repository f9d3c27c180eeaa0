#include "core/privacy/calibrate.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/privacy/accountant.h"
#include "core/privacy/event.h"
#include "core/privacy/flat_event.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr double kLeastNoise = kMinNoiseMultiplier;
constexpr double kMostNoise = kMaxNoiseMultiplier;
constexpr double kTolerance = 2e-6;
constexpr double kGaussianTolerance = 1e-12;
constexpr double kRoughTolerance = 2e-3;  // of the first, rough search
constexpr PldPrecision kRough = {1e-3};
// A grid of 1e-4 overstates epsilon by T (t + 1) 1e-8 / 12, mostly below 1e-4 of it. A finer one is not worth its time.
constexpr PldPrecision kFine = {1.6e-5, 1e-4};
constexpr double kLogOfNothing = -700;

absl::Status Unreachable(double epsilon, double delta) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::PRIVACY_UNREACHABLE,
                   absl::StrCat("no noise up to ", kMostNoise, " times the sensitivity meets epsilon ", epsilon,
                                " at delta ", delta, "; ask for a larger epsilon or delta, or for fewer steps"),
                   {{"epsilon", absl::StrCat(epsilon)}, {"delta", absl::StrCat(delta)}});
}

// ln(delta(x) / delta), which falls as x rises; at most 0 where the noise x meets the target.
class Excess {
 public:
  Excess(const std::function<v1::PrivacyEvent(double)>& event_at, double epsilon, double delta)
      : event_at_(event_at), epsilon_(epsilon), log_delta_(std::log(delta)) {}

  absl::StatusOr<double> operator()(double x, const PldPrecision& precision) const {
    DPAR_ASSIGN_OR_RETURN(const double delta, EventDelta(event_at_(x), epsilon_, precision));
    return (delta > 0 ? std::log(delta) : kLogOfNothing) - log_delta_;
  }

 private:
  const std::function<v1::PrivacyEvent(double)>& event_at_;
  double epsilon_;
  double log_delta_;
};

double NoiseAt(double log_x) { return std::clamp(std::exp(log_x), kLeastNoise, kMostNoise); }

struct Point {
  double log_x = 0;
  double excess = 0;
};

struct Bracket {
  Point low;   // does not meet the target
  Point high;  // does
  [[nodiscard]] double width() const { return high.log_x - low.log_x; }
  [[nodiscard]] double slope() const { return (high.excess - low.excess) / width(); }
};

enum class Found { kBracket, kBelowRange, kUnreachable };

// The probability that the node is in any sample: delta without noise.
double SampledChance(const FlatEvent& event) {
  if (event.gaussian_mu > 0 || !event.laplaces.empty() || !event.selections.empty()) {
    return 1;
  }
  double log_never = 0;
  for (const auto& [mixture, count] : event.mixtures) {
    log_never += static_cast<double>(count) * static_cast<double>(mixture.rows) * std::log1p(-mixture.sampling_rate);
  }
  for (const auto& [change, count] : event.changes) {
    const double rows = static_cast<double>(change.changed_rows) + 1;
    log_never += static_cast<double>(count) * rows * std::log1p(-change.sampling_rate);
  }
  for (const SampledEvent& sampled : event.sampled) {
    log_never += static_cast<double>(sampled.count) * std::log1p(-sampled.sampling_rate * SampledChance(sampled.inner));
  }
  return -std::expm1(log_never);
}

absl::StatusOr<Found> FindBracket(const Excess& excess, Bracket& bracket) {
  DPAR_ASSIGN_OR_RETURN(const double first, excess(1, kRough));
  bracket.low = bracket.high = {0, first};
  while (bracket.high.excess > 0) {
    if (bracket.high.log_x >= std::log(kMostNoise)) {
      return Found::kUnreachable;
    }
    bracket.low = bracket.high;
    bracket.high.log_x = std::min(bracket.high.log_x + std::log(2.0), std::log(kMostNoise));
    DPAR_ASSIGN_OR_RETURN(bracket.high.excess, excess(NoiseAt(bracket.high.log_x), kRough));
  }
  while (bracket.low.excess <= 0) {
    if (bracket.low.log_x <= std::log(kLeastNoise)) {
      return Found::kBelowRange;
    }
    bracket.high = bracket.low;
    bracket.low.log_x = std::max(bracket.low.log_x - std::log(2.0), std::log(kLeastNoise));
    DPAR_ASSIGN_OR_RETURN(bracket.low.excess, excess(NoiseAt(bracket.low.log_x), kRough));
  }
  return Found::kBracket;
}

// Where the excess is about 0, its slope in ln x there, and the last points on either side.
struct Root {
  double log_x = 0;
  double slope = 0;
  Bracket bracket;
};

// The secant method; bisection whenever a step does not halve the bracket, as where delta drops to 0 at once.
absl::StatusOr<Root> FindRoot(const Excess& excess, Bracket bracket) {
  double slope = bracket.slope();
  Point last = bracket.low;
  bool bisect = false;
  while (true) {
    double log_x = last.log_x - last.excess / slope;
    if (bisect || !(log_x > bracket.low.log_x && log_x < bracket.high.log_x)) {
      log_x = bracket.low.log_x + bracket.width() / 2;
    }
    const double step = log_x - last.log_x;
    if (std::fabs(step) < kRoughTolerance || bracket.width() < kRoughTolerance) {
      return Root{log_x, std::min(-1e-3, slope), bracket};
    }
    Point next = {log_x, 0};
    DPAR_ASSIGN_OR_RETURN(next.excess, excess(NoiseAt(next.log_x), kRough));
    const double width = bracket.width();
    (next.excess > 0 ? bracket.low : bracket.high) = next;
    bisect = !bisect && bracket.width() > width / 2;
    slope = (next.excess - last.excess) / step;
    last = next;
  }
}

// Newton's method at full precision until noise that meets the target and noise that does not are within the tolerance.
// Steps aim a little above the root and, once the target is met, a tolerance below. Bisection after a few steps.
absl::StatusOr<double> Polish(const Excess& excess, const Root& root, double tolerance) {
  constexpr int kNewtonSteps = 6;
  constexpr int kMaxSteps = 200;
  double low = root.bracket.low.log_x - 2 * kRoughTolerance;
  double high = root.bracket.high.log_x + 2 * kRoughTolerance;
  bool met = false;
  double log_x = root.log_x;
  for (int i = 0; i < kMaxSteps && (!met || high - low > tolerance * 1.01); ++i) {
    DPAR_ASSIGN_OR_RETURN(const double at, excess(NoiseAt(log_x), kFine));
    met = met || at <= 0;
    (at <= 0 ? high : low) = log_x;
    if (!met && high - low < kRoughTolerance) {
      high = std::min(std::log(kMostNoise), high + 1);  // the rough search was misled
    }
    double next = log_x - at / root.slope + tolerance / 3;
    if (met && next >= high - tolerance / 2) {
      next = high - tolerance;
    }
    const bool newton = i < kNewtonSteps && next > low && next < high;
    log_x = newton ? next : low + (high - low) / 2;
  }
  return NoiseAt(high);
}

}  // namespace

v1::PrivacyEvent ScaleNoise(const v1::PrivacyEvent& event, double x) {
  v1::PrivacyEvent scaled = event;
  switch (event.event_case()) {
    case v1::PrivacyEvent::kGaussian:
      scaled.mutable_gaussian()->set_noise_stddev(event.gaussian().noise_stddev() * x);
      break;
    case v1::PrivacyEvent::kLaplace:
      scaled.mutable_laplace()->set_scale(event.laplace().scale() * x);
      break;
    case v1::PrivacyEvent::kPoissonGaussian:
      scaled.mutable_poisson_gaussian()->set_noise_stddev(event.poisson_gaussian().noise_stddev() * x);
      break;
    case v1::PrivacyEvent::kRowMixture:
      scaled.mutable_row_mixture()->set_noise_stddev(event.row_mixture().noise_stddev() * x);
      break;
    case v1::PrivacyEvent::kRowChange:
      scaled.mutable_row_change()->set_noise_stddev(event.row_change().noise_stddev() * x);
      break;
    case v1::PrivacyEvent::kBoundedRange:
      scaled.mutable_bounded_range()->set_range(event.bounded_range().range() / x);
      break;
    case v1::PrivacyEvent::kComposition:
      for (v1::PrivacyEvent& part : *scaled.mutable_composition()->mutable_events()) {
        part = ScaleNoise(part, x);
      }
      break;
    case v1::PrivacyEvent::kRepetition:
      *scaled.mutable_repetition()->mutable_event() = ScaleNoise(event.repetition().event(), x);
      break;
    case v1::PrivacyEvent::kNodeSampling:
      *scaled.mutable_node_sampling()->mutable_event() = ScaleNoise(event.node_sampling().event(), x);
      break;
    case v1::PrivacyEvent::kStage:
      *scaled.mutable_stage()->mutable_event() = ScaleNoise(event.stage().event(), x);
      break;
    case v1::PrivacyEvent::EVENT_NOT_SET:
      break;
  }
  return scaled;
}

absl::StatusOr<double> CalibrateNoise(const std::function<v1::PrivacyEvent(double)>& event_at, double epsilon,
                                      double delta) {
  DPAR_RETURN_IF_ERROR(ValidatePositive("epsilon", epsilon, kMaxTargetEpsilon));
  DPAR_RETURN_IF_ERROR(ValidateProbability("delta", delta));
  DPAR_ASSIGN_OR_RETURN(const FlatEvent flat, Flatten(event_at(1)));
  constexpr double kRoundingRoom = 1 + 1e-15;
  if (SampledChance(flat) <= delta * kRoundingRoom) {
    return 0.0;
  }
  const Excess excess(event_at, epsilon, delta);
  Bracket bracket;
  DPAR_ASSIGN_OR_RETURN(const Found found, FindBracket(excess, bracket));
  if (found == Found::kUnreachable) {
    return Unreachable(epsilon, delta);
  }
  const double tolerance = flat.IsGaussian() ? kGaussianTolerance : kTolerance;
  double noise = kLeastNoise;
  if (found == Found::kBracket) {
    DPAR_ASSIGN_OR_RETURN(const Root root, FindRoot(excess, bracket));
    DPAR_ASSIGN_OR_RETURN(noise, Polish(excess, root, tolerance));
  }
  for (double nudge = tolerance;; nudge *= 2) {
    DPAR_ASSIGN_OR_RETURN(const double cost, EventEpsilon(event_at(noise), delta));
    if (cost <= epsilon) {
      return noise;
    }
    noise *= 1 + nudge;
  }
}

}  // namespace dpar
