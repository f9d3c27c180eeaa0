#include "core/graph/local_graph.h"

#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

std::string NamesBeside(const std::string& path) { return path + ".names.npz"; }

}  // namespace

absl::StatusOr<LocalGraph> LocalGraph::Open(const std::string& path) {
  if (IsSealedGraph(path)) {
    DPAR_ASSIGN_OR_RETURN(SealedGraph sealed, SealedGraph::Open(path));
    return LocalGraph(std::move(sealed));
  }
  DPAR_ASSIGN_OR_RETURN(ImportedGraph imported, ReadGraphFile(path, GraphLimits(), std::nullopt));
  return LocalGraph(std::move(imported));
}

absl::StatusOr<LocalGraph> LocalGraph::OpenStated(const std::string& path, std::optional<int64_t> classes) {
  if (IsSealedGraph(path)) {
    return classes.has_value() ? InvalidField("classes", "a sealed graph states its number of classes; leave it out")
                               : Open(path);
  }
  DPAR_ASSIGN_OR_RETURN(const PublicSizes sizes, ReadGraphSizes(path, GraphLimits(), classes));
  DPAR_ASSIGN_OR_RETURN(ImportedGraph imported, ReadGraphFile(path, GraphLimits(), sizes));
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

bool LocalGraph::classes_counted() const {
  const auto* imported = std::get_if<ImportedGraph>(&graph_);
  return imported != nullptr && imported->classes_counted;
}

ImportReport LocalGraph::report() const {
  const auto* imported = std::get_if<ImportedGraph>(&graph_);
  return imported != nullptr ? imported->report : ImportReport();
}

absl::StatusOr<GraphNames> ReadLocalNames(const std::string& path, const PublicSizes& sizes) {
  const std::string file = IsSealedGraph(path) ? NamesBeside(path) : path;
  std::error_code error;
  return std::filesystem::exists(file, error) ? ReadGraphNames(file, sizes.node_count, sizes.class_count)
                                              : absl::StatusOr<GraphNames>(GraphNames());
}

bool IsSealedName(absl::string_view path) { return absl::EndsWith(path, ".sealed"); }

bool IsNpzName(absl::string_view path) { return absl::EndsWith(path, ".npz"); }

absl::Status WriteLocalGraph(const std::string& path, const GraphView& graph, const GraphNames& names) {
  if (IsSealedName(path)) {
    std::error_code error;
    std::filesystem::remove(NamesBeside(path), error);
    DPAR_RETURN_IF_ERROR(WriteSealedGraph(path, graph));
    std::map<std::string, NpyView> arrays;
    const NameArrays name_arrays(names);
    name_arrays.AddTo(arrays);
    return arrays.empty() ? absl::OkStatus() : WriteNpzFile(NamesBeside(path), arrays);
  }
  if (IsNpzName(path)) {
    return WriteGraphFile(path, graph, names);
  }
  return InvalidField("path", absl::StrCat("a graph's file must end in .npz or .sealed, and not be '", path, "'"));
}

}  // namespace dpar
