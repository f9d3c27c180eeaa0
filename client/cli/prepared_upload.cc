#include "client/cli/prepared_upload.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/errors.h"
#include "client/cli/feature_notes.h"
#include "core/graph/feature_scales.h"
#include "core/graph/graph_file.h"
#include "core/status_macros.h"

namespace dpar {

absl::StatusOr<std::unique_ptr<PreparedUpload::Scratch>> PreparedUpload::Scratch::Make() {
  std::error_code error;
  std::string path = (std::filesystem::temp_directory_path(error) / "dpar-upload.XXXXXX").string();
  if (error || mkdtemp(path.data()) == nullptr) {
    return absl::InternalError(
        "cannot make a temporary directory for the file to upload; TMPDIR names one on a disk with room");
  }
  return std::unique_ptr<Scratch>(new Scratch(std::move(path)));
}

PreparedUpload::Scratch::~Scratch() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

absl::Status PreparedUpload::WriteCopy(Session& session, const GraphView& graph) {
  DPAR_ASSIGN_OR_RETURN(scratch_, Scratch::Make());
  path_ = absl::StrCat(scratch_->path(), "/graph.npz");
  sizes_ = graph.sizes;
  DPAR_RETURN_IF_ERROR(AsLocal(WriteGraphFile(path_, graph)));
  return session.calls().cancelled() ? absl::CancelledError("the upload was stopped") : absl::OkStatus();
}

absl::StatusOr<PreparedUpload> PreparedUpload::OfTables(Session& session, const TableArguments& arguments,
                                                        bool is_public) {
  DPAR_ASSIGN_OR_RETURN(const TableSchema schema, LoadSchema(arguments, is_public));
  DPAR_ASSIGN_OR_RETURN(const TableGraph tables, LoadTables(session, schema, arguments.files));
  PreparedUpload prepared;
  prepared.schema_ = tables.names.schema;
  prepared.most_entries_ = tables.imported.graph.sizes.node_count * schema.max_entries();
  DPAR_RETURN_IF_ERROR(prepared.WriteCopy(session, tables.imported.graph));
  return prepared;
}

absl::StatusOr<PreparedUpload> PreparedUpload::OfFile(Session& session, const std::string& path,
                                                      std::optional<int64_t> classes) {
  const absl::StatusOr<PublicSizes> sizes = ReadGraphSizes(path, GraphLimits(), classes);
  DPAR_RETURN_IF_ERROR(AsLocal(sizes.status()));
  const absl::StatusOr<GraphNames> names = ReadGraphNames(path, sizes->node_count, sizes->class_count);
  DPAR_RETURN_IF_ERROR(AsLocal(names.status()));
  PreparedUpload prepared;
  prepared.path_ = path;
  prepared.sizes_ = *sizes;
  prepared.schema_ = names->schema;
  if (!names->schema.empty()) {
    DPAR_ASSIGN_OR_RETURN(const TableSchema schema, ParseSchema(names->schema));
    prepared.most_entries_ = sizes->node_count * schema.max_entries();
  }
  if (names->schema.empty()) {
    // A file that cannot be read here goes up as it is: the server says to the uploader what is wrong with it.
    const absl::StatusOr<FeatureScales> scales = ReadFeatureScales(path, GraphLimits());
    for (const std::string& note : scales.ok() ? FeatureNotes(*scales) : std::vector<std::string>()) {
      session.err() << "note: " << note << "\n";
    }
  }
  if (!names->empty()) {
    const absl::StatusOr<ImportedGraph> imported = ReadGraphFile(path, GraphLimits(), *sizes);
    DPAR_RETURN_IF_ERROR(AsLocal(imported.status()));
    DPAR_RETURN_IF_ERROR(prepared.WriteCopy(session, imported->graph));
  }
  return prepared;
}

}  // namespace dpar
