// A graph in which only some slots are left.
#ifndef DPAR_CORE_GRAPH_KEEP_SLOTS_H_
#define DPAR_CORE_GRAPH_KEEP_SLOTS_H_

#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"

namespace dpar {

// The graph with every slot that is not among `kept` (ascending, in range) made null: no features, no label, no edges.
// Ids stay, so nothing that reads the result can tell such a slot from one that was null before. Time and memory
// O(N + what is kept). Asks `keep_going` at the pace of core/pace.h; CANCELLED once it says no.
absl::StatusOr<Graph> KeepSlots(const GraphView& graph, std::span<const int64_t> kept,
                                const std::function<bool()>& keep_going);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_KEEP_SLOTS_H_
