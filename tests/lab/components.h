// Connected components. Data sets are often published as graphs of which only the largest component is used.
#ifndef DPAR_TESTS_LAB_COMPONENTS_H_
#define DPAR_TESTS_LAB_COMPONENTS_H_

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"

namespace dpar {

// The nodes of the largest connected component, ascending; of equally large ones, of that with the lowest node. Empty
// for a graph without nodes. Edges must be symmetric. Time O(nodes + edges), memory O(nodes).
std::vector<int32_t> LargestComponent(const EdgesView& edges);

}  // namespace dpar

#endif  // DPAR_TESTS_LAB_COMPONENTS_H_
