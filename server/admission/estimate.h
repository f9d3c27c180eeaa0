// What a job will need, judged before it starts.
#ifndef DPAR_SERVER_ADMISSION_ESTIMATE_H_
#define DPAR_SERVER_ADMISSION_ESTIMATE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "core/graph/graph.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Bytes of memory, mapped pages among them, that a job takes at most. From public quantities and `stored_bytes`, the
// size of the dataset's file rounded up to a power of two, so that running or refusing a job says nothing else of its
// data. ARCHITECTURE.md has the terms.
int64_t EstimateJobBytes(const v1::Plan& plan, const PublicSizes& sizes, int64_t stored_bytes, int threads);

// How long a job takes on a CPU, within a factor of a few, once it starts. From the same quantities.
absl::Duration EstimateJobTime(const v1::Plan& plan, const PublicSizes& sizes, int64_t stored_bytes, int threads);

}  // namespace dpar

#endif  // DPAR_SERVER_ADMISSION_ESTIMATE_H_
