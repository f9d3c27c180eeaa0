#include "core/graph/keep_slots.h"

#include <vector>

#include "core/pace.h"

namespace dpar {

absl::StatusOr<Graph> KeepSlots(const GraphView& graph, std::span<const int64_t> kept,
                                const std::function<bool()>& keep_going) {
  std::vector<bool> is_kept(static_cast<size_t>(graph.sizes.node_count), false);
  size_t neighbours = 0;  // of kept slots, kept or not
  size_t entries = 0;
  for (const int64_t slot : kept) {
    is_kept[static_cast<size_t>(slot)] = true;
    neighbours += graph.edges.neighbours_of(slot).size();
    entries += graph.features.row_columns(slot).size();
  }
  Graph result;
  result.sizes = graph.sizes;
  result.labels.reserve(is_kept.size());
  result.edge_offsets.reserve(is_kept.size() + 1);
  result.features.offsets.reserve(is_kept.size() + 1);
  // A growing array copies all its entries without asking `keep_going`. Unused capacity takes no memory.
  result.neighbours.reserve(neighbours);
  result.features.columns.reserve(entries);
  result.features.values.reserve(entries);
  Pace pace(keep_going);
  for (int64_t slot = 0; slot < graph.sizes.node_count; ++slot) {
    const bool keep = is_kept[static_cast<size_t>(slot)];
    const auto around = keep ? graph.edges.neighbours_of(slot) : std::span<const int32_t>();
    const auto columns = keep ? graph.features.row_columns(slot) : std::span<const int32_t>();
    const auto values = keep ? graph.features.row_values(slot) : std::span<const float>();
    if (!pace.GoOn(static_cast<int64_t>(around.size() + columns.size()))) {
      return absl::CancelledError("sampling nodes was cancelled");
    }
    result.labels.push_back(keep ? graph.labels[static_cast<size_t>(slot)] : kUnlabelled);
    for (const int32_t neighbour : around) {
      if (is_kept[static_cast<size_t>(neighbour)]) {
        result.neighbours.push_back(neighbour);
      }
    }
    result.edge_offsets.push_back(static_cast<int64_t>(result.neighbours.size()));
    result.features.columns.insert(result.features.columns.end(), columns.begin(), columns.end());
    result.features.values.insert(result.features.values.end(), values.begin(), values.end());
    result.features.offsets.push_back(static_cast<int64_t>(result.features.columns.size()));
  }
  return result;
}

}  // namespace dpar
