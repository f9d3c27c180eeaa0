#include "server/uploads/declared_graph.h"

#include "absl/strings/str_cat.h"
#include "core/graph/graph_error.h"
#include "core/graph/size_bounds.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

GraphLimits MakeGraphLimits(const Limits& limits) {
  GraphLimits graph;
  graph.max_nodes = limits.max_nodes;
  graph.max_features = limits.max_features;
  graph.max_classes = limits.max_classes;
  graph.max_edges = limits.max_edges;
  graph.max_feature_entries = limits.max_feature_entries;
  return graph;
}

// Checks the degree promise. The message has the promised degree, which is public, but neither degree nor node. Nothing
// is dropped to keep it: removing a hub would re-route its neighbours' edges.
absl::Status CheckPromise(const Graph& graph, int64_t max_degree) {
  if (graph.edges().largest_degree() > max_degree) {
    return GraphError("edges", absl::StrCat("break the degree promise: a node has more than the ", max_degree,
                                            " neighbours that were declared. Declare a larger max_degree that is "
                                            "known without the data, or none, and upload the file again"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImportedGraph> ReadDeclaredGraph(const std::string& path, const v1::OpenUploadRequest& declared,
                                                const Limits& limits, const ReadReports& reports) {
  const PublicSizes sizes = {declared.node_count(), declared.feature_count(), declared.class_count()};
  DPAR_ASSIGN_OR_RETURN(ImportedGraph imported, ReadGraphFile(path, MakeGraphLimits(limits), sizes, reports));
  DPAR_RETURN_IF_ERROR(CheckSizeBounds(imported.graph, {declared.edge_bound(), declared.entry_bound()}));
  if (declared.has_max_degree()) {
    DPAR_RETURN_IF_ERROR(CheckPromise(imported.graph, declared.max_degree()));
  }
  return imported;
}

}  // namespace dpar
