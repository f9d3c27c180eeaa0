// The privacy loss of an event that runs on a secret sample of the nodes.
//
// With the node kept at rate q, the graph with it gives (1 - q) Q + q P and the graph without it Q, where (P, Q) is the
// pair of the inner event. Outcomes keep their order, so an inner atom of loss l, P-mass p and Q-mass p e^-l becomes
//   removal:  loss ln(1 - q + q e^l),     mass q p + (1 - q) p e^-l
//   addition: loss -ln(1 - q + q e^-l),   mass p,
// which is the rule eps' = ln(1 + q (e^eps - 1)), delta' = q delta(eps) and its mirror image, on the whole curve.
#ifndef DPAR_CORE_PRIVACY_SAMPLED_ATOMS_H_
#define DPAR_CORE_PRIVACY_SAMPLED_ATOMS_H_

#include "core/privacy/flat_event.h"
#include "core/privacy/loss_atoms.h"

namespace dpar {

// The whole distribution, to compose it with other events. A rounding mass of about 1e-13 counts as infinite, so no
// composition has a delta below it. For a sample alone, accountant.h applies the rule to the curve instead.
LossAtoms SampledAtoms(const SampledEvent& event, Direction direction, double tail_mass);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_SAMPLED_ATOMS_H_
