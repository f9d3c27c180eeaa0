#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph_file.h"

namespace dpar {

absl::Status WriteGraphFile(const std::string& path, const GraphView& graph, const GraphNames& names) {
  const std::vector<float> weights(graph.edges.neighbours.size(), 1.0F);
  const std::array<int64_t, 2> adjacency_shape = {graph.sizes.node_count, graph.sizes.node_count};
  const std::array<int64_t, 2> feature_shape = {graph.sizes.node_count, graph.sizes.feature_count};
  const std::array<int64_t, 1> class_count = {graph.sizes.class_count};
  const auto vector_view = [](const auto& entries) {
    return NpyView{{static_cast<int64_t>(entries.size())}, std::span(entries)};
  };
  std::map<std::string, NpyView> arrays = {{"adj_data", vector_view(weights)},
                                           {"adj_indices", vector_view(graph.edges.neighbours)},
                                           {"adj_indptr", vector_view(graph.edges.offsets)},
                                           {"adj_shape", vector_view(adjacency_shape)},
                                           {"attr_data", vector_view(graph.features.values)},
                                           {"attr_indices", vector_view(graph.features.columns)},
                                           {"attr_indptr", vector_view(graph.features.offsets)},
                                           {"attr_shape", vector_view(feature_shape)},
                                           {"labels", vector_view(graph.labels)},
                                           {"num_classes", NpyView{{}, std::span<const int64_t>(class_count)}}};
  const NameArrays name_arrays(names);
  name_arrays.AddTo(arrays);
  return WriteNpzFile(path, arrays);
}

}  // namespace dpar
