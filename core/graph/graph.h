// The graph of one dataset: node slots 0..N-1 with sparse features, labels and undirected edges.
#ifndef DPAR_CORE_GRAPH_GRAPH_H_
#define DPAR_CORE_GRAPH_GRAPH_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace dpar {

inline constexpr int32_t kUnlabelled = -1;

// The public sizes of a dataset, declared before its content is seen.
struct PublicSizes {
  int64_t node_count = 0;     // N
  int64_t feature_count = 0;  // d
  int64_t class_count = 0;    // c

  bool operator==(const PublicSizes&) const = default;
};

struct EdgesView {
  std::span<const int64_t> offsets;     // node count + 1 entries, non-decreasing, first 0
  std::span<const int32_t> neighbours;  // within a row strictly ascending

  [[nodiscard]] int64_t node_count() const { return static_cast<int64_t>(offsets.size()) - 1; }
  [[nodiscard]] std::span<const int32_t> neighbours_of(int64_t node) const;
  // Undirected edges.
  [[nodiscard]] int64_t edge_count() const { return static_cast<int64_t>(neighbours.size()) / 2; }
  // The most neighbours that a node has. Private, unless the graph is public.
  [[nodiscard]] int64_t largest_degree() const;
};

struct SparseRowsView {
  std::span<const int64_t> offsets;  // row count + 1 entries, non-decreasing, first 0
  std::span<const int32_t> columns;  // within a row strictly ascending
  std::span<const float> values;

  [[nodiscard]] int64_t row_count() const { return static_cast<int64_t>(offsets.size()) - 1; }
  [[nodiscard]] std::span<const int32_t> row_columns(int64_t row) const;
  [[nodiscard]] std::span<const float> row_values(int64_t row) const;
  // `count` rows from `first` on.
  [[nodiscard]] SparseRowsView rows(int64_t first, int64_t count) const {
    return {offsets.subspan(static_cast<size_t>(first), static_cast<size_t>(count) + 1), columns, values};
  }
};

// A canonical graph: edges symmetric, ascending within a row, without duplicates or self loops; feature columns
// strictly ascending within a row, values finite and not zero; labels in -1..c-1. Only readers, the generator and
// sealed files make one, so later code relies on it. What the view was made from must outlive it.
struct GraphView {
  PublicSizes sizes;
  EdgesView edges;
  SparseRowsView features;
  std::span<const int32_t> labels;

  // A slot without features and without a label. Its edges do not matter.
  [[nodiscard]] bool IsNull(int64_t slot) const;
  [[nodiscard]] int64_t CountUnlabelled() const;
};

struct SparseRows {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> columns;
  std::vector<float> values;

  operator SparseRowsView() const { return {offsets, columns, values}; }  // NOLINT(google-explicit-constructor)
  bool operator==(const SparseRows&) const = default;
};

// A canonical graph in memory. It converts to a view of itself.
struct Graph {
  PublicSizes sizes;
  std::vector<int64_t> edge_offsets = {0};
  std::vector<int32_t> neighbours;
  SparseRows features;
  std::vector<int32_t> labels;

  [[nodiscard]] EdgesView edges() const { return {edge_offsets, neighbours}; }
  [[nodiscard]] int64_t edge_count() const { return edges().edge_count(); }

  operator GraphView() const { return {sizes, edges(), features, labels}; }  // NOLINT(google-explicit-constructor)
  bool operator==(const Graph&) const = default;
};

// The subgraph induced by `nodes` (distinct, in range), renumbered in that order. Edges to other nodes are dropped.
Graph InducedSubgraph(const GraphView& graph, std::span<const int32_t> nodes);

// The same, asking `keep_going` at the pace of core/pace.h; CANCELLED once it says no.
absl::StatusOr<Graph> InducedSubgraph(const GraphView& graph, std::span<const int32_t> nodes,
                                      const std::function<bool()>& keep_going);

// Bytes that the content (N, d, edges, features, labels) alone determines, and that determine it, for keyed digests.
std::string CanonicalContent(const GraphView& graph);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_GRAPH_H_
