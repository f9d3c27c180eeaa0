#include "core/infer/onnx_file.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/infer/input_rows.h"
#include "core/infer/onnx_graph.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int64_t kOpset = 13;
constexpr int64_t kOpsetWithEdges = 16;
constexpr size_t kMostBytes = (size_t{1} << 31) - (size_t{1} << 20);
// No square of a float but 0 is below it; it only prevents 0 / 0.
constexpr double kTiny = 1e-300;

// Turns the rows x into logits, operation by operation, as core/train/torch_script.cc does in TorchScript.
class Network {
 public:
  explicit Network(const Model& model) : model_(model) {}

  absl::Cord Build() {
    const std::string features = absl::StrCat(model_.feature_count);
    graph_.AddInput("x", OnnxType::kFloat, {"n", features});
    const bool reads_edges = model_.reads != ModelInputs::kFeatures;
    if (reads_edges) {
      graph_.AddInput("edges", OnnxType::kInt64, {"2", "m"});
    }
    graph_.AddOutput("logits", OnnxType::kFloat, {"n", absl::StrCat(model_.class_count)});
    std::string rows = Inputs();
    if (reads_edges) {
      const Ends ends = EndsOfEdges();
      rows = model_.reads == ModelInputs::kHops ? Hops(rows, ends) : WithMeans(rows, ends);
    }
    graph_.ApplyAs("logits", "Cast", {Layers(rows)}, {OnnxAttribute::Int("to", int64_t{1})});
    std::vector<std::pair<std::string, std::string>> metadata = {{"dpar", ModelHeader(model_)}};
    if (!model_.schema.empty()) {
      metadata.emplace_back("schema", model_.schema);
    }
    return graph_.Model(reads_edges ? kOpsetWithEdges : kOpset, metadata);
  }

 private:
  struct Ends {
    std::string places;  // m x 1: the nodes that get something
    std::string others;  // m: those that they get it from
  };

  std::string Apply(absl::string_view operation, const std::vector<std::string>& inputs) {
    return graph_.Apply(operation, inputs);
  }
  std::string SumOfRow(const std::string& rows) {
    return graph_.Apply("ReduceSum", {rows, graph_.Integers("axes", {1})}, {OnnxAttribute::Int("keepdims", 1)});
  }
  std::string Length(const std::string& square) {
    return Apply("Sqrt", {Apply("Max", {square, graph_.Number(kTiny)})});
  }
  std::string Unit(const std::string& rows) {
    return Apply("Div", {rows, Length(SumOfRow(Apply("Mul", {rows, rows})))});
  }
  std::string Weights(absl::string_view name, int64_t rows, int64_t columns, std::span<const float> entries) {
    return graph_.Cast(graph_.Floats(name, {rows, columns}, entries), OnnxType::kDouble);
  }
  // rows W + 0.1 b, where b is the last row of `entries`.
  std::string Affine(absl::string_view name, const std::string& rows, int64_t inputs, int64_t width,
                     std::span<const float> entries) {
    const auto split = static_cast<size_t>(inputs * width);
    std::vector<double> bias;
    for (const float entry : entries.subspan(split)) {
      bias.push_back(kBiasInput * static_cast<double>(entry));
    }
    const std::string product = Apply("MatMul", {rows, Weights(name, inputs, width, entries.first(split))});
    return Apply("Add", {product, graph_.Doubles(absl::StrCat(name, "_bias"), {width}, bias)});
  }

  // z without its bias.
  std::string Inputs() {
    const std::string bad = Apply("Or", {Apply("IsNaN", {"x"}), Apply("IsInf", {"x"})});
    zero_ = graph_.Floats("zero", {}, kZero);
    std::string phi = Apply("Where", {bad, zero_, "x"});
    if (model_.transform == v1::SQRT_UNIT) {
      phi = Apply("Mul", {Apply("Sign", {phi}), Apply("Sqrt", {Apply("Abs", {phi})})});
    }
    std::string z = graph_.Cast(phi, OnnxType::kDouble);
    if (model_.transform == v1::RAW) {
      return z;
    }
    const std::string square = SumOfRow(Apply("Mul", {z, z}));
    z = Apply("Div", {z, Length(square)});
    if (!model_.center.empty()) {
      z = Centered(z, square);
    }
    return Apply("Mul", {z, graph_.Number(kRowScale)});
  }

