// Graphs as GraphML, which NetworkX, Gephi, igraph and yEd read and write.
//
//   <key for="node" attr.name="label" attr.type="int"/>    the node's class: an integer, none for -1 or nothing
//   <key for="node" attr.name=... attr.type="double"/>     a feature column, in the order of the keys; also float, int,
//                                                          long and boolean. Nodes without a value have 0
//   <key for="graph" attr.name="num_classes" .../>         the class count; without it, the highest label + 1
//
// Nodes are numbered in the order in which they stand, before the edges that name them. Edges are undirected whatever
// edgedefault says; those with a weight must all have the same. Other attributes, texts among them, are passed over.
// Nested graphs, hyperedges and ports are refused.
#ifndef DPAR_CORE_GRAPH_GRAPHML_FILE_H_
#define DPAR_CORE_GRAPH_GRAPHML_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph_file.h"

namespace dpar {

bool IsGraphMlName(absl::string_view path);

// Reads, validates and canonicalises, as ReadGraphFile does. Errors are INVALID_ARGUMENT / INVALID_GRAPH with the array
// "graphml" and the line, counted from 1, as position, or RESOURCE_EXHAUSTED / LIMIT_EXCEEDED; they hold no value of
// the file. NOT_FOUND when it cannot be opened. Time O(bytes); memory a few times the graph.
absl::StatusOr<ImportedGraph> ReadGraphMlFile(const std::string& path, const GraphLimits& limits);

// Writes atomically; ReadGraphMlFile gives the graph back exactly.
absl::Status WriteGraphMlFile(const std::string& path, const GraphView& graph);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GRAPHML_FILE_H_
