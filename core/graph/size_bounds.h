// The most edges and feature entries that an owner declares for a dataset. All that others see of its size follows from
// them and never from the content: neighbours differ in how many edges and entries they have.
#ifndef DPAR_CORE_GRAPH_SIZE_BOUNDS_H_
#define DPAR_CORE_GRAPH_SIZE_BOUNDS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/graph/graph.h"

namespace dpar {

struct SizeBounds {
  int64_t edges = 0;            // undirected
  int64_t feature_entries = 0;  // other than 0

  bool operator==(const SizeBounds&) const = default;
};

// What a graph without declared bounds is taken to have, from public sizes alone. Edges: 64 a node. Feature entries: d
// a node up to d = 1,024, and 256 a node above, where features are sparse. Of either at least 131,072, and no more than
// a graph of these sizes can have or `limits`, the server's, allow.
SizeBounds DefaultSizeBounds(const PublicSizes& sizes, const SizeBounds& limits);

// INVALID_ARGUMENT / INVALID_GRAPH, with the flag that declares a larger bound and without any count, for a graph
// that has more. A graph within its bounds stays so with any node made null.
absl::Status CheckSizeBounds(const GraphView& graph, const SizeBounds& bounds);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_SIZE_BOUNDS_H_
