#ifndef DPAR_SERVER_ADMISSION_ESTIMATE_H_
#define DPAR_SERVER_ADMISSION_ESTIMATE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "core/graph/graph.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// The most bytes of memory that a job takes, mapped pages included. Uses public quantities and `stored_bytes` (the
// file's size rounded up to a power of two), so admission reveals nothing else of the data. Terms: ARCHITECTURE.md.
int64_t EstimateJobBytes(const v1::Plan& plan, const PublicSizes& sizes, int64_t stored_bytes, int threads);

// Time on a CPU, within a factor of a few. From the same quantities.
absl::Duration EstimateJobTime(const v1::Plan& plan, const PublicSizes& sizes, int64_t stored_bytes, int threads);

}  // namespace dpar

#endif  // DPAR_SERVER_ADMISSION_ESTIMATE_H_
