// A graph in a file of either kind: npz, which is read into memory, or sealed, which is mapped.
#ifndef DPAR_CORE_GRAPH_LOCAL_GRAPH_H_
#define DPAR_CORE_GRAPH_LOCAL_GRAPH_H_

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/graph/graph_file.h"
#include "core/graph/sealed_graph.h"

namespace dpar {

class LocalGraph {
 public:
  // The errors of ReadGraphFile or of SealedGraph::Open, whichever the file begins as.
  static absl::StatusOr<LocalGraph> Open(const std::string& path);

  // Views last as long as this object stays where it is. Sections of a sealed graph are verified when they are first
  // asked for, so this is where damage shows.
  [[nodiscard]] absl::StatusOr<EdgesView> Edges() const;
  [[nodiscard]] absl::StatusOr<GraphView> View() const;

  // What reading changed; nothing for a sealed graph, which is canonical.
  [[nodiscard]] ImportReport report() const;

 private:
  explicit LocalGraph(ImportedGraph graph) : graph_(std::move(graph)) {}
  explicit LocalGraph(SealedGraph graph) : graph_(std::move(graph)) {}

  std::variant<ImportedGraph, SealedGraph> graph_;
};

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_LOCAL_GRAPH_H_
