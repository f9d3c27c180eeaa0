// The graph of one dataset: node slots 0..N-1 with sparse features, labels and undirected edges.
#ifndef DPAR_CORE_GRAPH_GRAPH_H_
#define DPAR_CORE_GRAPH_GRAPH_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dpar {

inline constexpr int32_t kUnlabelled = -1;

// The public sizes of a dataset, declared before its content is seen.
struct PublicSizes {
  int64_t node_count = 0;     // N
  int64_t feature_count = 0;  // d
  int64_t class_count = 0;    // c

  bool operator==(const PublicSizes&) const = default;
};

// Rows of (column, value) pairs: compressed sparse rows with 32-bit columns and 64-bit offsets.
struct SparseRows {
  std::vector<int64_t> offsets = {0};  // row count + 1 entries, non-decreasing, first 0
  std::vector<int32_t> columns;        // within a row strictly ascending
  std::vector<float> values;

  [[nodiscard]] int64_t row_count() const { return static_cast<int64_t>(offsets.size()) - 1; }
  [[nodiscard]] std::span<const int32_t> row_columns(int64_t row) const;
  [[nodiscard]] std::span<const float> row_values(int64_t row) const;

  bool operator==(const SparseRows&) const = default;
};

// A canonical graph: edges symmetric, ascending within a row, without duplicates or self loops; feature columns
// strictly ascending within a row, values finite and not zero; labels in -1..c-1. Only readers and the generator make
// one, so everything after them may rely on it.
struct Graph {
  PublicSizes sizes;
  std::vector<int64_t> edge_offsets = {0};
  std::vector<int32_t> neighbours;
  SparseRows features;
  std::vector<int32_t> labels;

  [[nodiscard]] std::span<const int32_t> neighbours_of(int64_t node) const;
  // Undirected edges.
  [[nodiscard]] int64_t edge_count() const { return static_cast<int64_t>(neighbours.size()) / 2; }

  bool operator==(const Graph&) const = default;
};

// The subgraph induced by `nodes` (distinct, in range), renumbered in that order. Edges to other nodes are dropped.
Graph InducedSubgraph(const Graph& graph, std::span<const int32_t> nodes);

// Bytes that determine the content (N, d, edges, features, labels) and nothing else, for keyed digests. Two files with
// the same canonical graph give the same bytes.
std::string CanonicalContent(const Graph& graph);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GRAPH_H_
