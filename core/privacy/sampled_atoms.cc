#include "core/privacy/sampled_atoms.h"

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

constexpr double kGridSize = 0x1p19;
constexpr std::array<double, 8> kTailTilts = {0.25, 0.5, 1, 2, 4, 8, 16, 32};

struct End {
  double loss = std::numeric_limits<double>::infinity();
  double tilt = 1;
};

// The loss that e^log_share of the mass exceeds (for sign -1, falls below) under the tilt `base` (0 is P, -1 is Q), and
// the tilt that shows it.
End FindEnd(const std::vector<LossComponent>& components, double base, double sign, double log_share) {
  const double at_base = CumulantsAt(components, base).value;
  End end;
  for (const double tilt : kTailTilts) {
    const double bound = (CumulantsAt(components, base + sign * tilt).value - at_base - log_share) / tilt;
    end = bound < end.loss ? End{bound, tilt} : end;
  }
  end.loss *= sign;
  return end;
}

}  // namespace

LossAtoms SampledAtoms(const SampledEvent& event, Direction direction, double tail_mass) {
  const std::vector<LossSource> sources = LossSourcesOf(event.inner, direction, tail_mass);
  const double rate = event.sampling_rate;
  LossAtoms atoms;
  if (sources.empty()) {
    atoms.loss = {0};
    atoms.mass = {1};
    return atoms;
  }
  const std::vector<LossComponent> survey = CutAll(sources, std::vector<double>(sources.size(), kSurveyStep));
  const double log_share = std::log(std::max(tail_mass, 1e-18));
  const End high = FindEnd(survey, 0, 1, log_share);
  const double low = FindEnd(survey, -1, -1, log_share).loss;

  LossGrid grid;
  grid.step = (high.loss - low) / kGridSize;
  grid.first = static_cast<int64_t>(std::floor(low / grid.step)) - 1;
  grid.size = RealTransform::FastSize(static_cast<size_t>(kGridSize) + 4);
  grid.tail_tilt = high.tilt;
  const std::vector<LossComponent> components = CutAll(sources, MatchingSteps(survey, 0, grid.step));
  const ComposedLoss with(components, grid);  // P-masses, precise where the loss is positive
  grid.tilt = -1;
  const ComposedLoss without(components, grid);  // Q-masses, precise where it is negative

  const bool removal = direction == Direction::kRemove;
  const double margin = 1 + with.relative_margin();
  double without_mass = 0;
  for (size_t i = 0; i < grid.size; ++i) {
    const double loss = static_cast<double>(grid.first + static_cast<int64_t>(i)) * grid.step;
    const double p = loss > 0 ? with.TiltedMass(i) * std::exp(with.log_scale())
                              : without.TiltedMass(i) * std::exp(without.log_scale() + loss);
    const double q = loss > 0 ? p * std::exp(-loss) : without.TiltedMass(i) * std::exp(without.log_scale());
    without_mass += q;
    const double upper = loss + with.loss_margin();
    atoms.loss.push_back(removal ? std::log1p(rate * std::expm1(upper)) : -std::log1p(rate * std::expm1(-upper)));
    atoms.mass.push_back((removal ? rate * p + (1 - rate) * q : p) * margin);
  }
  const double infinite = (with.infinite_mass() + with.rounding() + without.rounding()) * margin;
  if (removal) {
    // Q-mass without an atom is below the window or where P has none: at most the smallest loss kept, with less P-mass.
    atoms.mass.front() += std::max(0.0, 1 - without_mass);
    atoms.infinite_mass = infinite;
  } else {
    // Where the graph with the node has no mass, the sample may still have left the node out.
    atoms.loss.push_back(std::max(-std::log1p(-rate), atoms.loss.back()));
    atoms.mass.push_back(infinite);
  }
  return atoms;
}

}  // namespace dpar
