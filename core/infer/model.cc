#include "core/infer/model.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/npz.h"
#include "core/infer/transform_row.h"
#include "core/status_macros.h"
#include "nlohmann/json.hpp"

namespace dpar {
namespace {

constexpr char kWeights[] = "weights";
constexpr char kHeader[] = "header";
constexpr size_t kMaxMetadataBytes = size_t{1} << 20;
constexpr int64_t kMaxModelArrays = 8;

absl::Status ModelError(absl::string_view why) {
  return InvalidField("model", absl::StrCat("not a model file: ", why));
}

absl::Status CheckMetadata(const std::string& metadata) {
  if (metadata.size() > kMaxMetadataBytes) {
    return ModelError("header is longer than 1 MiB");
  }
  if (!nlohmann::json::parse(metadata, nullptr, /*allow_exceptions=*/false).is_object()) {
    return ModelError("header is not a JSON object");
  }
  return absl::OkStatus();
}

absl::Status CheckWeights(const LinearModel& model) {
  const bool sizes_agree = model.feature_count >= 1 && model.class_count >= 1 &&
                           static_cast<int64_t>(model.weights.size()) == (model.feature_count + 1) * model.class_count;
  if (!sizes_agree) {
    return ModelError("weights must have a row for each feature and one for the bias, and a column for each class");
  }
  if (!std::all_of(model.weights.begin(), model.weights.end(), [](float w) { return std::isfinite(w); })) {
    return ModelError("weights are not all finite");
  }
  return absl::OkStatus();
}

// A fault of the container is a fault of the argument `model`; that there is no file is not.
absl::Status AsModelError(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? ModelError(status.message()) : status;
}

absl::StatusOr<LinearModel> ReadArrays(NpzFile& file) {
  LinearModel model;
  DPAR_ASSIGN_OR_RETURN(NpyArray header, file.ReadArray(kHeader));
  auto* metadata = std::get_if<std::string>(&header.data);
  if (metadata == nullptr) {
    return absl::InvalidArgumentError("header is not text");
  }
  model.metadata = std::move(*metadata);
  DPAR_ASSIGN_OR_RETURN(NpyArray weights, file.ReadArray(kWeights));
  auto* values = std::get_if<std::vector<float>>(&weights.data);
  if (values == nullptr || weights.shape.size() != 2 || weights.shape[0] < 2) {
    return absl::InvalidArgumentError("weights is not a float32 matrix with at least two rows");
  }
  model.feature_count = weights.shape[0] - 1;
  model.class_count = weights.shape[1];
  model.weights = std::move(*values);
  return model;
}

}  // namespace

TransformedRows TransformRows(const SparseRowsView& features) {
  TransformedRows result;
  result.offsets.reserve(features.offsets.size());
  result.offsets.push_back(0);
  result.columns.reserve(features.columns.size());
  result.values.reserve(features.values.size());
  for (int64_t row = 0; row < features.row_count(); ++row) {
    TransformRow(features.row_columns(row), features.row_values(row), [&result](int32_t column, double value) {
      result.columns.push_back(column);
      result.values.push_back(value);
    });
    result.offsets.push_back(static_cast<int64_t>(result.columns.size()));
  }
  return result;
}

absl::Status WriteModelFile(const std::string& path, const LinearModel& model) {
  DPAR_RETURN_IF_ERROR(CheckWeights(model));
  DPAR_RETURN_IF_ERROR(CheckMetadata(model.metadata));
  return WriteNpzFile(
      path, {{kHeader, NpyView{{}, absl::string_view(model.metadata)}},
             {kWeights, NpyView{{model.feature_count + 1, model.class_count}, std::span<const float>(model.weights)}}});
}

absl::StatusOr<LinearModel> ReadModelFile(const std::string& path) {
  absl::StatusOr<NpzFile> file = NpzFile::Open(path, NpzLimits{.max_arrays = kMaxModelArrays});
  if (!file.ok()) {
    return AsModelError(file.status());
  }
  absl::StatusOr<LinearModel> model = ReadArrays(*file);
  if (!model.ok()) {
    return AsModelError(model.status());
  }
  DPAR_RETURN_IF_ERROR(CheckWeights(*model));
  DPAR_RETURN_IF_ERROR(CheckMetadata(model->metadata));
  return model;
}

}  // namespace dpar
