#include "core/train/torch_script.h"

#include <torch/script.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/infer/input_rows.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// Operations since version 1.8. In double, as core/infer: a row close to the center leaves few digits of a float.
constexpr absl::string_view kStart = R"(
def forward(self, x):
)";
constexpr absl::string_view kStartWithEdges = R"(
def forward(self, x, edges):
)";
constexpr absl::string_view kRead = R"(
  phi = torch.nan_to_num(x.float(), 0.0, 0.0, 0.0)
)";
constexpr absl::string_view kSquareRoot = R"(
  phi = torch.sign(phi) * torch.sqrt(torch.abs(phi))
)";
constexpr absl::string_view kDouble = R"(
  z = phi.double()
)";
// No square of a float but 0 is below the bound, which only prevents 0 / 0.
constexpr absl::string_view kUnit = R"(
  square = torch.sum(z * z, 1, keepdim=True)
  z = z / torch.sqrt(torch.clamp(square, min=1e-300))
)";
constexpr absl::string_view kScale = R"(
  z = z * self.row_scale
)";
// InputTransform::Scale adds the same to |u - m|^2.
constexpr absl::string_view kCentered = R"(
  center = self.center.double()
  entries = torch.sum((x != 0).double(), 1, keepdim=True)
  parts = (square > 0).double() + torch.sum(center * center)
  z = z - center
  distance_square = torch.sum(z * z, 1, keepdim=True) + 4.0 * 2.0 ** -52 * (entries + center.size(0) + 16.0) * parts
  z = z / torch.sqrt(torch.clamp(distance_square, min=1e-300))
)";
// For edges[0, i] the sum of what edges[1, i] has (core/infer/edge_inputs.h).
constexpr absl::string_view kMean = R"(
  first = z[:, :1]
  degree = torch.zeros_like(first).index_add(0, edges[0], torch.ones_like(first[edges[1]]))
  total = torch.zeros_like(z).index_add(0, edges[0], z[edges[1]])
  z = torch.cat([z, total / torch.clamp(degree, min=1.0)], 1)
)";
constexpr absl::string_view kHops = R"(
  encoder = self.encoder_weights.double()
  rows = torch.relu(torch.matmul(z, encoder[:-1]) + self.bias_input * encoder[-1])
  rows = rows / torch.sqrt(torch.clamp(torch.sum(rows * rows, 1, keepdim=True), min=1e-300))
  blocks = [rows]
  for i in range(self.hops):
    rows = torch.zeros_like(rows).index_add(0, edges[0], rows[edges[1]])
    rows = rows / torch.sqrt(torch.clamp(torch.sum(rows * rows, 1, keepdim=True), min=1e-300))
    blocks.append(rows)
  z = torch.cat(blocks, 1)
)";
constexpr absl::string_view kFirstLayer = R"(
  weights = self.weights.double()
  logits = torch.matmul(z, weights[:-1]) + self.bias_input * weights[-1]
)";
constexpr absl::string_view kHiddenLayer = R"(
  logits = torch.matmul(torch.relu(logits), self.output_weights.double())
)";
constexpr absl::string_view kEnd = R"(
  return logits.float()
)";

std::string Forward(const Model& model) {
  const bool is_unit = model.transform != v1::RAW;
  const bool reads_edges = model.reads != ModelInputs::kFeatures;
  const absl::string_view edges = model.reads == ModelInputs::kHops ? kHops : kMean;
  return absl::StrCat(reads_edges ? kStartWithEdges : kStart, kRead,
                      model.transform == v1::SQRT_UNIT ? kSquareRoot : "", kDouble, is_unit ? kUnit : "",
                      model.center.empty() ? "" : kCentered, is_unit ? kScale : "", reads_edges ? edges : "",
                      kFirstLayer, model.hidden_size > 0 ? kHiddenLayer : "", kEnd);
}

at::Tensor ToTensor(const std::vector<float>& entries, at::IntArrayRef shape) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  std::copy(entries.begin(), entries.end(), tensor.data_ptr<float>());
  return tensor;
}

torch::jit::Module MakeModule(const Model& model) {
  torch::jit::Module module("Model");
  module.register_parameter("weights", ToTensor(model.weights, {model.input_count() + 1, model.width()}),
                            /*is_buffer=*/false);
  if (model.hidden_size > 0) {
    module.register_parameter("output_weights", ToTensor(model.output_weights, {model.hidden_size, model.class_count}),
                              /*is_buffer=*/false);
  }
  if (model.reads == ModelInputs::kHops) {
    module.register_parameter("encoder_weights",
                              ToTensor(model.encoder_weights, {model.feature_count + 1, model.encoder_size}),
                              /*is_buffer=*/false);
    module.register_attribute("hops", c10::IntType::get(), model.hops);
  }
  if (!model.center.empty()) {
    module.register_buffer("center", ToTensor(model.center, {model.feature_count}));
  }
  module.register_attribute("row_scale", c10::FloatType::get(), kRowScale);
  module.register_attribute("bias_input", c10::FloatType::get(), kBiasInput);
  module.define(Forward(model));
  return module;
}

absl::Status Unavailable(absl::string_view message) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, message);
}

// Given a path, LibTorch would write the path's name into the archive.
absl::Status Save(const std::string& path, const Model& model) {
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  try {
    std::ofstream stream(file.temporary_path(), std::ios::binary);
    MakeModule(model).save(stream, {{"metadata.json", ModelHeader(model)}});
    stream.close();
    if (!stream.good()) {
      return WriteError(path, "the file could not be written to its end");
    }
  } catch (const std::exception&) {
    return WriteError(path, "LibTorch could not save the model");
  }
  return file.Commit();
}

}  // namespace

absl::Status WriteTorchScript(const std::string& path, const Model& model) {
  DPAR_RETURN_IF_ERROR(ValidateModel(model));
  const absl::Status saved = Save(path, model);
  return saved.ok() ? saved : Unavailable(saved.message());
}

}  // namespace dpar
