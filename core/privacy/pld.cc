#include "core/privacy/pld.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/privacy/composed_loss.h"
#include "core/privacy/fourier.h"
#include "core/privacy/loss_sources.h"

namespace dpar {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSmallestTilt = 1e-7;
constexpr double kLargestTilt = 1e8;
// The error's estimate assumes a loss that is smooth on the scale of its spread; that of few steps is not.
constexpr double kSmallestGridSize = 0x1p15;
constexpr double kSmallestRoughGridSize = 0x1p12;
constexpr double kLargestGridSize = 0x1p23;
// Delta takes half the step, a quarter of the error, so that delta at the epsilon for a delta does not exceed it.
constexpr double kDeltaRefinement = 2;
constexpr PldPrecision kRoughPrecision = {1e-2};
constexpr double kRoughFraction = 1e-4;  // and above
constexpr double kSettled = 0.98;
constexpr double kRoughErrors = 3;
constexpr int kMaxAttempts = 12;
constexpr double kInfiniteMassMargin = 1e-9;
constexpr int64_t kManySteps = 200;
constexpr double kFirstNudge = 1e-7;  // of epsilon
constexpr double kSmallestNudge = 1e-12;
constexpr int kMaxNudges = 20;
// For a single run of a mechanism: how much finer than the survey it is cut, and its rounding margin.
constexpr double kSingleRefinement = 64;
constexpr double kSingleMassMargin = 1e-12;
constexpr double kSingleRoom = 3e-6;  // delta may be cut elsewhere
constexpr double kSingleLossMargin = 0x1p-50;
constexpr double kTailShare = 1e-10;  // cut from all mechanisms, relative to delta
constexpr double kModerateTail = 1e-32;
constexpr double kSmallestTail = 1e-290;
constexpr double kLogWindowShare = -20;  // mass outside the window, relative to delta: 2e-9
constexpr double kLogSlack = 10;         // the conversion mostly overstates delta by less

double TotalCount(const std::vector<LossSource>& sources) {
  double total = 0;
  for (const LossSource& source : sources) {
    total += static_cast<double>(source.count);
  }
  return total;
}

double TotalCount(const FlatEvent& event) {
  double total = 1;
  for (const auto& [mixture, count] : event.mixtures) {
    total += static_cast<double>(count);
  }
  for (const auto& [change, count] : event.changes) {
    total += static_cast<double>(count);
  }
  for (const SampledEvent& sampled : event.sampled) {
    total += static_cast<double>(sampled.count) * TotalCount(sampled.inner);
  }
  return total;
}

// Bisects for the zero of an increasing function of the tilt, to about 0.1%.
template <typename Function>
double SolveTilt(const Function& increasing) {
  double low = std::log(kSmallestTilt);
  double high = std::log(kLargestTilt);
  while (high - low > 2e-3) {
    const double middle = (low + high) / 2;
    (increasing(std::exp(middle)) < 0 ? low : high) = middle;
  }
  return std::exp(high);
}

// The tight conversion (Canonne, Kamath and Steinke 2020) from the cumulant K at tilt t, order t + 1, is
// ln delta + t eps = K + t ln t - (t + 1) ln(t + 1).
double LogPrefactor(double tilt) { return tilt * std::log(tilt) - (tilt + 1) * std::log1p(tilt); }

// Its saddle point for an epsilon, with a floor: where epsilon is far below the mean loss it would be 0. Any tilt gives
// a valid bound; this one makes it tight.
double TiltForEpsilon(const std::vector<LossComponent>& components, double epsilon) {
  const double saddle =
      SolveTilt([&](double tilt) { return CumulantsAt(components, tilt).mean - std::log1p(1 / tilt) - epsilon; });
  const double spread = std::sqrt(CumulantsAt(components, saddle).variance);
  return std::min(kLargestTilt, std::max(saddle, 0.5 / spread));
}

// The smallest epsilon by the conversion; its own saddle point need not be near that of the true epsilon.
double ConvertedEpsilon(const std::vector<LossComponent>& components, double delta) {
  const double log_delta = std::log(delta);
  const double tilt = SolveTilt([&](double at) {
    const Cumulants cumulants = CumulantsAt(components, at);
    return at * cumulants.mean - cumulants.value + std::log1p(at) + log_delta;
  });
  return std::max(0.0, (CumulantsAt(components, tilt).value + LogPrefactor(tilt) - log_delta) / tilt);
}

std::vector<LossComponent> CutForSurvey(const std::vector<LossSource>& sources) {
  return CutAll(sources, std::vector<double>(sources.size(), kSurveyStep));
}

double LargestLoss(const std::vector<LossComponent>& survey) {
  double largest = 0;
  for (const LossComponent& component : survey) {
    largest += static_cast<double>(component.count) * component.atoms.loss.back();
  }
  return largest;
}

double InfiniteMass(const std::vector<LossComponent>& survey) {
  double log_finite = 0;
  for (const LossComponent& component : survey) {
    log_finite += static_cast<double>(component.count) * std::log1p(-component.atoms.infinite_mass);
  }
  return log_finite < 0 ? -std::expm1(log_finite) : 0;
}

struct Window {
  double low = 0;
  double width = kInfinity;
  double tilt = 0;
  double tail_tilt = 0;
};

// A circular window from `low`, below epsilon. Chernoff's bound at a few tilts gives a width w that makes negligible
// - mass above the window, which is lost: untilted, beside delta;
// - tilted mass above epsilon + w, which wraps to above epsilon and only adds to delta;
// - loss l below epsilon, which wraps to l + w and only adds: at most e^(-s (l + w - epsilon)), for each s <= tilt.
Window WindowAt(double tilt, const std::vector<LossComponent>& survey, double epsilon, double low) {
  constexpr std::array<double, 6> kMultiples = {1, 2, 3, 4.5, 7, 10};
  const Cumulants at = CumulantsAt(survey, tilt);
  const double spread = std::sqrt(at.variance);
  const double log_share = kLogWindowShare - std::log(100 * (1 + tilt)) - std::log1p(spread * (1 + tilt));
  Window window = {low, 0, tilt, tilt};
  double above = epsilon - log_share / tilt;
  double tilted_above = kInfinity;
  double below = -(at.value + log_share) / tilt;  // s = tilt, where the cumulant is 0
  for (const double multiple : kMultiples) {
    const double shift = multiple / std::max(spread, 1e-12);
    const double up = CumulantsAt(survey, tilt + shift).value - at.value;
    const double bound = (up + tilt * epsilon - log_share) / (tilt + shift);
    if (bound < above) {
      above = bound;
      window.tail_tilt = tilt + shift;
    }
    tilted_above = std::min(tilted_above, (up - log_share) / shift);
    if (shift < tilt) {
      below = std::min(below, (CumulantsAt(survey, tilt - shift).value - at.value - log_share) / shift);
    }
  }
  window.width = std::max({above - low, tilted_above - low, epsilon + below});
  return window;
}

// The narrowest over a few tilts up to the saddle point: less tilt shortens the upper tail.
Window FindWindow(const std::vector<LossComponent>& survey, double epsilon, double saddle, double low) {
  Window best;
  for (const double share : {1.0, 0.9, 0.8, 0.65}) {
    const Window window = WindowAt(share * saddle, survey, epsilon, low);
    best = window.width < best.width ? window : best;
  }
  return best;
}

constexpr double kGridShare = 0.75;  // of the error: grid points cost more than atoms
const double kAtomStepRatio = std::sqrt((1 - kGridShare) / kGridShare);

// T (t + 1) h^2 / 12 for the grid, and the atoms' share on top.
double DiscretisationError(double step, double tilt, double count) {
  return count * (tilt + 1) * step * step / (12 * kGridShare);
}

struct Plan {
  PldPrecision precision;
  double refinement = 1;
  double low = 0;  // where epsilon is looked for from
};

LossGrid ChooseGrid(const std::vector<LossComponent>& survey, double epsilon, double saddle, double count,
                    const Plan& plan, double& atom_step) {
  const Window window = FindWindow(survey, epsilon, saddle, plan.low);
  const double scale = std::max(epsilon, 1 / saddle);
  const double error = plan.precision.fraction * std::min(scale, 5 + scale / 8);
  const double points = window.width / std::sqrt(12 * kGridShare * error / (count * (saddle + 1)));
  const double smallest = plan.precision.fraction < kRoughFraction ? kSmallestGridSize : kSmallestRoughGridSize;
  double size = std::clamp(points, smallest, kLargestGridSize) * plan.refinement;
  atom_step = window.width / size * kAtomStepRatio;
  if (plan.precision.smallest_step > 0) {
    const double spread = std::sqrt(CumulantsAt(survey, 0).variance / count);
    size = std::min(size, window.width / std::min(plan.precision.smallest_step, spread / 20));
  }
  LossGrid grid;
  grid.tilt = window.tilt;
  grid.tail_tilt = window.tail_tilt;
  grid.step = window.width / size;
  grid.first = static_cast<int64_t>(std::floor(window.low / grid.step));
  grid.size = RealTransform::FastSize(static_cast<size_t>(size) + 2);
  return grid;
}

ComposedLoss Compose(const std::vector<LossSource>& sources, const std::vector<LossComponent>& survey, double epsilon,
                     const Plan& plan, PldBound& bound) {
  const double count = TotalCount(sources);
  const double saddle = TiltForEpsilon(survey, epsilon);
  double atom_step = 0;
  const LossGrid grid = ChooseGrid(survey, epsilon, saddle, count, plan, atom_step);
  bound.step = grid.step;
  bound.points = grid.size;
  bound.tilt = saddle;
  bound.discretisation_error = DiscretisationError(grid.step, saddle, count);
  return {CutAll(sources, MatchingSteps(survey, saddle, atom_step)), grid};
}

// One run of one mechanism needs no grid: its atoms, cut finely, are the distribution.
class SingleLoss {
 public:
  explicit SingleLoss(const LossSource& source) : atoms_(source.cut(kSurveyStep / kSingleRefinement)) {}

