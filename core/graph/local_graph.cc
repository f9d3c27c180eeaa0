#include "core/graph/local_graph.h"

#include <optional>
#include <utility>

#include "core/status_macros.h"

namespace dpar {

absl::StatusOr<LocalGraph> LocalGraph::Open(const std::string& path) {
  if (IsSealedGraph(path)) {
    DPAR_ASSIGN_OR_RETURN(SealedGraph sealed, SealedGraph::Open(path));
    return LocalGraph(std::move(sealed));
  }
  DPAR_ASSIGN_OR_RETURN(ImportedGraph imported, ReadGraphFile(path, GraphLimits(), std::nullopt));
  return LocalGraph(std::move(imported));
}

absl::StatusOr<EdgesView> LocalGraph::Edges() const {
  const auto* imported = std::get_if<ImportedGraph>(&graph_);
  return imported != nullptr ? imported->graph.edges() : std::get<SealedGraph>(graph_).Edges();
}

absl::StatusOr<GraphView> LocalGraph::View() const {
  const auto* imported = std::get_if<ImportedGraph>(&graph_);
  return imported != nullptr ? GraphView(imported->graph) : std::get<SealedGraph>(graph_).View();
}

ImportReport LocalGraph::report() const {
  const auto* imported = std::get_if<ImportedGraph>(&graph_);
  return imported != nullptr ? imported->report : ImportReport();
}

}  // namespace dpar
