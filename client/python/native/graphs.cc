#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/python/native/graph_handle.h"
#include "core/error.h"
#include "core/graph/canonical_edges.h"
#include "core/graph/canonical_features.h"
#include "core/graph/feature_scales.h"
#include "core/graph/graph_error.h"
#include "core/graph/graphml_file.h"
#include "core/graph/size_bounds.h"

namespace dpar::python {
namespace {

namespace py = pybind11;

// A contiguous array of this type, of the caller's memory where that is possible.
template <typename T>
using Input = py::array_t<T, py::array::c_style | py::array::forcecast>;

template <typename T>
std::span<const T> SpanOf(const Input<T>& array) {
  return {array.data(), static_cast<size_t>(array.size())};
}

template <typename T>
std::vector<T> CopyOf(const Input<T>& array) {
  return {array.data(), array.data() + array.size()};
}

// Offsets of rows: ascending from 0 to the number of entries.
void CheckOffsets(absl::string_view array, std::span<const int64_t> offsets, int64_t rows, size_t entries) {
  if (static_cast<int64_t>(offsets.size()) != rows + 1 || offsets.front() != 0 ||
      offsets.back() != static_cast<int64_t>(entries) || !std::is_sorted(offsets.begin(), offsets.end())) {
    throw StatusError(GraphError(array, absl::StrCat("must hold ", rows,
                                                     " rows: its offsets rise from 0 to the number "
                                                     "of its entries")));
  }
}

void CheckColumns(absl::string_view array, std::span<const int32_t> columns, int64_t count) {
  const auto bad = std::find_if(columns.begin(), columns.end(), [count](int32_t c) { return c < 0 || c >= count; });
  if (bad != columns.end()) {
    throw StatusError(GraphErrorAt(array, bad - columns.begin(), absl::StrCat("must be from 0 to ", count - 1)));
  }
}

void CheckLabels(std::span<const int32_t> labels, const PublicSizes& sizes) {
  if (static_cast<int64_t>(labels.size()) != sizes.node_count) {
    throw StatusError(GraphError(
        "labels", absl::StrCat("must have an entry for each of the ", sizes.node_count, " nodes, -1 for none")));
  }
  const auto bad = std::find_if(labels.begin(), labels.end(),
                                [&](int32_t label) { return label < kUnlabelled || label >= sizes.class_count; });
  if (bad != labels.end()) {
    throw StatusError(GraphErrorAt("labels", bad - labels.begin(),
                                   absl::StrCat("must be from -1 (none) to ", sizes.class_count - 1)));
  }
}

void CheckSizes(const PublicSizes& sizes) {
  const GraphLimits limits;
  const auto largest = int64_t{std::numeric_limits<int32_t>::max()};
  const auto check = [](const char* limit, int64_t value, int64_t maximum) {
    if (value < 0 || value > maximum) {
      throw StatusError(LimitError(limit, maximum));
    }
  };
  check("max_nodes", sizes.node_count, std::min(limits.max_nodes, largest));
  check("max_features", sizes.feature_count, std::min(limits.max_features, largest));
  check("max_classes", sizes.class_count, limits.max_classes);
}

void MakeCanonical(ImportedGraph& result) {
  Graph& graph = result.graph;
  const EdgeChanges changes = CanonicaliseEdges(graph.edge_offsets, graph.neighbours);
  const auto repeated = CanonicaliseFeatures(graph.features, result.report.zero_features_dropped);
  if (repeated.has_value()) {
    throw StatusError(GraphErrorAt("features", repeated->row, "names a column twice"));
  }
  result.report.edge_count = graph.edge_count();
  result.report.edges_symmetrised = changes.edges_symmetrised;
  result.report.duplicates_merged = changes.duplicates_merged;
  result.report.self_loops_dropped = changes.self_loops_dropped;
  result.report.unlabelled_nodes = GraphView(graph).CountUnlabelled();
}

GraphNames MakeNames(const std::vector<std::string>& ids, std::vector<std::string> classes, const PublicSizes& sizes) {
  GraphNames names;
  if (!ids.empty() && static_cast<int64_t>(ids.size()) != sizes.node_count) {
    throw StatusError(
        GraphError("node_ids", absl::StrCat("must have one for each of the ", sizes.node_count, " nodes")));
  }
  for (const std::string& id : ids) {
    if (id.empty() || id.size() > kMaxNodeIdBytes) {
      throw StatusError(GraphError("node_ids", absl::StrCat("must have 1 to ", kMaxNodeIdBytes, " bytes each")));
    }
    names.ids.Add(id);
  }
  names.classes = std::move(classes);
  return names;
}

// Copies each array once.
std::unique_ptr<GraphHandle> FromArrays(const Input<int64_t>& edge_offsets, const Input<int32_t>& neighbours,
                                        const Input<int64_t>& feature_offsets, const Input<int32_t>& columns,
                                        const Input<float>& values, const Input<int32_t>& labels, int64_t feature_count,
                                        int64_t class_count, bool classes_counted, const std::vector<std::string>& ids,
                                        std::vector<std::string> class_names) {
  ImportedGraph result;
  result.classes_counted = classes_counted;
  Graph& graph = result.graph;
  graph.sizes = {static_cast<int64_t>(edge_offsets.size()) - 1, feature_count, class_count};
  CheckSizes(graph.sizes);
  CheckOffsets("edges", SpanOf(edge_offsets), graph.sizes.node_count, static_cast<size_t>(neighbours.size()));
  CheckColumns("edges", SpanOf(neighbours), graph.sizes.node_count);
  CheckOffsets("features", SpanOf(feature_offsets), graph.sizes.node_count, static_cast<size_t>(columns.size()));
  CheckColumns("features", SpanOf(columns), feature_count);
  CheckLabels(SpanOf(labels), graph.sizes);
  const std::span<const float> entries = SpanOf(values);
  const auto bad = std::find_if(entries.begin(), entries.end(), [](float value) { return !std::isfinite(value); });
  if (entries.size() != static_cast<size_t>(columns.size()) || bad != entries.end()) {
    throw StatusError(GraphErrorAt("features", bad - entries.begin(), "must be a finite number"));
  }
  GraphNames names = MakeNames(ids, std::move(class_names), graph.sizes);
  graph.edge_offsets = CopyOf(edge_offsets);
  graph.neighbours = CopyOf(neighbours);
  graph.features = {CopyOf(feature_offsets), CopyOf(columns), CopyOf(values)};
  graph.labels = CopyOf(labels);
  WithoutLock([&result] {
    MakeCanonical(result);
    return 0;
  });
  return std::make_unique<GraphHandle>(std::move(result), std::move(names));
}

// npz, sealed or GraphML. With `stated`, the class count is never taken from labels.
std::unique_ptr<GraphHandle> Read(const std::string& path, std::optional<int64_t> classes, bool stated) {
  return WithoutLock([&] {
    if (IsGraphMlName(path)) {
      return std::make_unique<GraphHandle>(Take(ReadGraphMlFile(path, GraphLimits(), classes)), GraphNames());
    }
    LocalGraph local =
        Take(stated || classes.has_value() ? LocalGraph::OpenStated(path, classes) : LocalGraph::Open(path));
    const PublicSizes sizes = Take(local.View()).sizes;
    GraphNames names = Take(ReadLocalNames(path, sizes));
    return std::make_unique<GraphHandle>(std::move(local), std::move(names));
  });
}

py::dict ReportOf(const GraphHandle& graph) {
  const ImportReport report = graph.report();
  py::dict result;
  result["edge_count"] = report.edge_count;
  result["edges_symmetrised"] = report.edges_symmetrised;
  result["duplicates_merged"] = report.duplicates_merged;
  result["self_loops_dropped"] = report.self_loops_dropped;
  result["unlabelled_nodes"] = report.unlabelled_nodes;
  result["zero_features_dropped"] = report.zero_features_dropped;
  return result;
}

py::dict ScalesOf(const GraphHandle& graph) {
  const FeatureScales scales = MeasureFeatures(graph.View());
  py::dict result;
  result["columns"] = scales.columns;
  result["negative_columns"] = scales.negative_columns;
  result["smallest"] = scales.smallest;
  result["largest"] = scales.largest;
  return result;
}

std::vector<std::string> IdsOf(const GraphHandle& graph) {
  std::vector<std::string> ids;
  for (int64_t node = 0; node < graph.names().ids.size(); ++node) {
    ids.emplace_back(graph.names().ids[node]);
  }
  return ids;
}

// `most`: the server's limits.
void CheckBounds(const GraphHandle& graph, std::optional<int64_t> edges, std::optional<int64_t> entries,
                 int64_t most_edges, int64_t most_entries) {
  SizeBounds bounds = DefaultSizeBounds(graph.View().sizes, {most_edges, most_entries});
  bounds.edges = edges.value_or(bounds.edges);
  bounds.feature_entries = entries.value_or(bounds.feature_entries);
  Require(CheckSizeBounds(graph.View(), bounds));
}

void AddArrays(py::class_<GraphHandle>& graph) {
  const auto view = [&graph](const char* name, auto span) {
    graph.def_property_readonly(
        name, [span](const py::object& self) { return View(span(self.cast<const GraphHandle&>().View()), self); });
  };
  view("labels", [](const GraphView& of) { return of.labels; });
  view("edge_offsets", [](const GraphView& of) { return of.edges.offsets; });
  view("neighbours", [](const GraphView& of) { return of.edges.neighbours; });
  view("feature_offsets", [](const GraphView& of) { return of.features.offsets; });
  view("feature_columns", [](const GraphView& of) { return of.features.columns; });
  view("feature_values", [](const GraphView& of) { return of.features.values; });
}

}  // namespace

void AddGraphs(py::module_& module) {
  py::class_<GraphHandle> graph(module, "Graph");
  graph.def_static("read", Read, py::arg("path"), py::arg("classes"), py::arg("stated"))
      .def_static("from_arrays", FromArrays, py::kw_only(), py::arg("edge_offsets"), py::arg("neighbours"),
                  py::arg("feature_offsets"), py::arg("columns"), py::arg("values"), py::arg("labels"),
                  py::arg("feature_count"), py::arg("class_count"), py::arg("classes_counted"), py::arg("ids"),
                  py::arg("class_names"))
      .def("write",
           [](const GraphHandle& self, const std::string& path, bool names) {
             WithoutLock([&] {
               Require(WriteLocalGraph(path, self.View(), names ? self.names() : GraphNames()));
               return 0;
             });
           })
      .def("check_bounds", CheckBounds)
      .def("report", ReportOf)
      .def("scales", ScalesOf)
      .def_property_readonly("node_count", [](const GraphHandle& self) { return self.View().sizes.node_count; })
      .def_property_readonly("feature_count", [](const GraphHandle& self) { return self.View().sizes.feature_count; })
      .def_property_readonly("class_count", [](const GraphHandle& self) { return self.View().sizes.class_count; })
      .def_property_readonly("edge_count", [](const GraphHandle& self) { return self.View().edges.edge_count(); })
      .def_property_readonly("classes_counted", &GraphHandle::classes_counted)
      .def_property_readonly("ids", IdsOf)
      .def_property_readonly("class_names", [](const GraphHandle& self) { return self.names().classes; })
      .def_property_readonly("schema", [](const GraphHandle& self) { return self.names().schema; });
  AddArrays(graph);
}

}  // namespace dpar::python
