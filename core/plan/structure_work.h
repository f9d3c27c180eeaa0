// How much DP-APPR may do, hold and take, from public quantities alone: what the stage needs follows private edges, so
// an observer may only see these bounds.
#ifndef DPAR_CORE_PLAN_STRUCTURE_WORK_H_
#define DPAR_CORE_PLAN_STRUCTURE_WORK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Rows without noise are solved so many at a time, and held as they are.
inline constexpr int64_t kExactRowsAtOnce = 64;

struct StructureWork {
  int threads = 1;            // to use, of those offered: fewer where their scratch memory would be large
  int64_t scratch_bytes = 0;  // most that the solvers of these threads hold, and exact rows
  double seconds = 0;         // earliest end: what all rows at their ceilings take on these threads
};

// `plan` has a structure. `threads` >= 1 are offered.
StructureWork WorkOfStructure(const v1::Plan& plan, int threads);

// INVALID_ARGUMENT when a private plan's rows could take too long, or rho is too small for any graph to need it.
absl::Status CheckStructureWork(const v1::Plan& plan);

}  // namespace dpar

#endif  // DPAR_CORE_PLAN_STRUCTURE_WORK_H_
