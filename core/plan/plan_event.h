// A plan's event, computed by the planner, the ledger and verifiers from the plan's parameters and public sizes alone.
//
//   composition
//     node_sampling at q' (left out at 1)
//       composition
//         stage private-mean   one Gaussian of sensitivity 1 on the sum of feature rows
//         stage dp-appr        DP-APPR rows (core/appr/private_rows.h)
//         stage encoder        GAP: T row mixtures of one row, for the encoder
//         stage aggregation    GAP: one Gaussian for each hop
//         stage dp-sgd         T row mixtures (SAGE: row changes, core/privacy/row_change.h); with every row in every
//                              batch, T Gaussians of sensitivity r C (SAGE: (1 + 2 D) C, D the degree promise)
//         stage class-shares   one Gaussian of sensitivity 1 on the sum of predicted class probabilities
//     stage evaluation         one Gaussian of sensitivity 1, on slots that were never sampled
//
// Every sensitivity includes the lattice and the floating-point sum: a row adds at most C + g sqrt(D) + 2E, and T full
// batches differ by at most r C + g sqrt(D) + 2E each, with g <= noise 2^-lattice_bits and D the number of weights.
//
// GAP, with D the degree promise from here on, which both graphs keep, and all earlier releases fixed:
//   encoder      A row is a node's own features and label, so a removed node takes away one row: r = 1. The released
//                encoder is public, so the encoding of every other slot is the same on both graphs.
//   aggregation  A hop sums rows of norm at most 1 over each slot's neighbours, clips each sum to norm R and adds noise
//                to every slot's, null or not. The first hop's rows are encodings of a slot's own features; those of
//                later hops are the released sums of the hop before, scaled to length 1. Removing a node takes its row
//                out of at most D sums. Each moves by at most 1, also after clipping, a projection onto a ball, which
//                lengthens no difference; the node's own sum goes from norm at most R to 0; other sums are the same.
//                So the sums of a hop differ by at most sqrt(D + R^2) in l2 (the paper's sqrt(D) leaves out the own
//                sum). The lattice adds at most g in each of the (D + 1) h entries of the sums that differ, hence
//                g sqrt((D + 1) h). Floating-point sums and clipping are off by at most `row_error` in each of those
//                sums, hence 2 row_error sqrt(D + 1). Hops compose adaptively.
//   dp-sgd       A row is a node's own encoding, its label and released sums: r = 1 again.
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
inline constexpr absl::string_view kEncoderStage = "encoder";
inline constexpr absl::string_view kAggregationStage = "aggregation";
inline constexpr absl::string_view kTrainingStage = "dp-sgd";
inline constexpr absl::string_view kSharesStage = "class-shares";
inline constexpr absl::string_view kEvaluationStage = "evaluation";

// Blocks of this many rows are summed, then the blocks' sums: the error grows with the two counts, not their product.
inline constexpr int64_t kSummationBlock = 4096;
// A row's gradient is scaled down until the absolute values of its parts have a norm of at most this many times C. It
// bounds the rounding of rows whose parts cancel.
inline constexpr double kMaxCancellation = 64;

// Noise is released in steps of this power of 1/2 of its scale. A finer lattice adds less to the sensitivity; a coarser
// one hides more of the sampler's low bits. At 24 it takes about 0.1% more noise with 100,000 weights.
inline constexpr int kPlanLatticeBits = 24;
// Bounds on C, then on R.
inline constexpr double kMinGradientClip = 1e-6;
inline constexpr double kMaxGradientClip = 1e3;
inline constexpr double kMinAggregationClip = 1e-3;
inline constexpr double kMaxAggregationClip = 1e6;
// Sums over neighbours are clipped below R by this factor, and lie within R times the error below of exact arithmetic:
// norms of up to 2^12 entries are off by less than 2^-41 of themselves.
inline constexpr double kAggregationGuard = 1 - 0x1p-40;
inline constexpr double kAggregationClipError = 0x1p-39;

// Inputs without the bias of the network trained last: d, 2 d for SAGE, (hops + 1) hidden_size for GAP.
int64_t InputCount(const v1::Plan& plan, const PublicSizes& sizes);

// Output layer included; 0 unless the method is GAP.
int64_t EncoderParameterCount(const v1::Plan& plan, const PublicSizes& sizes);

int64_t TotalSteps(const v1::Plan& plan);  // T, or 2 T for GAP

// Whether the plan has what its method needs, and nothing of another's.
bool IsOfItsMethod(const v1::Plan& plan);

// sqrt(D + R^2) of a plan with an aggregation, and the bound on the error of one of its rows.
double AggregationSensitivity(const v1::Plan& plan);
double AggregationRowError(const v1::Plan& plan);

// D: the weights of the network trained last.
int64_t ParameterCount(const v1::Plan& plan, const PublicSizes& sizes);

// n, or M where only DP-APPR rows train; dead rows included.
int64_t RowCount(const v1::Plan& plan);

// r: the most rows that one node can be in; for SAGE, those of its neighbours too.
int64_t RowsPerNode(const v1::Plan& plan);

// Bound on the l2 error of a sum of `rows` vectors, of up to `entries` parts each, whose absolute values have norm at
// most `magnitude`, taken in blocks in double. Each coordinate is off by at most u = 2^-53 times its number of
// additions times the sum of its absolute values; those sums have norm at most rows * magnitude. The factor 2 covers
// higher orders for any number of rows below 2^50.
double SummationError(int64_t rows, int64_t entries, double magnitude);
double TrainingSummationError(const v1::Plan& plan);
// Of the private mean and of the class shares: n rows of length at most 1.
double UnitSummationError(const v1::Plan& plan);

PrivateRowsOptions StructureOptions(const v1::Plan& plan);  // needs plan.structure

absl::StatusOr<v1::PrivacyEvent> EvaluationEvent(const v1::Plan& plan);  // needs plan.evaluation

// INVALID_ARGUMENT when the plan's parameters have no price, for instance without noise.
absl::StatusOr<v1::PrivacyEvent> PlanEvent(const v1::Plan& plan, const PublicSizes& sizes);

// Epsilon at plan.delta after `steps` of all TotalSteps, without the evaluation. GAP's aggregation counts from the last
// step of its encoder on, the class shares from the last step of all.
absl::StatusOr<double> EpsilonAfter(const v1::Plan& plan, const PublicSizes& sizes, int64_t steps);

// The stages of an event in order, each as it would be alone: inside the sampling, if it was there.
struct Stage {
  std::string name;
  v1::PrivacyEvent event;
};
std::vector<Stage> StagesOf(const v1::PrivacyEvent& event);

// Units of each stage alone, at a budget's order.
absl::StatusOr<std::vector<v1::StagePrice>> StageUnits(const v1::PrivacyEvent& event, int64_t order);

}  // namespace dpar

#endif  // DPAR_CORE_PLAN_PLAN_EVENT_H_
