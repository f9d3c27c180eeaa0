// T noisy steps. The only place where gradients meet noise.
#ifndef DPAR_CORE_TRAIN_DESCENT_H_
#define DPAR_CORE_TRAIN_DESCENT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/random/random.h"
#include "core/train/engine.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Starts from 0, or with a hidden layer from Glorot's uniform distribution, and runs plan.steps steps over `row_count`
// rows. Each step draws a Poisson batch at plan.sampling_rate, sums its clipped gradients, adds lattice noise of
// standard deviation noise_multiplier * C to every weight's sum, divides by the expected batch size, and moves the
// weights. An empty batch is a step of noise alone. Returns the last iterate, of shape.count() entries.
//
// `on_step` gets the number of steps done. The result does not depend on `threads`. CANCELLED when the engine was told
// to stop or `keep_going` says no, which several threads ask after every step and at the pace of core/pace.h.
absl::StatusOr<std::vector<float>> Descend(const v1::Plan& plan, const WeightShape& shape, int64_t row_count,
                                           GradientEngine& engine, int threads, RandomSource& random,
                                           const std::function<bool()>& keep_going,
                                           const std::function<void(int64_t steps_done)>& on_step);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_DESCENT_H_