  static bool Applies(const std::vector<LossSource>& sources) {
    return sources.size() == 1 && sources.front().count == 1;
  }

  [[nodiscard]] double Delta(double epsilon) const {
    const double adjusted = epsilon - kSingleLossMargin * (1 + std::fabs(epsilon));
    double sum = atoms_.infinite_mass;
    for (size_t i = atoms_.loss.size(); i-- > 0 && atoms_.loss[i] > adjusted;) {
      sum -= atoms_.mass[i] * std::expm1(adjusted - atoms_.loss[i]);
    }
    return std::min(1.0, sum * (1 + kSingleMassMargin));
  }

  [[nodiscard]] double SmallestEpsilon(const std::function<double(double)>& limit) const {
    double low = 0;
    double high = std::max(0.0, atoms_.loss.back() * (1 + 1e-12) + 1e-12);
    if (Delta(0) <= limit(0)) {
      return 0;
    }
    if (Delta(high) > limit(high)) {
      return kInfinity;
    }
    while (high - low > 1e-13 * high) {
      const double middle = low + (high - low) / 2;
      (Delta(middle) <= limit(middle) ? high : low) = middle;
    }
    return high;
  }

 private:
  LossAtoms atoms_;
};

// How much PldDelta, on another grid, may exceed delta at its epsilon: rounding, discretisation, place in a cell.
double SlackForDelta(const ComposedLoss& composed, const PldBound& bound) {
  const double cell = bound.tilt * bound.step;
  return 12 * composed.RoundingShare(bound.value) + 0.3 * bound.tilt * bound.discretisation_error + 4 * cell * cell;
}

// Many steps of one kind, where the slack above is enough. Other losses may have jumps, which two grids place
// differently: there, delta at the epsilon found is computed.
bool IsSmooth(const FlatEvent& event) {
  return event.gaussian_mu == 0 && event.changes.empty() && event.laplaces.empty() && event.selections.empty() &&
         event.sampled.empty() && event.mixtures.size() == 1 && event.mixtures.begin()->second >= kManySteps;
}

double ConvertedLogDelta(const std::vector<LossComponent>& survey, double epsilon) {
  const double tilt = TiltForEpsilon(survey, epsilon);
  return std::min(0.0, CumulantsAt(survey, tilt).value + LogPrefactor(tilt) - tilt * epsilon);
}

}  // namespace