  // InputTransform::Scale adds the same to |u - m|^2.
  std::string Centered(const std::string& unit, const std::string& square) {
    const std::vector<double> center(model_.center.begin(), model_.center.end());
    const double center_square = std::inner_product(center.begin(), center.end(), center.begin(), 0.0);
    const std::string held = graph_.Cast(Apply("Not", {Apply("Equal", {"x", zero_})}), OnnxType::kDouble);
    const std::string entries =
        Apply("Add", {SumOfRow(held), graph_.Number(static_cast<double>(model_.feature_count) + 16)});
    const std::string has_any = graph_.Cast(Apply("Greater", {square, graph_.Number(0)}), OnnxType::kDouble);
    const std::string parts = Apply("Add", {has_any, graph_.Number(center_square)});
    const std::string error = Apply("Mul", {Apply("Mul", {entries, parts}), graph_.Number(4 * 0x1p-52)});
    const std::string z = Apply("Sub", {unit, graph_.Doubles("center", {model_.feature_count}, center)});
    return Apply("Div", {z, Length(Apply("Add", {SumOfRow(Apply("Mul", {z, z})), error}))});
  }

  Ends EndsOfEdges() {
    const auto row = [this](int64_t which) {
      const std::string one =
          graph_.Apply("Gather", {"edges", graph_.Integers("row", {which})}, {OnnxAttribute::Int("axis", 0)});
      return Apply("Squeeze", {one, graph_.Integers("axes", {0})});
    };
    return {Apply("Unsqueeze", {row(0), graph_.Integers("axes", {1})}), row(1)};
  }
  // For each node the sum over its neighbours.
  std::string SumOfNeighbours(const std::string& rows, const Ends& ends) {
    const std::string given = graph_.Apply("Gather", {rows, ends.others}, {OnnxAttribute::Int("axis", 0)});
    const std::string nothing = Apply("Mul", {rows, graph_.Number(0)});
    return graph_.Apply("ScatterND", {nothing, ends.places, given}, {OnnxAttribute::Text("reduction", "add")});
  }
  std::string Join(const std::vector<std::string>& blocks) {
    return graph_.Apply("Concat", blocks, {OnnxAttribute::Int("axis", 1)});
  }
  std::string WithMeans(const std::string& rows, const Ends& ends) {
    // 1 for every node: e^0 of a column that is 0.
    const std::string ones = Apply("Exp", {Apply("Mul", {SumOfRow(rows), graph_.Number(0)})});
    const std::string degrees = Apply("Max", {SumOfNeighbours(ones, ends), graph_.Number(1)});
    return Join({rows, Apply("Div", {SumOfNeighbours(rows, ends), degrees})});
  }
  std::string Hops(const std::string& rows, const Ends& ends) {
    std::string block = Unit(
        Apply("Relu", {Affine("encoder", rows, model_.feature_count, model_.encoder_size, model_.encoder_weights)}));
    std::vector<std::string> blocks = {block};
    for (int64_t hop = 0; hop < model_.hops; ++hop) {
      block = Unit(SumOfNeighbours(block, ends));
      blocks.push_back(block);
    }
    return Join(blocks);
  }
  std::string Layers(const std::string& rows) {
    const std::string first = Affine("weights", rows, model_.input_count(), model_.width(), model_.weights);
    if (model_.hidden_size == 0) {
      return first;
    }
    return Apply("MatMul", {Apply("Relu", {first}),
                            Weights("output_weights", model_.hidden_size, model_.class_count, model_.output_weights)});
  }

  static constexpr float kZero[] = {0};

  const Model& model_;
  OnnxGraph graph_;
  std::string zero_;
};

}  // namespace

bool FitsOnnx(const Model& model) {
  const size_t floats = model.weights.size() + model.output_weights.size() + model.encoder_weights.size() +
                        2 * (model.center.size() + static_cast<size_t>(model.width() + model.encoder_size));
  return floats * sizeof(float) + ModelHeader(model).size() + model.schema.size() < kMostBytes;
}

absl::Status WriteOnnxFile(const std::string& path, const Model& model) {
  DPAR_RETURN_IF_ERROR(ValidateModel(model));
  if (!FitsOnnx(model)) {
    return InvalidField("model", "a model of 2 GiB or more does not fit into a file of ONNX");
  }
  Network network(model);
  const absl::Cord bytes = network.Build();
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  for (const absl::string_view chunk : bytes.Chunks()) {
    DPAR_RETURN_IF_ERROR(file.Append(chunk));
  }
  return file.Commit();
}

}  // namespace dpar
