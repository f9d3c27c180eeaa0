// Held-out accuracy as a charged output.
#ifndef DPAR_CORE_TRAIN_EVALUATE_H_
#define DPAR_CORE_TRAIN_EVALUATE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/infer/model.h"
#include "core/random/random.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Predicts every held-out slot from its own features and counts those that are right; a null or unlabelled slot counts
// as wrong, so one node moves the count by at most 1. Gaussian lattice noise of standard deviation
// plan.evaluation.noise_stddev is added. The 95% interval has the noise and the binomial spread of so many slots in it;
// both are post-processing of the noisy count. Asks `keep_going` as Logits does; CANCELLED once it says no.
absl::StatusOr<v1::Evaluation> Evaluate(const v1::Plan& plan, const Model& model, const GraphView& held_out,
                                        RandomSource& random, const std::function<bool()>& keep_going);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_EVALUATE_H_
