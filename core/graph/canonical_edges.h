// Makes the edges of a file canonical, in place: undirected, ascending, once each, no self loops. Memory besides the
// edges: 4 bytes a row. Missing directions go into the spare capacity of `columns`; without it, every entry is copied
// once to a larger block. Reserving twice the entries costs address space alone, as untouched pages are never resident.
// Spare capacity is kept, because giving it back would copy every entry.
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

// Rewrites rows with columns in 0..rows-1. Time O(rows + entries * log(longest row)), most of it on every core.
EdgeChanges CanonicaliseEdges(std::vector<int64_t>& offsets, std::vector<int32_t>& columns);
// The same with progress. CANCELLED once `report` says no; the rows are then unusable.
absl::StatusOr<EdgeChanges> CanonicaliseEdges(std::vector<int64_t>& offsets, std::vector<int32_t>& columns,
                                              const StageReport& report);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_CANONICAL_EDGES_H_
