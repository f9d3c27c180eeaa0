#include "core/privacy/loss_sources.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/privacy/row_change.h"
#include "core/privacy/sampled_atoms.h"

namespace dpar {
namespace {

constexpr double kMaxAtoms = 0x1p21;
// The mean square, under the tilt, of the loss between neighbouring atoms.
double MeanSquareGap(const LossAtoms& atoms, double tilt) {
  const double scale = CumulantsAt(atoms, tilt).value;
  const auto tilted = [&](size_t i) { return atoms.mass[i] * std::exp(tilt * atoms.loss[i] - scale); };
  double sum = 0;
  for (size_t i = 0; i + 1 < atoms.loss.size(); ++i) {
    const double gap = atoms.loss[i + 1] - atoms.loss[i];
    sum += std::max(tilted(i), tilted(i + 1)) * gap * gap;
  }
  return sum;
}

}  // namespace

std::vector<LossSource> LossSourcesOf(const FlatEvent& event, Direction direction, double tail_mass) {
  std::vector<LossSource> sources;
  if (event.gaussian_mu > 0) {
    const double mu = event.gaussian_mu;
    sources.push_back({[mu, tail_mass](double step) { return GaussianAtoms(mu, step, tail_mass); }, 1});
  }
  for (const auto& [mixture, count] : event.mixtures) {
    const double finest = MixtureIntervals(mixture, kSurveyStep, tail_mass) * kSurveyStep / kMaxAtoms;
    sources.push_back({[mixture = mixture, direction, tail_mass, finest](double step) {
                         return MixtureAtoms(mixture, direction, std::max(step, finest), tail_mass);
                       },
                       count});
  }
  for (const auto& [change, count] : event.changes) {
    const auto atoms = std::make_shared<const LossAtoms>(RowChangeAtoms(change, tail_mass));
    sources.push_back({[atoms](double) { return *atoms; }, count});
  }
  for (const auto& [epsilon, count] : event.laplaces) {
    sources.push_back(
        {[epsilon = epsilon](double step) { return LaplaceAtoms(epsilon, std::max(step, 2 / kMaxAtoms)); }, count});
  }
  for (const auto& [range, count] : event.selections) {
    sources.push_back(
        {[range = range](double step) { return SelectionAtoms(range, std::max(step, 2 / kMaxAtoms)); }, count});
  }
  for (const SampledEvent& sampled : event.sampled) {
    const auto atoms = std::make_shared<const LossAtoms>(SampledAtoms(sampled, direction, tail_mass));
    sources.push_back({[atoms](double) { return *atoms; }, sampled.count});
  }
  return sources;
}

bool NeedsTooManyAtoms(const FlatEvent& event, double tail_mass) {
  return GaussianIntervals(event.gaussian_mu, tail_mass) > kMaxAtoms ||
         std::any_of(
             event.mixtures.begin(), event.mixtures.end(),
             [&](const auto& entry) { return MixtureIntervals(entry.first, kSurveyStep, tail_mass) > kMaxAtoms; }) ||
         std::any_of(event.changes.begin(), event.changes.end(),
                     [&](const auto& entry) { return RowChangeIntervals(entry.first, tail_mass) > kMaxAtoms; }) ||
         std::any_of(event.sampled.begin(), event.sampled.end(),
                     [&](const SampledEvent& sampled) { return NeedsTooManyAtoms(sampled.inner, tail_mass); });
}

std::vector<LossComponent> CutAll(const std::vector<LossSource>& sources, const std::vector<double>& steps) {
  std::vector<LossComponent> components;
  for (size_t i = 0; i < sources.size(); ++i) {
    components.push_back({sources[i].cut(steps[i]), sources[i].count});
  }
  return components;
}

std::vector<double> MatchingSteps(const std::vector<LossComponent>& survey, double tilt, double grid_step) {
  std::vector<double> steps;
  for (const LossComponent& component : survey) {
    const double gap = std::sqrt(MeanSquareGap(component.atoms, tilt));
    steps.push_back(gap > grid_step ? component.atoms.step * grid_step / gap : kSurveyStep);
  }
  return steps;
}

}  // namespace dpar
