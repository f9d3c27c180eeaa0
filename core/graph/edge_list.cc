#include "core/graph/edge_list.h"

#include <algorithm>

#include "core/graph/canonical_edges.h"

namespace dpar {

void FillEdges(const std::vector<Edge>& edges, ImportedGraph& result) {
  Graph& graph = result.graph;
  // An edge may stand in one direction only. Space for the other costs address space alone until it is used.
  graph.neighbours.reserve(2 * edges.size());
  graph.neighbours.resize(edges.size());
  graph.edge_offsets = FillRows(graph.sizes.node_count, edges, [&graph](size_t position, const Edge& edge) {
    graph.neighbours[position] = edge.column;
  });
  const EdgeChanges changes = CanonicaliseEdges(graph.edge_offsets, graph.neighbours);
  result.report.edge_count = graph.edge_count();
  result.report.edges_symmetrised = changes.edges_symmetrised;
  result.report.duplicates_merged = changes.duplicates_merged;
  result.report.self_loops_dropped = changes.self_loops_dropped;
  result.report.unlabelled_nodes = std::count(graph.labels.begin(), graph.labels.end(), kUnlabelled);
}

}  // namespace dpar
