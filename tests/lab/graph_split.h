// How the nodes of a graph become a training part and a query part.
#ifndef DPAR_TESTS_LAB_GRAPH_SPLIT_H_
#define DPAR_TESTS_LAB_GRAPH_SPLIT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/graph/split.h"

namespace dpar::lab {

enum class SplitKind {
  // As the paper's text has it: 20 % of the nodes, chosen at random, are the query part (slot_hash_split.h).
  kRandom,
  // As its released code does: METIS cuts the graph into nine parts along few edges; part 4 is the query part, part 5
  // is left out, the others train. The query part is a region of the graph then, and keeps nearly all of its edges. The
  // parts follow from the private edges, so such a split is for public graphs only.
  kPartition,
  // A connected region, a ninth of the nodes (region_split.h): classes are mixed differently in it than outside.
  kRegion,
};

// "random", "partition" and "region".
std::string SplitName(SplitKind kind);
// INVALID_FIELD `split` for any other name.
absl::StatusOr<SplitKind> ParseSplit(const std::string& typed);

// The split of this kind and seed: the same in every run. FAILED_PRECONDITION when a partition is asked for and gpmetis
// is not there.
absl::StatusOr<SlotSplit> SplitGraph(const EdgesView& edges, SplitKind kind, int64_t seed);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_GRAPH_SPLIT_H_
