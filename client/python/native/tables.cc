#include <pybind11/stl.h>

#include <string>

#include "client/python/native/graph_handle.h"
#include "core/table/draft.h"
#include "core/table/schema.h"
#include "core/table/table_graph.h"

namespace dpar::python {
namespace {

namespace py = pybind11;

// Python's Ctrl-C ends the reading.
bool GoOn(absl::string_view /*stage*/, double /*fraction*/) {
  const py::gil_scoped_acquire lock;
  return PyErr_CheckSignals() == 0;
}

template <typename T>
T TakeInterruptible(absl::StatusOr<T> result) {
  if (PyErr_Occurred() != nullptr) {
    throw py::error_already_set();
  }
  return Take(std::move(result));
}

py::dict ReportOf(const TableReport& report) {
  py::list others;
  for (const TableReport::Others& of : report.others) {
    others.append(py::make_tuple(of.column, of.count, of.first));
  }
  py::dict result;
  result["others"] = std::move(others);
  result["unknown_edges"] = report.unknown_edges;
  result["first_unknown"] = report.first_unknown;
  result["null_rows"] = report.null_rows;
  return result;
}

// The graph and what happened to cells and edges.
py::tuple ReadTables(const std::string& schema_text, const std::string& nodes, const std::string& edges) {
  const TableSchema schema = Take(ParseSchema(schema_text));
  absl::StatusOr<TableGraph> read = WithoutLock([&] {
    return ReadTableGraph(schema, {nodes, edges}, GraphLimits(), GoOn);
  });
  TableGraph tables = TakeInterruptible(std::move(read));
  const py::dict report = ReportOf(tables.report);
  return py::make_tuple(std::make_unique<GraphHandle>(std::move(tables.imported), std::move(tables.names)), report);
}

// The draft, and the questions in it as pairs of column and text.
py::tuple Draft(const std::string& nodes, const std::string& edges, const std::string& id, const std::string& label) {
  absl::StatusOr<SchemaDraft> drafted = WithoutLock([&] { return DraftSchema({nodes, edges}, {id, label}, GoOn); });
  const SchemaDraft draft = TakeInterruptible(std::move(drafted));
  py::list questions;
  for (const SchemaQuestion& question : draft.questions) {
    questions.append(py::make_tuple(question.column, question.text));
  }
  return py::make_tuple(draft.yaml, questions);
}

// In canonical form. A draft with open questions is refused, unless they are accepted as observed.
std::string Answered(const std::string& text, bool accept_observed, bool is_public) {
  TableSchema schema = Take(ParseSchema(text));
  if (accept_observed) {
    schema = AcceptObserved(std::move(schema));
  } else if (!is_public) {
    Require(CheckAnswered(schema));
  }
  return CanonicalSchema(schema);
}

py::dict Facts(const std::string& text) {
  const TableSchema schema = Take(ParseSchema(text));
  py::dict result;
  result["id"] = schema.id;
  result["label"] = schema.label;
  result["classes"] = schema.classes;
  result["feature_count"] = schema.feature_count();
  result["max_entries"] = schema.max_entries();
  result["accepted_observed"] = schema.accepted_observed;
  return result;
}

}  // namespace

void AddTables(py::module_& module) {
  module.def("read_tables", ReadTables, py::arg("schema"), py::arg("nodes"), py::arg("edges"));
  module.def("draft_schema", Draft, py::arg("nodes"), py::arg("edges"), py::arg("id"), py::arg("label"));
  module.def("answered_schema", Answered, py::arg("schema"), py::arg("accept_observed"), py::arg("is_public"));
  module.def("schema_facts", Facts, py::arg("schema"));
  module.def("schema_difference", [](const std::string& a, const std::string& b) {
    return SchemaDifference(Take(ParseSchema(a)), Take(ParseSchema(b)));
  });
}

}  // namespace dpar::python
