// The one place where edges become canonical: undirected, ascending, once each, no self loops.
#ifndef DPAR_CORE_GRAPH_CANONICAL_EDGES_H_
#define DPAR_CORE_GRAPH_CANONICAL_EDGES_H_

#include <cstdint>
#include <vector>

namespace dpar {

struct EdgeChanges {
  int64_t self_loops_dropped = 0;  // entries that joined a node to itself
  int64_t duplicates_merged = 0;   // entries beyond the first of the same direction
  int64_t edges_symmetrised = 0;   // edges that stood in one direction only
};

// Rewrites compressed rows (columns in 0..rows-1). Time O(rows + entries) besides the sort of unsorted rows.
EdgeChanges CanonicaliseEdges(std::vector<int64_t>& offsets, std::vector<int32_t>& columns);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_CANONICAL_EDGES_H_
