// A graph in a file of either kind: npz, which is read into memory, or sealed, which is mapped.
#ifndef DPAR_CORE_GRAPH_LOCAL_GRAPH_H_
#define DPAR_CORE_GRAPH_LOCAL_GRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph.h"
#include "core/graph/graph_file.h"
#include "core/graph/graph_names.h"
#include "core/graph/sealed_graph.h"

namespace dpar {

class LocalGraph {
 public:
  // The errors of ReadGraphFile or of SealedGraph::Open, whichever the file begins as.
  static absl::StatusOr<LocalGraph> Open(const std::string& path);
  // For what is written anew: the class count is stated here or by the file, as in ReadGraphSizes. A sealed graph
  // states its own, and takes no other.
  static absl::StatusOr<LocalGraph> OpenStated(const std::string& path, std::optional<int64_t> classes);

  // Views last while this object stays in place. A sealed graph is verified here, on first use, section by section.
  [[nodiscard]] absl::StatusOr<EdgesView> Edges() const;
  [[nodiscard]] absl::StatusOr<GraphView> View() const;

  // What reading changed; nothing for a sealed graph, which is canonical.
  [[nodiscard]] ImportReport report() const;
  // Whether the class count was taken from the labels; a sealed graph states it.
  [[nodiscard]] bool classes_counted() const;

 private:
  explicit LocalGraph(ImportedGraph graph) : graph_(std::move(graph)) {}
  explicit LocalGraph(SealedGraph graph) : graph_(std::move(graph)) {}

  std::variant<ImportedGraph, SealedGraph> graph_;
};

bool IsSealedName(absl::string_view path);
bool IsNpzName(absl::string_view path);

// Writes the format that the name ends in. INVALID_ARGUMENT for any other ending. The names of a sealed graph, which is
// the server's format, stand beside it in FILE.sealed.names.npz; a file there that would belong to another graph is
// removed.
absl::Status WriteLocalGraph(const std::string& path, const GraphView& graph, const GraphNames& names = {});

// The names of a graph in either kind of file; empty where there are none.
absl::StatusOr<GraphNames> ReadLocalNames(const std::string& path, const PublicSizes& sizes);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_LOCAL_GRAPH_H_
