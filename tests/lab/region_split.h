// A connected region of a graph as its query part.
#ifndef DPAR_TESTS_LAB_REGION_SPLIT_H_
#define DPAR_TESTS_LAB_REGION_SPLIT_H_

#include <cstdint>

#include "core/graph/graph.h"
#include "core/graph/split.h"

namespace dpar::lab {

// A ninth of the nodes, at least one, is the query part; all others train. From a node that `seed` chooses, the region
// takes the node with the most neighbours in it, the earlier one of two, until it is large enough; where none has any,
// it goes on from another node that `seed` chooses. The same in every run. The region follows from the edges, so such a
// split is for public graphs only. Needs at least two nodes.
SlotSplit SplitByRegion(const EdgesView& edges, uint64_t seed);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_REGION_SPLIT_H_
