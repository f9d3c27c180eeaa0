// The plan of a job: every parameter of training, fixed before any data is read, from public quantities only.
#ifndef DPAR_CORE_PLAN_PLAN_H_
#define DPAR_CORE_PLAN_PLAN_H_

#include <functional>
#include <limits>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Fills what `spec` (delta is set) leaves open and calibrates the noise. The ledger sets price_units and left_units.
//
// The rule, with n training slots, d features, c classes, and mu the Gaussian that (epsilon, delta) leaves for training
// (divided by r, the rows that one node can be in):
//   if sqrt(d) < 0.02 n mu, a private mean is released at 0.2 mu and mu' = mu sqrt(0.96); else mu' = mu
//   L = 0.38 (n mu')^0.85,  T = clip(round(3 sqrt(L)), 30, 150),  C = 0.3,  learning rate L / (T C),  momentum 0.9,
//   full batch, no hidden layer, rows SQRT_UNIT.
// Structure methods: a tenth of epsilon for DP-APPR, M = 70, K = 2, C1 = 0.01, C2 = 0.001, one occurrence.
// GAP and SAGE: their papers' released code (options.cc), R = max(1, sqrt(D) / 2) for GAP, one noise multiplier for all
// stages. Their prices rest on the dataset's degree promise D = `max_degree`.
//
// Evaluation and DP-APPR are calibrated to their shares of epsilon, the mean to its share of mu, then DP-SGD to the
// least noise with which everything together meets epsilon at delta. With the preset PAPER the paper's theorems
// calibrate the two stages, and plan.epsilon is the real price of that noise.
//
// Errors: INVALID_ARGUMENT naming a field that is out of range, not of the method or contradicts another;
// FAILED_PRECONDITION / PRIVACY_UNREACHABLE when no noise meets it; FAILED_PRECONDITION / INVALID_FIELD `method` for
// GAP and SAGE with noise but without a degree promise (0).
//
// RESOURCE_EXHAUSTED / LIMIT_EXCEEDED `max_planning_seconds` before the work, and CANCELLED within seconds during it.
struct PlanningBounds {
  double max_seconds = std::numeric_limits<double>::infinity();
  std::function<bool()> keep_going = [] { return true; };
};
absl::StatusOr<v1::Plan> MakePlan(const v1::TrainingSpec& spec, const PublicSizes& sizes, int64_t max_degree = 0,
                                  const PlanningBounds& bounds = {});

// How long calibrating takes at most on one core, from the plan's public parameters: the accountant's work on a sampled
// batch grows with the rows that one node can be in, and a sample of the nodes makes it six times as long.
double PlanningSeconds(const v1::Plan& plan);

}  // namespace dpar

#endif  // DPAR_CORE_PLAN_PLAN_H_
