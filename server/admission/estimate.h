#ifndef DPAR_SERVER_ADMISSION_ESTIMATE_H_
#define DPAR_SERVER_ADMISSION_ESTIMATE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "core/graph/graph.h"
#include "core/graph/size_bounds.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// The most bytes of memory that a job takes, mapped pages included. From public quantities alone, so that admission
// reveals nothing of the data.
int64_t EstimateJobBytes(const v1::Plan& plan, const PublicSizes& sizes, const SizeBounds& bounds, int threads);

// Time on a CPU for a graph that reaches its bounds, within a factor of a few. From the same quantities.
absl::Duration EstimateJobTime(const v1::Plan& plan, const PublicSizes& sizes, const SizeBounds& bounds, int threads);

}  // namespace dpar

#endif  // DPAR_SERVER_ADMISSION_ESTIMATE_H_
