// A graph that Python holds: one that was read, is mapped, or was made of arrays.
#ifndef DPAR_CLIENT_PYTHON_NATIVE_GRAPH_HANDLE_H_
#define DPAR_CLIENT_PYTHON_NATIVE_GRAPH_HANDLE_H_

#include <utility>
#include <variant>

#include "client/python/native/native.h"
#include "core/graph/graph_names.h"
#include "core/graph/local_graph.h"

namespace dpar::python {

class GraphHandle {
 public:
  GraphHandle(std::variant<LocalGraph, ImportedGraph> graph, GraphNames names)
      : graph_(std::move(graph)), names_(std::move(names)) {}

  // Lasts while this object stays in place. The first call verifies a sealed graph.
  [[nodiscard]] GraphView View() const {
    const auto* imported = std::get_if<ImportedGraph>(&graph_);
    return imported != nullptr ? GraphView(imported->graph) : Take(std::get<LocalGraph>(graph_).View());
  }
  [[nodiscard]] const GraphNames& names() const { return names_; }
  // Whether the class count was taken from the labels, and so is not public.
  [[nodiscard]] bool classes_counted() const {
    const auto* imported = std::get_if<ImportedGraph>(&graph_);
    return imported != nullptr ? imported->classes_counted : std::get<LocalGraph>(graph_).classes_counted();
  }
  [[nodiscard]] ImportReport report() const {
    const auto* imported = std::get_if<ImportedGraph>(&graph_);
    return imported != nullptr ? imported->report : std::get<LocalGraph>(graph_).report();
  }

 private:
  std::variant<LocalGraph, ImportedGraph> graph_;
  GraphNames names_;
};

}  // namespace dpar::python

#endif  // DPAR_CLIENT_PYTHON_NATIVE_GRAPH_HANDLE_H_
