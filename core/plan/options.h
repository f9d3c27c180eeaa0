// The options of a request, checked and completed as far as no noise is involved.
#ifndef DPAR_CORE_PLAN_OPTIONS_H_
#define DPAR_CORE_PLAN_OPTIONS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/plan/method.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Hops of GAP, and neighbours that SAGE samples.
inline constexpr int64_t kMaxHops = 5;
inline constexpr int64_t kMaxSampledNeighbours = 1000;

// T is at most this.
inline constexpr int64_t kMaxSteps = 1'000'000;

// Whether the request can be planned at all: epsilon, delta, sizes, flags that contradict each other.
absl::Status ValidateSpec(const v1::TrainingSpec& spec, const PublicSizes& sizes);

// The request's options on top of the preset's, or of the method's own for those that have some, each within its range
// and read by the method. `training_slots` is n. INVALID_ARGUMENT names the field as "options.NAME".
absl::StatusOr<v1::TrainingOptions> ResolveOptions(const v1::TrainingSpec& spec, const MethodTraits& method,
                                                   const PublicSizes& sizes, int64_t training_slots);

}  // namespace dpar

#endif  // DPAR_CORE_PLAN_OPTIONS_H_
