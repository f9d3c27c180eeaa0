// The noise of a plan whose other parameters are fixed.
#ifndef DPAR_CORE_PLAN_NOISE_H_
#define DPAR_CORE_PLAN_NOISE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// The least noise of one stage with which it alone costs at most `epsilon` at plan.delta, DP-APPR on the sample of
// nodes if there is one. FAILED_PRECONDITION / PRIVACY_UNREACHABLE if none does.
absl::Status CalibrateEvaluation(double epsilon, v1::Plan& plan);
absl::Status CalibrateStructure(double epsilon, v1::Plan& plan);

// Gives the private mean the Gaussian privacy `mu`.
absl::Status CalibrateMean(double mu, const PublicSizes& sizes, v1::Plan& plan);

// The least noise of DP-SGD, and of GAP's sums over neighbours, with which all stages together cost at most
// plan.epsilon at plan.delta; sets plan.event.
absl::Status CalibrateTraining(const PublicSizes& sizes, v1::Plan& plan);

// What the method's paper says that the plan's noise costs (core/privacy/published.h, published_rivals.h).
// INVALID_ARGUMENT for a plan that releases what they do not know.
absl::StatusOr<double> PublishedEpsilon(const v1::Plan& plan);

// Calibrates by the paper's theorems to `epsilon`, DP-APPR and DP-SGD divided as plan.structure.share says; sets
// plan.event, and plan.epsilon to what that costs.
absl::Status CalibrateAsPublished(double epsilon, const PublicSizes& sizes, v1::Plan& plan);

}  // namespace dpar

#endif  // DPAR_CORE_PLAN_NOISE_H_
