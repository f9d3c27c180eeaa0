// The private mean of feature rows.
#ifndef DPAR_CORE_TRAIN_MEAN_H_
#define DPAR_CORE_TRAIN_MEAN_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/random/random.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Releases s, the sum of u = phi(x) / |phi(x)| over all slots (core/infer/input_rows.h), with lattice noise of standard
// deviation sigma = plan.mean.noise_stddev in every coordinate, and shrinks it to the mean, n the expected number of
// slots:
//   m = s / n * max(0, 1 - d sigma^2 / |s|^2),   0 if s is 0.
// Here |u| <= 1, and u = 0 for a null slot, so one node moves s by at most 1: a Gaussian mechanism of sensitivity 1,
// but for rounding (plan_event.h). The rest is post-processing. Time O(feature entries + d), memory O(d). Asks
// `keep_going` at the pace of core/pace.h; CANCELLED once it says no.
absl::StatusOr<std::vector<float>> PrivateMean(const v1::Plan& plan, const GraphView& graph, RandomSource& random,
                                               const std::function<bool()>& keep_going);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_MEAN_H_
