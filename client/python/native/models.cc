#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/python/native/graph_handle.h"
#include "core/error.h"
#include "core/graph/canonical_edges.h"
#include "core/infer/edge_inputs.h"
#include "core/infer/logits.h"
#include "core/infer/model.h"
#include "core/infer/onnx_file.h"
#include "core/infer/predict.h"
#include "core/infer/propagate.h"
#include "core/infer/safetensors_file.h"
#include "core/parallel.h"
#include "core/validate.h"

namespace dpar::python {
namespace {

namespace py = pybind11;

template <typename T>
using Input = py::array_t<T, py::array::c_style | py::array::forcecast>;

bool GoOn() { return true; }

py::array ToArray(NodeMatrix matrix) {
  const std::vector<py::ssize_t> shape = {matrix.rows(), matrix.cols()};
  auto [kept, owner] = Keep(std::move(matrix));
  return py::array_t<float>(shape, kept->data(), owner);
}

PredictOptions ReadOptions(const Model& model, const std::string& propagation, bool shift, double alpha,
                           int64_t iterations, const std::string& normalisation, bool self_loops) {
  PredictOptions options;
  if (propagation.empty()) {
    options.propagation = DefaultPropagation(model);
  } else if (propagation == "mean-field") {
    options.propagation = Propagation::kMeanField;
  } else if (propagation == "power") {
    options.propagation = Propagation::kPower;
  } else if (propagation == "none") {
    options.propagation = Propagation::kNone;
  } else {
    throw StatusError(
        InvalidField("propagation", absl::StrCat("propagation is mean-field, power or none; not '", propagation, "'")));
  }
  if (normalisation != "row" && normalisation != "symmetric") {
    throw StatusError(
        InvalidField("normalisation", absl::StrCat("normalisation is row or symmetric; not '", normalisation, "'")));
  }
  options.normalisation = normalisation == "row" ? Normalisation::kRow : Normalisation::kSymmetric;
  options.shift = shift;
  options.alpha = alpha;
  options.iterations = iterations;
  options.self_loops = self_loops;
  Require(ValidatePropagation(options));
  return options;
}

py::object ShiftOf(const std::optional<LabelShift>& shift) {
  if (!shift.has_value()) {
    return py::none();
  }
  py::dict result;
  result["found"] = shift->found();
  result["distance"] = shift->distance;
  result["threshold"] = shift->threshold;
  return result;
}

// Labels, the probability of each, and what was found of label shift.
py::tuple PredictNodes(const Model& model, const GraphHandle& graph, const PredictOptions& options) {
  std::vector<int32_t> labels;
  std::vector<float> probabilities;
  const GraphView view = graph.View();
  labels.reserve(view.labels.size());
  probabilities.reserve(view.labels.size());
  const auto shift = Take(WithoutLock([&] {
    return PredictBlocks(model, view, options, [&](int64_t /*first_node*/, std::span<const Prediction> block) {
      for (const Prediction& prediction : block) {
        labels.push_back(prediction.label);
        probabilities.push_back(prediction.probability);
      }
      return absl::OkStatus();
    });
  }));
  auto [kept_labels, label_owner] = Keep(std::move(labels));
  auto [kept_probabilities, probability_owner] = Keep(std::move(probabilities));
  return py::make_tuple(View(std::span<const int32_t>(*kept_labels), label_owner),
                        View(std::span<const float>(*kept_probabilities), probability_owner), ShiftOf(shift));
}

void CheckWidth(const Model& model, int64_t features) {
  if (features != model.feature_count) {
    throw StatusError(InvalidField(
        "graph",
        absl::StrCat("the graph has ", features, " features, but the model was trained on ", model.feature_count)));
  }
}

NodeMatrix LogitsOf(const Model& model, const GraphHandle& graph) {
  const GraphView view = graph.View();
  CheckWidth(model, view.sizes.feature_count);
  return Take(WithoutLock([&] { return GraphLogits(model, view, HardwareThreads(), GoOn); }));
}

py::array ClassProbabilities(const Model& model, const GraphHandle& graph, const PredictOptions& options) {
  NodeMatrix logits = LogitsOf(model, graph);
  const GraphView view = graph.View();
  return ToArray(WithoutLock([&] {
    return Probabilities(Propagate(model, view.edges, std::move(logits), options, HardwareThreads()),
                         HardwareThreads());
  }));
}

// Of feature rows alone; reads the caller's arrays in place.
py::array RowLogits(const Model& model, const Input<int64_t>& offsets, const Input<int32_t>& columns,
                    const Input<float>& values, int64_t feature_count) {
  if (model.reads != ModelInputs::kFeatures) {
    throw StatusError(InvalidField("model", "this model reads edges: give a graph and not feature rows alone"));
  }
  CheckWidth(model, feature_count);
  const SparseRowsView rows = {{offsets.data(), static_cast<size_t>(offsets.size())},
                               {columns.data(), static_cast<size_t>(columns.size())},
                               {values.data(), static_cast<size_t>(values.size())}};
  const auto refuse = [](const char* fault) { throw StatusError(InvalidField("x", fault)); };
  if (rows.offsets.empty() || rows.offsets.front() != 0 || rows.columns.size() != rows.values.size() ||
      rows.offsets.back() != static_cast<int64_t>(rows.columns.size()) ||
      !std::is_sorted(rows.offsets.begin(), rows.offsets.end())) {
    refuse("the offsets of rows must rise from 0 to the number of entries");
  }
  for (int64_t row = 0; row < rows.row_count(); ++row) {
    int32_t previous = -1;
    for (const int32_t column : rows.row_columns(row)) {
      if (column <= previous || column >= feature_count) {
        refuse("the columns of a row must rise, each below the number of features");
      }
      previous = column;
    }
  }
  return ToArray(Take(WithoutLock([&] { return Logits(model, rows, HardwareThreads(), GoOn); })));
}

// `logits` from anywhere, of the model's classes; edges as two rows of slots, in either direction or both.
py::array PropagateLogits(const Model& model, const Input<float>& logits, const Input<int64_t>& sources,
                          const Input<int64_t>& targets, const PredictOptions& options) {
  if (logits.ndim() != 2 || logits.shape(1) != model.class_count || sources.size() != targets.size()) {
    throw StatusError(InvalidField("logits", absl::StrCat("logits must be a matrix with ", model.class_count,
                                                          " columns, and edges two rows of the same length")));
  }
  NodeMatrix rows = Eigen::Map<const NodeMatrix>(logits.data(), logits.shape(0), logits.shape(1));
  if (!rows.allFinite()) {
    throw StatusError(InvalidField("logits", "logits must be finite"));
  }
  rows = rows.cwiseMax(-static_cast<float>(kLogitBound)).cwiseMin(static_cast<float>(kLogitBound));
  const int64_t nodes = rows.rows();
  std::vector<int64_t> offsets(static_cast<size_t>(nodes) + 1, 0);
  for (py::ssize_t i = 0; i < sources.size(); ++i) {
    for (const int64_t node : {sources.data()[i], targets.data()[i]}) {
      if (node < 0 || node >= nodes) {
        throw StatusError(InvalidField("edge_index", absl::StrCat("edges join nodes from 0 to ", nodes - 1)));
      }
    }
    ++offsets[static_cast<size_t>(sources.data()[i]) + 1];
  }
  for (size_t node = 0; node < static_cast<size_t>(nodes); ++node) {
    offsets[node + 1] += offsets[node];
  }
  std::vector<int32_t> neighbours(static_cast<size_t>(sources.size()));
  std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
  for (py::ssize_t i = 0; i < sources.size(); ++i) {
    neighbours[static_cast<size_t>(next[static_cast<size_t>(sources.data()[i])]++)] =
        static_cast<int32_t>(targets.data()[i]);
  }
  return ToArray(WithoutLock([&] {
    CanonicaliseEdges(offsets, neighbours);
    return Probabilities(Propagate(model, {offsets, neighbours}, std::move(rows), options, HardwareThreads()),
                         HardwareThreads());
  }));
}

// Binds a function whose last arguments are those of ReadOptions.
template <typename... Inputs, typename Function>
auto WithOptions(Function function) {
  return [function](const Model& model, const Inputs&... inputs, const std::string& propagation, bool shift,
                    double alpha, int64_t iterations, const std::string& normalisation, bool self_loops) {
    return function(model, inputs...,
                    ReadOptions(model, propagation, shift, alpha, iterations, normalisation, self_loops));
  };
}

void AddFacts(py::class_<Model>& model) {
  model.def_readonly("feature_count", &Model::feature_count)
      .def_readonly("class_count", &Model::class_count)
      .def_readonly("hidden_size", &Model::hidden_size)
      .def_readonly("logit_noise", &Model::logit_noise)
      .def_readonly("share_noise", &Model::share_noise)
      .def_readonly("plan", &Model::plan)
      .def_readonly("schema", &Model::schema)
      .def_property_readonly("header", ModelHeader)
      .def_property_readonly("reads_edges", [](const Model& self) { return self.reads != ModelInputs::kFeatures; })
      .def_property_readonly("transform", [](const Model& self) { return v1::Transform_Name(self.transform); })
      .def_property_readonly("class_shares", [](const py::object& self) {
        return View(std::span<const float>(self.cast<const Model&>().class_shares), self);
      });
}

}  // namespace

void AddModels(py::module_& module) {
  py::class_<Model> model(module, "Model");
  model.def_static("read", [](const std::string& path) { return std::make_unique<Model>(Take(ReadModelFile(path))); })
      .def("write_onnx", [](const Model& self, const std::string& path) { Require(WriteOnnxFile(path, self)); })
      .def("write_safetensors",
           [](const Model& self, const std::string& path) { Require(WriteSafetensorsFile(path, self)); })
      .def("predict", WithOptions<GraphHandle>(PredictNodes))
      .def("probabilities", WithOptions<GraphHandle>(ClassProbabilities))
      .def("logits", [](const Model& self, const GraphHandle& graph) { return ToArray(LogitsOf(self, graph)); })
      .def("row_logits", RowLogits)
      .def("propagate", WithOptions<Input<float>, Input<int64_t>, Input<int64_t>>(PropagateLogits));
  AddFacts(model);
}

}  // namespace dpar::python
