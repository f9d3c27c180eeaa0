#include "core/graph/keep_slots.h"

#include <vector>

namespace dpar {

Graph KeepSlots(const GraphView& graph, std::span<const int64_t> kept) {
  std::vector<bool> is_kept(static_cast<size_t>(graph.sizes.node_count), false);
  for (const int64_t slot : kept) {
    is_kept[static_cast<size_t>(slot)] = true;
  }
  Graph result;
  result.sizes = graph.sizes;
  result.labels.reserve(is_kept.size());
  result.edge_offsets.reserve(is_kept.size() + 1);
  result.features.offsets.reserve(is_kept.size() + 1);
  for (int64_t slot = 0; slot < graph.sizes.node_count; ++slot) {
    const bool keep = is_kept[static_cast<size_t>(slot)];
    result.labels.push_back(keep ? graph.labels[static_cast<size_t>(slot)] : kUnlabelled);
    if (keep) {
      for (const int32_t neighbour : graph.edges.neighbours_of(slot)) {
        if (is_kept[static_cast<size_t>(neighbour)]) {
          result.neighbours.push_back(neighbour);
        }
      }
      const auto columns = graph.features.row_columns(slot);
      const auto values = graph.features.row_values(slot);
      result.features.columns.insert(result.features.columns.end(), columns.begin(), columns.end());
      result.features.values.insert(result.features.values.end(), values.begin(), values.end());
    }
    result.edge_offsets.push_back(static_cast<int64_t>(result.neighbours.size()));
    result.features.offsets.push_back(static_cast<int64_t>(result.features.columns.size()));
  }
  return result;
}

}  // namespace dpar
