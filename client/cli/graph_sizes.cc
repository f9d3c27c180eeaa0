#include "client/cli/graph_sizes.h"

#include "absl/strings/str_cat.h"
#include "client/cli/format.h"

namespace dpar {

Json SizesJson(const GraphView& graph) {
  return {{"node_count", graph.sizes.node_count},
          {"feature_count", graph.sizes.feature_count},
          {"class_count", graph.sizes.class_count},
          {"edge_count", graph.edges.edge_count()}};
}

std::string SizesText(const GraphView& graph) {
  return absl::StrCat(FormatCount(graph.sizes.node_count), " nodes, ", FormatCount(graph.edges.edge_count()),
                      " edges, ", FormatCount(graph.sizes.feature_count), " features, ",
                      FormatCount(graph.sizes.class_count), " classes");
}

}  // namespace dpar
