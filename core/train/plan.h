// The plan of a job: every parameter of training, fixed before any data is read, from public quantities only.
#ifndef DPAR_CORE_TRAIN_PLAN_H_
#define DPAR_CORE_TRAIN_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// The plan of method `features` (AUTO becomes it): full-batch gradient descent on a linear softmax model, T Gaussian
// releases of sensitivity C + rounding. With mu such that delta(mu, epsilon) = delta and n = N:
//   L = 0.38 (n mu)^0.85,  T = clip(round(3 sqrt(L)), 30, 150),  C = 0.3,  learning rate L / (T C),  momentum 0.9.
// The noise multiplier is rounded up so that T releases at the sensitivity C + g sqrt(D) + 2E, lattice and summation
// error included, meet (epsilon, delta). price_units and left_units are the ledger's to fill.
// `spec.delta` must be set. Unsupported methods and options: UNIMPLEMENTED / NOT_IMPLEMENTED; bad values:
// INVALID_ARGUMENT; no noise meets it: FAILED_PRECONDITION / PRIVACY_UNREACHABLE.
absl::StatusOr<v1::Plan> MakePlan(const v1::TrainingSpec& spec, const PublicSizes& sizes);

// Epsilon at plan.delta had only the first `steps` releases been made. 0 for none.
absl::StatusOr<double> EpsilonAfter(const v1::Plan& plan, int64_t steps);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_PLAN_H_
