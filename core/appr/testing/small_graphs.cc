#include "core/appr/testing/small_graphs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/graph/canonical_edges.h"

namespace dpar::testing {

Graph GraphOf(int64_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges) {
  Graph graph;
  graph.sizes = {.node_count = nodes, .feature_count = 1, .class_count = 2};
  graph.labels.assign(static_cast<size_t>(nodes), 0);
  graph.features.offsets.assign(static_cast<size_t>(nodes) + 1, 0);
  graph.edge_offsets.assign(static_cast<size_t>(nodes) + 1, 0);
  std::vector<std::pair<int32_t, int32_t>> sorted = edges;
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [from, to] : sorted) {
    ++graph.edge_offsets[static_cast<size_t>(from) + 1];
    graph.neighbours.push_back(to);
  }
  std::partial_sum(graph.edge_offsets.begin(), graph.edge_offsets.end(), graph.edge_offsets.begin());
  CanonicaliseEdges(graph.edge_offsets, graph.neighbours);
  return graph;
}

Graph RandomGraph(int64_t nodes, int64_t edges, RandomSource& random) {
  std::vector<std::pair<int32_t, int32_t>> drawn;
  for (int64_t i = 0; i < edges; ++i) {
    const auto from = static_cast<int32_t>(UniformBelow(random, static_cast<uint64_t>(nodes)));
    const auto to = static_cast<int32_t>(UniformBelow(random, static_cast<uint64_t>(nodes)));
    drawn.emplace_back(from, to);
  }
  return GraphOf(nodes, drawn);
}

Graph Star(int64_t leaves) {
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t leaf = 1; leaf <= leaves; ++leaf) {
    edges.emplace_back(0, leaf);
  }
  return GraphOf(leaves + 1, edges);
}

Graph WithNullNode(const Graph& graph, int32_t node) {
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t from = 0; from < graph.sizes.node_count; ++from) {
    for (const int32_t to : graph.edges().neighbours_of(from)) {
      if (from != node && to != node) {
        edges.emplace_back(from, to);
      }
    }
  }
  Graph changed = GraphOf(graph.sizes.node_count, edges);
  changed.labels = graph.labels;
  changed.labels[static_cast<size_t>(node)] = kUnlabelled;
  return changed;
}

std::vector<double> Dense(const SparseVector& vector, int64_t nodes) {
  std::vector<double> dense(static_cast<size_t>(nodes), 0);
  for (size_t i = 0; i < vector.ids.size(); ++i) {
    dense[static_cast<size_t>(vector.ids[i])] += vector.values[i];
  }
  return dense;
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += std::abs(a[i] - b[i]);
  }
  return sum;
}

}  // namespace dpar::testing