PldBound PldEpsilon(const FlatEvent& event, Direction direction, double delta, const PldPrecision& precision,
                    const std::function<double(double)>& limit) {
  const double tail_mass = std::max(kSmallestTail, delta * kTailShare / TotalCount(event));
  PldBound bound;
  if (NeedsTooManyAtoms(event, tail_mass)) {
    bound.value = kInfinity;
    return bound;
  }
  const std::vector<LossSource> sources = LossSourcesOf(event, direction, tail_mass);
  if (sources.empty()) {
    return bound;
  }
  if (SingleLoss::Applies(sources)) {
    bound.value =
        SingleLoss(sources.front()).SmallestEpsilon([&](double epsilon) { return (1 - kSingleRoom) * limit(epsilon); });
    return bound;
  }
  // From above: every result is a bound, and its own tilt gives a tighter one. Rough until that settles, then fine.
  const std::vector<LossComponent> survey = CutForSurvey(sources);
  double guess = std::min(ConvertedEpsilon(survey, delta), std::max(0.0, LargestLoss(survey)));
  bool rough = true;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const double settled = kSettled * guess - kRoughErrors * bound.discretisation_error;
    const Plan plan = rough ? Plan{kRoughPrecision, 1, 0} : Plan{precision, 1, std::max(0.0, settled)};
    const ComposedLoss composed = Compose(sources, survey, guess, plan, bound);
    bound.value = composed.SmallestEpsilon(limit);
    if (!rough && std::isfinite(bound.value)) {
      const double room = 1 - std::min(0.5, SlackForDelta(composed, bound));
      bound.value = composed.SmallestEpsilon([&](double epsilon) { return room * limit(epsilon); });
    }
    const bool below_window = bound.value > 0 && bound.value <= composed.LowestEpsilon();
    if (std::isinf(bound.value) || (!rough && !below_window)) {
      break;
    }
    rough = below_window || (rough && bound.value < guess * kSettled);
    guess = std::min(guess, bound.value);
  }
  return bound;
}

