// Graphs as GraphML, which NetworkX, Gephi, igraph and yEd read and write.
//   <key for="node" attr.name="label" attr.type="int"/>    the node's class: an integer, none for -1 or nothing
//   <key for="node" attr.name=... attr.type="double"/>     a feature column (or float, int, long, boolean), else 0
//   <key for="graph" attr.name="num_classes" .../>         the class count
// Nodes are numbered in file order and stand before the edges that name them. Edges are undirected whatever edgedefault
// says; weights, if any, must be equal. Other attributes are ignored; nested graphs, hyperedges and ports refused.
#ifndef DPAR_CORE_GRAPH_GRAPHML_FILE_H_
#define DPAR_CORE_GRAPH_GRAPHML_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph_file.h"

namespace dpar {

bool IsGraphMlName(absl::string_view path);

// As ReadGraphFile; errors name the array "graphml" and the line, from 1. Time O(bytes); memory a few times the graph.
// The class count is `classes`, or else the file's num_classes; without either it is refused, as by ReadGraphSizes.
absl::StatusOr<ImportedGraph> ReadGraphMlFile(const std::string& path, const GraphLimits& limits,
                                              std::optional<int64_t> classes);

// Writes atomically; ReadGraphMlFile gives the graph back exactly.
absl::Status WriteGraphMlFile(const std::string& path, const GraphView& graph);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GRAPHML_FILE_H_
