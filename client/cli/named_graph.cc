#include "client/cli/named_graph.h"

#include "client/cli/errors.h"
#include "client/cli/tables.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {

absl::StatusOr<NamedGraph> NamedGraph::OfFile(const std::string& path) {
  absl::StatusOr<LocalGraph> local = LocalGraph::Open(path);
  DPAR_RETURN_IF_ERROR(AsLocal(local.status()));
  const absl::StatusOr<GraphView> view = local->View();
  DPAR_RETURN_IF_ERROR(AsLocal(view.status()));
  absl::StatusOr<GraphNames> names = ReadLocalNames(path, view->sizes);
  DPAR_RETURN_IF_ERROR(AsLocal(names.status()));
  return NamedGraph(*std::move(local), *std::move(names));
}

absl::StatusOr<NamedGraph> NamedGraph::OfFile(const std::string& path, const Model& model) {
  DPAR_ASSIGN_OR_RETURN(NamedGraph named, OfFile(path));
  if (!model.schema.empty()) {
    const absl::StatusOr<TableSchema> schema = ParseSchema(model.schema);
    DPAR_RETURN_IF_ERROR(AsLocal(schema.status()));
    if (!named.names_.schema.empty()) {
      const absl::StatusOr<TableSchema> own = ParseSchema(named.names_.schema);
      DPAR_RETURN_IF_ERROR(AsLocal(own.status()));
      const std::string difference = SchemaDifference(*schema, *own);
      if (!difference.empty()) {
        return absl::FailedPreconditionError(
            absl::StrCat("'", path, "' was made with another schema than the model: ", difference,
                         ". Give its tables with --nodes and --edges, which the model's schema encodes"));
      }
    }
    named.names_.classes = schema->classes;
  }
  return named;
}

absl::StatusOr<NamedGraph> NamedGraph::OfTables(Session& session, const Model& model, const TableFiles& files) {
  if (model.schema.empty()) {
    return absl::FailedPreconditionError(
        "the model has no schema: it was not trained on tables, so that nothing says how to encode these. Convert them "
        "as its training graph was, and give --graph");
  }
  const absl::StatusOr<TableSchema> schema = ParseSchema(model.schema);
  DPAR_RETURN_IF_ERROR(AsLocal(schema.status()));
  if (schema->feature_count() != model.feature_count ||
      static_cast<int64_t>(schema->classes.size()) != model.class_count) {
    return absl::InvalidArgumentError("the model's schema does not fit its weights: the file is damaged");
  }
  DPAR_ASSIGN_OR_RETURN(TableGraph tables, LoadTables(session, *schema, files));
  return NamedGraph(std::move(tables.imported), std::move(tables.names));
}

absl::StatusOr<GraphView> NamedGraph::View() const {
  const auto* imported = std::get_if<ImportedGraph>(&graph_);
  if (imported != nullptr) {
    return GraphView(imported->graph);
  }
  absl::StatusOr<GraphView> view = std::get<LocalGraph>(graph_).View();
  DPAR_RETURN_IF_ERROR(AsLocal(view.status()));
  return view;
}

}  // namespace dpar
