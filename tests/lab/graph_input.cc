#include "tests/lab/graph_input.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "tests/lab/components.h"

namespace dpar::lab {
namespace {

absl::Status CheckFile(const std::string& file) {
  const auto refuse = [&file](const char* why) {
    return InvalidField("graph", absl::StrCat("cannot read '", file, "': ", why));
  };
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) {
    return refuse(std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) {
    return refuse("it is a directory, and a file is needed");
  }
  if (!S_ISREG(status.st_mode)) {
    return refuse("it is not a regular file");
  }
  return ::access(file.c_str(), R_OK) == 0 ? absl::OkStatus() : refuse(std::strerror(errno));
}

// The arguments were good and the content was not, so no field is named any more.
absl::Status InFile(const std::string& file, const absl::Status& status) {
  return absl::StrContains(status.message(), file)
             ? absl::Status(status.code(), status.message())
             : absl::Status(status.code(), absl::StrCat("'", file, "': ", status.message()));
}

}  // namespace

void AddGraphFlags(CLI::App& command, GraphFlags& flags) {
  command.add_option("--graph", flags.file, "Graph file on this machine, npz or sealed")->type_name("FILE")->required();
  command.add_flag("--largest-component", flags.largest_component,
                   "Use the largest connected component only; its nodes are numbered from 0, in the file's order");
}

absl::StatusOr<GraphInput> GraphInput::Open(const GraphFlags& flags) {
  DPAR_RETURN_IF_ERROR(CheckFile(flags.file));
  absl::StatusOr<LocalGraph> graph = LocalGraph::Open(flags.file);
  if (!graph.ok()) {
    return InFile(flags.file, graph.status());
  }
  GraphInput input(flags.file, *std::move(graph));
  if (flags.largest_component) {
    DPAR_RETURN_IF_ERROR(input.KeepLargestComponent());
  }
  return input;
}

absl::Status GraphInput::KeepLargestComponent() {
  DPAR_ASSIGN_OR_RETURN(const GraphView whole, View());
  nodes_ = LargestComponent(whole.edges);
  component_ = InducedSubgraph(whole, *nodes_);
  return absl::OkStatus();
}

absl::StatusOr<EdgesView> GraphInput::Edges() const {
  if (component_.has_value()) {
    return component_->edges();
  }
  const absl::StatusOr<EdgesView> edges = graph_.Edges();
  return edges.ok() ? edges : InFile(file_, edges.status());
}

absl::StatusOr<GraphView> GraphInput::View() const {
  if (component_.has_value()) {
    return GraphView(*component_);
  }
  const absl::StatusOr<GraphView> view = graph_.View();
  return view.ok() ? view : InFile(file_, view.status());
}

}  // namespace dpar::lab
