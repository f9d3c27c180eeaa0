// The private class shares: how the trained model mixes its classes on the training rows.
#ifndef DPAR_CORE_TRAIN_CLASS_SHARES_H_
#define DPAR_CORE_TRAIN_CLASS_SHARES_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/infer/model.h"
#include "core/random/random.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Releases S, the sum of p = softmax(U) over the labelled training slots, with lattice noise of standard deviation
// plan.class_shares.noise_stddev in every coordinate. U are the scores of core/infer/label_shift.h.
//
// `model` is released already, so p depends on the slot's own features. |p|_2 <= |p|_1 <= 1, and a slot without a
// label, a null one among them, adds 0: one node moves S by at most 1, a Gaussian mechanism of sensitivity 1, but for
// rounding (plan_event.h). Time is that of one step, memory that of a block's logits. Asks `keep_going` at the pace of
// core/pace.h; CANCELLED once it says no.
absl::StatusOr<std::vector<double>> NoisyClassSums(const v1::Plan& plan, const Model& model, const GraphView& graph,
                                                   int threads, RandomSource& random,
                                                   const std::function<bool()>& keep_going);

// max(S, 0.05 n / c), scaled to sum 1, with n the expected number of training slots and c classes: post-processing.
std::vector<float> ClassShares(const v1::Plan& plan, const std::vector<double>& sums);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_CLASS_SHARES_H_
