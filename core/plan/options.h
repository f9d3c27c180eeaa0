// The options of a request, checked and completed as far as no noise is involved.
#ifndef DPAR_CORE_PLAN_OPTIONS_H_
#define DPAR_CORE_PLAN_OPTIONS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/plan/method.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

inline constexpr int64_t kMaxHops = 5;
inline constexpr int64_t kMaxSampledNeighbours = 1000;

inline constexpr int64_t kMaxSteps = 1'000'000;

// Checks epsilon, delta, sizes, and flags that contradict each other.
absl::Status ValidateSpec(const v1::TrainingSpec& spec, const PublicSizes& sizes);

// The request's options over the preset's or the method's own, each within its range and read by the method.
// `training_slots` is n. INVALID_ARGUMENT names the field as "options.NAME".
absl::StatusOr<v1::TrainingOptions> ResolveOptions(const v1::TrainingSpec& spec, const MethodTraits& method,
                                                   const PublicSizes& sizes, int64_t training_slots);

}  // namespace dpar

#endif  // DPAR_CORE_PLAN_OPTIONS_H_
