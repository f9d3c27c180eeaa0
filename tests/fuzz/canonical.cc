#include "tests/fuzz/canonical.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

template <typename Entry>
bool Ascends(std::span<const Entry> row) {
  for (size_t i = 1; i < row.size(); ++i) {
    if (row[i - 1] >= row[i]) {
      return false;
    }
  }
  return true;
}

bool AreOffsets(std::span<const int64_t> offsets, int64_t rows, size_t entries) {
  return offsets.size() == static_cast<size_t>(rows) + 1 && offsets.front() == 0 &&
         std::is_sorted(offsets.begin(), offsets.end()) && offsets.back() == static_cast<int64_t>(entries);
}

bool Within(std::span<const int32_t> entries, int64_t low, int64_t high) {
  return std::all_of(entries.begin(), entries.end(), [&](int32_t entry) { return entry >= low && entry < high; });
}

void RequireCanonicalEdges(const GraphView& graph) {
  const int64_t n = graph.sizes.node_count;
  Require(AreOffsets(graph.edges.offsets, n, graph.edges.neighbours.size()), "edge offsets fit");
  Require(Within(graph.edges.neighbours, 0, n), "neighbours are nodes");
  for (int64_t node = 0; node < n; ++node) {
    const std::span<const int32_t> row = graph.edges.neighbours_of(node);
    Require(Ascends(row), "neighbours ascend");
    for (const int32_t other : row) {
      const std::span<const int32_t> back = graph.edges.neighbours_of(other);
      Require(other != node, "no node is its own neighbour");
      Require(std::binary_search(back.begin(), back.end(), static_cast<int32_t>(node)), "edges go both ways");
    }
  }
}

}  // namespace

void RequireCanonical(const GraphView& graph) {
  const PublicSizes& sizes = graph.sizes;
  Require(sizes.node_count > 0 && sizes.feature_count > 0 && sizes.class_count > 0, "sizes are above 0");
  RequireCanonicalEdges(graph);
  Require(AreOffsets(graph.features.offsets, sizes.node_count, graph.features.columns.size()), "feature offsets fit");
  Require(graph.features.values.size() == graph.features.columns.size(), "every column has a value");
  Require(Within(graph.features.columns, 0, sizes.feature_count), "columns are features");
  for (int64_t node = 0; node < sizes.node_count; ++node) {
    Require(Ascends(graph.features.row_columns(node)), "columns ascend");
  }
  for (const float value : graph.features.values) {
    Require(std::isfinite(value) && value != 0, "stored features are finite and not zero");
  }
  Require(graph.labels.size() == static_cast<size_t>(sizes.node_count), "every node has a label");
  Require(Within(graph.labels, -1, sizes.class_count), "labels are classes");
}

}  // namespace dpar::fuzz
