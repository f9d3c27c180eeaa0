// The mechanisms of an event, to be cut into atoms of any fineness.
#ifndef DPAR_CORE_PRIVACY_LOSS_SOURCES_H_
#define DPAR_CORE_PRIVACY_LOSS_SOURCES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "core/privacy/composed_loss.h"
#include "core/privacy/flat_event.h"
#include "core/privacy/loss_atoms.h"

namespace dpar {

// Atoms at `step` have gaps of loss that grow in proportion to it, down to a limit on their number.
struct LossSource {
  std::function<LossAtoms(double step)> cut;
  int64_t count = 1;
};

inline constexpr double kSurveyStep = kLargestIntervalStep;

// One source for each kind of mechanism. Each cuts outcomes of at most `tail_mass` at either end.
std::vector<LossSource> LossSourcesOf(const FlatEvent& event, Direction direction, double tail_mass);

// Whether a mechanism has so much less noise than sensitivity that it needs more atoms than can be held.
bool NeedsTooManyAtoms(const FlatEvent& event, double tail_mass);

std::vector<LossComponent> CutAll(const std::vector<LossSource>& sources, const std::vector<double>& steps);

// Steps at which each source's atoms are, on average under the tilt, grid_step apart. `survey`: atoms at kSurveyStep.
std::vector<double> MatchingSteps(const std::vector<LossComponent>& survey, double tilt, double grid_step);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_LOSS_SOURCES_H_
