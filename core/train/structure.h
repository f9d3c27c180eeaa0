// The rows that the structure methods train on.
#ifndef DPAR_CORE_TRAIN_STRUCTURE_H_
#define DPAR_CORE_TRAIN_STRUCTURE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "core/appr/private_rows.h"
#include "core/graph/graph.h"
#include "core/random/random.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// DP-APPR as plan.structure says, with capped and clipped columns. Without noise, the K largest entries of the exact
// rows, of weight 1/K each under DPAR_EM0. `offered` threads: uses fewer where WorkOfStructure says so.
absl::StatusOr<ApprRows> DrawStructure(const v1::Plan& plan, const GraphView& graph, int offered, RandomSource& random,
                                       const std::function<bool()>& keep_going);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_STRUCTURE_H_
