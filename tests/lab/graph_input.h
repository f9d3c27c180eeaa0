// The graph that a command works on: a local file, npz or sealed, whole or only its largest connected component.
//
// A sealed graph is mapped and verified as far as it is asked for, an npz file is read into memory. The largest
// component is a copy in memory, made in time O(nodes + entries).
#ifndef DPAR_TESTS_LAB_GRAPH_INPUT_H_
#define DPAR_TESTS_LAB_GRAPH_INPUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/graph/local_graph.h"

namespace dpar::lab {

struct GraphFlags {
  std::string file;
  bool largest_component = false;
};
void AddGraphFlags(CLI::App& command, GraphFlags& flags);

class GraphInput {
 public:
  // INVALID_FIELD unless the file is a regular one that can be read; for what is wrong in it the reader's error, with
  // the file's name before it.
  static absl::StatusOr<GraphInput> Open(const GraphFlags& flags);

  // Views last as long as this object stays where it is.
  [[nodiscard]] absl::StatusOr<EdgesView> Edges() const;
  [[nodiscard]] absl::StatusOr<GraphView> View() const;

  // The file's ids of the component's nodes, ascending: node i of the views is nodes()[i]. Nothing for a whole graph,
  // whose ids are the file's.
  [[nodiscard]] const std::optional<std::vector<int32_t>>& nodes() const { return nodes_; }

 private:
  GraphInput(std::string file, LocalGraph graph) : file_(std::move(file)), graph_(std::move(graph)) {}
  absl::Status KeepLargestComponent();

  std::string file_;
  LocalGraph graph_;
  std::optional<Graph> component_;  // instead of graph_, when only that was asked for
  std::optional<std::vector<int32_t>> nodes_;
};

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_GRAPH_INPUT_H_
