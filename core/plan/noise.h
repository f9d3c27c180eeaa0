// The noise of a plan whose other parameters are fixed.
#ifndef DPAR_CORE_PLAN_NOISE_H_
#define DPAR_CORE_PLAN_NOISE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Asked between two questions to the accountant, each of which takes up to seconds; CANCELLED once it says no.
using KeepGoing = std::function<bool()>;

// The least noise with which one stage alone (DP-APPR on the sample of nodes) meets `epsilon` at plan.delta.
// FAILED_PRECONDITION / PRIVACY_UNREACHABLE if there is none.
absl::Status CalibrateEvaluation(double epsilon, v1::Plan& plan, const KeepGoing& keep_going);
absl::Status CalibrateStructure(double epsilon, v1::Plan& plan, const KeepGoing& keep_going);

// Give the private mean, or the class shares, the Gaussian privacy `mu`.
absl::Status CalibrateMean(double mu, const PublicSizes& sizes, v1::Plan& plan);
absl::Status CalibrateShares(double mu, const PublicSizes& sizes, v1::Plan& plan);

// The least noise of DP-SGD and GAP's sums with which all stages meet plan.epsilon at plan.delta; sets plan.event.
absl::Status CalibrateTraining(const PublicSizes& sizes, v1::Plan& plan, const KeepGoing& keep_going);

// The paper's epsilon for the plan's noise (core/privacy/published*.h). INVALID_ARGUMENT if they do not cover it.
absl::StatusOr<double> PublishedEpsilon(const v1::Plan& plan);

// Calibrates by the paper's theorems to `epsilon`, shared as plan.structure.share says; sets plan.event and
// plan.epsilon to the real event and its epsilon.
absl::Status CalibrateAsPublished(double epsilon, const PublicSizes& sizes, v1::Plan& plan);

}  // namespace dpar

#endif  // DPAR_CORE_PLAN_NOISE_H_
