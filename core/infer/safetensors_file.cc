#include "core/infer/safetensors_file.h"

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "core/atomic_file.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// The header is padded with spaces, so that tensors are aligned.
constexpr size_t kAlignment = 8;

struct Tensor {
  const char* name;
  std::vector<int64_t> shape;
  std::span<const float> entries;
};

absl::string_view BytesOf(std::span<const float> entries) {
  return {reinterpret_cast<const char*>(entries.data()), entries.size_bytes()};
}

// In the order of their names; those that the model lacks are left out.
std::vector<Tensor> TensorsOf(const Model& model) {
  std::vector<Tensor> tensors = {
      {"center", {model.feature_count}, model.center},
      {"class_shares", {model.class_count}, model.class_shares},
      {"encoder_weights", {model.feature_count + 1, model.encoder_size}, model.encoder_weights},
      {"output_weights", {model.hidden_size, model.class_count}, model.output_weights},
      {"weights", {model.input_count() + 1, model.width()}, model.weights}};
  std::erase_if(tensors, [](const Tensor& tensor) { return tensor.entries.empty(); });
  return tensors;
}

std::string HeaderOf(const Model& model, const std::vector<Tensor>& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"dpar", ModelHeader(model)}, {"format", "pt"}};
  if (!model.schema.empty()) {
    header["__metadata__"]["schema"] = model.schema;
  }
  size_t begin = 0;
  for (const Tensor& tensor : tensors) {
    const size_t end = begin + tensor.entries.size_bytes();
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

}  // namespace

absl::Status WriteSafetensorsFile(const std::string& path, const Model& model) {
  DPAR_RETURN_IF_ERROR(ValidateModel(model));
  const std::vector<Tensor> tensors = TensorsOf(model);
  const std::string header = HeaderOf(model, tensors);
  std::array<char, 8> length{};
  for (size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  }
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  DPAR_RETURN_IF_ERROR(file.Append({length.data(), length.size()}));
  DPAR_RETURN_IF_ERROR(file.Append(header));
  for (const Tensor& tensor : tensors) {
    DPAR_RETURN_IF_ERROR(file.Append(BytesOf(tensor.entries)));
  }
  return file.Commit();
}

}  // namespace dpar
