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

// Counts the held-out slots predicted right from their own features; a null or unlabelled slot counts as wrong, so one
// node moves the count by at most 1. Adds Gaussian lattice noise of standard deviation plan.evaluation.noise_stddev.
// The 95% interval, with the noise and the binomial spread, is post-processing. CANCELLED once `keep_going` says no.
absl::StatusOr<v1::Evaluation> Evaluate(const v1::Plan& plan, const Model& model, const GraphView& held_out,
                                        RandomSource& random, const std::function<bool()>& keep_going);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_EVALUATE_H_
