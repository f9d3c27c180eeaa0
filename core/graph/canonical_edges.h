// Where the edges of a file become canonical: undirected, ascending, once each, no self loops.
//
// It works in place, because edges are the largest part of most graphs and a second copy of them decides how large a
// graph a machine can read. Besides the edges it takes 4 bytes a row. Missing directions are appended within the
// capacity of `columns`: a caller that reserves twice the entries before it fills them pays address space alone, since
// pages that nothing touches are never resident. Without that capacity the entries are copied once to a larger block.
// The capacity that is left is kept: giving it back would copy every entry to save address space.
#ifndef DPAR_CORE_GRAPH_CANONICAL_EDGES_H_
#define DPAR_CORE_GRAPH_CANONICAL_EDGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/stage.h"

namespace dpar {

struct EdgeChanges {
  int64_t self_loops_dropped = 0;  // entries that joined a node to itself
  int64_t duplicates_merged = 0;   // entries beyond the first of the same direction
  int64_t edges_symmetrised = 0;   // edges that stood in one direction only
};

// Rewrites compressed rows (columns in 0..rows-1). Time O(rows + entries * log(longest row)); the search for missing
// directions, which is most of it, runs on every core.
EdgeChanges CanonicaliseEdges(std::vector<int64_t>& offsets, std::vector<int32_t>& columns);
// The same, told how far it is. CANCELLED once `report` says no; the rows are then good for nothing.
absl::StatusOr<EdgeChanges> CanonicaliseEdges(std::vector<int64_t>& offsets, std::vector<int32_t>& columns,
                                              const StageReport& report);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_CANONICAL_EDGES_H_
