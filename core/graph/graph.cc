#include "core/graph/graph.h"

#include <algorithm>

#include "core/graph/canonical_content.h"
#include "core/pace.h"

namespace dpar {
namespace {

template <typename Entry>
std::span<const Entry> RowOf(std::span<const int64_t> offsets, std::span<const Entry> entries, int64_t row) {
  const auto first = static_cast<size_t>(offsets[static_cast<size_t>(row)]);
  const auto last = static_cast<size_t>(offsets[static_cast<size_t>(row) + 1]);
  return entries.subspan(first, last - first);
}

void AppendNeighbours(std::span<const int32_t> neighbours, const std::vector<int32_t>& new_number, Graph& subgraph) {
  const auto row_start = static_cast<std::ptrdiff_t>(subgraph.neighbours.size());
  for (const int32_t neighbour : neighbours) {
    const int32_t number = new_number[static_cast<size_t>(neighbour)];
    if (number >= 0) {
      subgraph.neighbours.push_back(number);
    }
  }
  std::sort(subgraph.neighbours.begin() + row_start, subgraph.neighbours.end());
  subgraph.edge_offsets.push_back(static_cast<int64_t>(subgraph.neighbours.size()));
}

}  // namespace

std::span<const int32_t> EdgesView::neighbours_of(int64_t node) const { return RowOf(offsets, neighbours, node); }

int64_t EdgesView::largest_degree() const {
  int64_t largest = 0;
  for (size_t node = 0; node + 1 < offsets.size(); ++node) {
    largest = std::max(largest, offsets[node + 1] - offsets[node]);
  }
  return largest;
}

std::span<const int32_t> SparseRowsView::row_columns(int64_t row) const { return RowOf(offsets, columns, row); }

std::span<const float> SparseRowsView::row_values(int64_t row) const { return RowOf(offsets, values, row); }

bool GraphView::IsNull(int64_t slot) const {
  return labels[static_cast<size_t>(slot)] == kUnlabelled && features.row_columns(slot).empty();
}

int64_t GraphView::CountUnlabelled() const { return std::count(labels.begin(), labels.end(), kUnlabelled); }

Graph InducedSubgraph(const GraphView& graph, std::span<const int32_t> nodes) {
  return InducedSubgraph(graph, nodes, [] { return true; }).value();
}

absl::StatusOr<Graph> InducedSubgraph(const GraphView& graph, std::span<const int32_t> nodes,
                                      const std::function<bool()>& keep_going) {
  std::vector<int32_t> new_number(static_cast<size_t>(graph.sizes.node_count), -1);
  size_t neighbours = 0;  // in the subgraph or not
  size_t entries = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    new_number[static_cast<size_t>(nodes[i])] = static_cast<int32_t>(i);
    neighbours += graph.edges.neighbours_of(nodes[i]).size();
    entries += graph.features.row_columns(nodes[i]).size();
  }
  Graph subgraph;
  subgraph.sizes = graph.sizes;
  subgraph.sizes.node_count = static_cast<int64_t>(nodes.size());
  subgraph.labels.reserve(nodes.size());
  subgraph.edge_offsets.reserve(nodes.size() + 1);
  subgraph.features.offsets.reserve(nodes.size() + 1);
  // A growing array copies all its entries without asking `keep_going`. Unused capacity takes no memory.
  subgraph.neighbours.reserve(neighbours);
  subgraph.features.columns.reserve(entries);
  subgraph.features.values.reserve(entries);
  Pace pace(keep_going);
  for (const int32_t node : nodes) {
    if (!pace.GoOn(
            static_cast<int64_t>(graph.edges.neighbours_of(node).size() + graph.features.row_columns(node).size()))) {
      return absl::CancelledError("copying a part of the graph was cancelled");
    }
    AppendNeighbours(graph.edges.neighbours_of(node), new_number, subgraph);
    const auto columns = graph.features.row_columns(node);
    const auto values = graph.features.row_values(node);
    subgraph.features.columns.insert(subgraph.features.columns.end(), columns.begin(), columns.end());
    subgraph.features.values.insert(subgraph.features.values.end(), values.begin(), values.end());
    subgraph.features.offsets.push_back(static_cast<int64_t>(subgraph.features.columns.size()));
    subgraph.labels.push_back(graph.labels[static_cast<size_t>(node)]);
  }
  return subgraph;
}

std::string CanonicalContent(const GraphView& graph) {
  std::string content;
  const auto append = [&content](std::span<const std::byte> piece) {
    content.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  };
  // It cannot be stopped, so it cannot fail.
  VisitCanonicalContent(graph, append, AlwaysGoOn).IgnoreError();
  return content;
}

}  // namespace dpar
