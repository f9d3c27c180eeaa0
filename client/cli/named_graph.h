// The caller's graph, from a file or from tables that a model's schema encodes, with the names of its nodes and
// classes.
#ifndef DPAR_CLIENT_CLI_NAMED_GRAPH_H_
#define DPAR_CLIENT_CLI_NAMED_GRAPH_H_

#include <string>
#include <utility>
#include <variant>

#include "absl/status/statusor.h"
#include "client/cli/session.h"
#include "core/graph/graph_names.h"
#include "core/graph/local_graph.h"
#include "core/infer/model.h"
#include "core/table/table_graph.h"

namespace dpar {

class NamedGraph {
 public:
  // Classes go by the model's names, if it has a schema, or else by the file's. FAILED_PRECONDITION if the file has a
  // schema too and it encodes rows otherwise.
  static absl::StatusOr<NamedGraph> OfFile(const std::string& path, const Model& model);
  // By the file's own names.
  static absl::StatusOr<NamedGraph> OfFile(const std::string& path);
  // FAILED_PRECONDITION for a model without a schema.
  static absl::StatusOr<NamedGraph> OfTables(Session& session, const Model& model, const TableFiles& files);

  // Lasts while this object stays in place.
  [[nodiscard]] absl::StatusOr<GraphView> View() const;
  [[nodiscard]] const GraphNames& names() const { return names_; }

 private:
  NamedGraph(std::variant<LocalGraph, ImportedGraph> graph, GraphNames names)
      : graph_(std::move(graph)), names_(std::move(names)) {}

  std::variant<LocalGraph, ImportedGraph> graph_;
  GraphNames names_;
};

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_NAMED_GRAPH_H_
