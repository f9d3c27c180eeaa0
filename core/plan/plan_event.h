// What a plan releases, as an event: computed from the plan's parameters and public sizes alone, by the planner, by the
// ledger and by whoever verifies a certificate.
//
//   composition
//     node_sampling at q' (left out at 1)
//       composition
//         stage private-mean   one Gaussian of sensitivity 1 on the sum of feature rows
//         stage dp-appr        DP-APPR rows (core/appr/private_rows.h)
//         stage dp-sgd         T row mixtures; T Gaussians of sensitivity r C where every row is in every batch
//     stage evaluation         one Gaussian of sensitivity 1, on slots that were never sampled
//
// Every sensitivity includes the lattice and the floating-point sum: a row adds at most C + g sqrt(D) + 2E, and T full
// batches differ by at most r C + g sqrt(D) + 2E each, with g <= noise 2^-lattice_bits and D the number of weights.
#ifndef DPAR_CORE_PLAN_PLAN_EVENT_H_
#define DPAR_CORE_PLAN_PLAN_EVENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/appr/private_rows.h"
#include "core/graph/graph.h"
#include "dpar/v1/privacy.pb.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

inline constexpr absl::string_view kMeanStage = "private-mean";
inline constexpr absl::string_view kStructureStage = "dp-appr";
inline constexpr absl::string_view kTrainingStage = "dp-sgd";
inline constexpr absl::string_view kEvaluationStage = "evaluation";

// Sums are taken over blocks of this many rows, and the blocks' sums are then added: the error grows with the two
// counts, not with their product.
inline constexpr int64_t kSummationBlock = 4096;
// A row's gradient is scaled down until the absolute values of what it is the sum of have a norm of at most this many
// times C. It bounds the rounding of rows whose parts cancel.
inline constexpr double kMaxCancellation = 64;

// Noise is released in steps of this power of 1/2 of its scale. A finer lattice adds less to the sensitivity; a coarser
// one hides more of the sampler's low bits. At 24 the lattice costs about 0.1% of noise on a graph with 100,000
// weights.
inline constexpr int kPlanLatticeBits = 24;
// Bounds on C.
inline constexpr double kMinGradientClip = 1e-6;
inline constexpr double kMaxGradientClip = 1e3;

// D: the number of weights.
int64_t ParameterCount(const v1::Plan& plan, const PublicSizes& sizes);

// The number of rows, dead or alive: n, or M where only DP-APPR rows train.
int64_t RowCount(const v1::Plan& plan);

// r: the most rows that one node can be in.
int64_t RowsPerNode(const v1::Plan& plan);

// Bound on the l2 error of a sum of `rows` vectors, of up to `entries` parts each, whose absolute values have norm at
// most `magnitude`, taken in blocks in double. Each coordinate is off by at most (additions it goes through) u times
// the sum of its absolute values, and those sums have norm at most rows * magnitude. u = 2^-53; the factor 2 covers
// higher orders for any number of rows below 2^50.
double SummationError(int64_t rows, int64_t entries, double magnitude);
// The bounds for a plan's sums of clipped gradients and of feature rows.
double TrainingSummationError(const v1::Plan& plan);
double MeanSummationError(const v1::Plan& plan);

// The rows that DP-APPR draws for this plan, which must have a structure.
PrivateRowsOptions StructureOptions(const v1::Plan& plan);

// The stage of the charged evaluation, which the plan must have.
absl::StatusOr<v1::PrivacyEvent> EvaluationEvent(const v1::Plan& plan);

// The plan's event. INVALID_ARGUMENT when the plan's parameters have no price, for instance without noise.
absl::StatusOr<v1::PrivacyEvent> PlanEvent(const v1::Plan& plan, const PublicSizes& sizes);

// Epsilon at plan.delta of what was released once `steps` steps are done, the evaluation not among it.
absl::StatusOr<double> EpsilonAfter(const v1::Plan& plan, const PublicSizes& sizes, int64_t steps);

// The stages of an event in the order in which they stand, each as what it would be alone: inside the sampling, if it
// was there.
struct Stage {
  std::string name;
  v1::PrivacyEvent event;
};
std::vector<Stage> StagesOf(const v1::PrivacyEvent& event);

// What each stage would cost alone, in units at a budget's order.
absl::StatusOr<std::vector<v1::StageCost>> StageUnits(const v1::PrivacyEvent& event, int64_t order);

}  // namespace dpar

#endif  // DPAR_CORE_PLAN_PLAN_EVENT_H_
