#ifndef DPAR_CORE_GRAPH_KEEP_SLOTS_H_
#define DPAR_CORE_GRAPH_KEEP_SLOTS_H_

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"

namespace dpar {

// Makes slots not in `kept` (ascending, in range) null, without edges. Ids stay, so they look like slots that were
// null. Time and memory O(N + what is kept). CANCELLED once `keep_going`, asked at the pace of core/pace.h, says no.
absl::StatusOr<Graph> KeepSlots(const GraphView& graph, std::span<const int64_t> kept,
                                const std::function<bool()>& keep_going);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_KEEP_SLOTS_H_