PldBound PldDelta(const FlatEvent& event, Direction direction, double epsilon, const PldPrecision& precision) {
  PldBound bound;
  bound.value = 1;
  // The cut must be small beside delta, which is not known yet: try a tail for a moderate delta, then the smallest.
  double tail_mass = kModerateTail;
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (NeedsTooManyAtoms(event, tail_mass)) {
      return bound;
    }
    const std::vector<LossSource> sources = LossSourcesOf(event, direction, tail_mass);
    if (sources.empty()) {
      bound.value = 0;
      return bound;
    }
    const std::vector<LossComponent> survey = CutForSurvey(sources);
    const double infinite_mass = InfiniteMass(survey);
    const bool beyond = epsilon >= LargestLoss(survey);
    const double log_delta = beyond ? std::log(kSmallestTail) : ConvertedLogDelta(survey, epsilon) - kLogSlack;
    if (infinite_mass > std::exp(log_delta) * kTailShare && attempt == 0) {
      tail_mass = std::max(kSmallestTail, std::exp(log_delta) * kTailShare / TotalCount(event));
      continue;
    }
    if (beyond) {
      bound.value = infinite_mass * (1 + kInfiniteMassMargin);
    } else if (SingleLoss::Applies(sources)) {
      bound.value = SingleLoss(sources.front()).Delta(epsilon);
    } else {
      const Plan plan = {precision, kDeltaRefinement, kSettled * epsilon};
      bound.value = Compose(sources, survey, epsilon, plan, bound).Delta(epsilon);
    }
    break;
  }
  return bound;
}

PldBound PldEpsilon(const FlatEvent& event, Direction direction, double delta, const PldPrecision& precision) {
  PldBound bound = PldEpsilon(event, direction, delta, precision, [delta](double) { return delta; });
  if (IsSmooth(event)) {
    return bound;
  }
  double epsilon = bound.value;
  double nudge = std::max(kSmallestNudge, kFirstNudge * epsilon);
  for (int i = 0; i < kMaxNudges && std::isfinite(epsilon); ++i) {
    if (PldDelta(event, direction, epsilon, precision).value <= delta) {
      bound.value = epsilon;
      break;
    }
    epsilon += nudge;
    nudge *= 2;
  }
  return bound;
}

}  // namespace dpar
