#include "core/infer/model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/npz.h"
#include "core/status_macros.h"
#include "core/strict_json.h"

namespace dpar {
namespace {

constexpr char kHeader[] = "header";
constexpr char kWeights[] = "weights";
constexpr char kOutputWeights[] = "output_weights";
constexpr char kCenter[] = "center";
constexpr char kClassShares[] = "class_shares";
constexpr char kEncoderWeights[] = "encoder_weights";
constexpr char kSchema[] = "schema";

constexpr int64_t kMaxModelArrays = 8;

constexpr int64_t kFormat = 1;
constexpr const char* kReads[] = {"features", "neighbour-mean", "hops"};  // by ModelInputs
constexpr int64_t kMaxHops = 100;
constexpr double kShareRounding = 1e-6;  // of a share, as a float

absl::Status ModelError(absl::string_view why) { return InvalidField("model", absl::StrCat("not a model: ", why)); }

// A malformed file is a fault of the argument `model`; a missing file is not.
absl::Status AsModelError(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? ModelError(status.message()) : status;
}

// -1 when the entries do not fill whole rows.
int64_t CountRows(const std::vector<float>& entries, int64_t columns) {
  const auto size = static_cast<int64_t>(entries.size());
  return columns >= 1 && size % columns == 0 ? size / columns : -1;
}

absl::Status ValidateShapes(const Model& model) {
  if (model.feature_count < 1 || model.class_count < 1 || model.hidden_size < 0) {
    return ModelError("it must have at least one feature and one class");
  }
  const bool has_hops = model.reads == ModelInputs::kHops;
  if (has_hops != (model.hops > 0) || model.hops < 0 || has_hops != (model.encoder_size > 0) || model.hops > kMaxHops ||
      (has_hops ? CountRows(model.encoder_weights, model.encoder_size) - 1 != model.feature_count
                : !model.encoder_weights.empty())) {
    return ModelError(
        "a model of hops, and no other, has 1 to 100 of them and encoder_weights with a row for each feature and one "
        "for the bias");
  }
  if (CountRows(model.weights, model.width()) - 1 != model.input_count()) {
    return ModelError(
        "weights must have a row for each input and one for the bias, and a column for each hidden unit, or for each "
        "class where there is no hidden layer");
  }
  if (CountRows(model.output_weights, model.class_count) != model.hidden_size) {
    return ModelError("output_weights must have a row for each hidden unit and a column for each class");
  }
  if (!model.center.empty() && static_cast<int64_t>(model.center.size()) != model.feature_count) {
    return ModelError("center must have an entry for each feature");
  }
  return absl::OkStatus();
}

absl::Status ValidateShares(const Model& model) {
  const std::vector<float>& shares = model.class_shares;
  if (shares.empty() && model.share_noise == 0) {
    return absl::OkStatus();
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  if (static_cast<int64_t>(shares.size()) != model.class_count || model.reads != ModelInputs::kFeatures ||
      !std::all_of(shares.begin(), shares.end(), [](float share) { return share > 0; }) ||
      !(std::abs(sum - 1) <= kShareRounding * static_cast<double>(shares.size()))) {
    return ModelError("class_shares, for a model that reads no edges, must be positive, one a class, and sum to 1");
  }
  if (!(std::isfinite(model.share_noise) && model.share_noise >= 0)) {
    return ModelError(absl::StrCat("share_noise must be finite and at least 0, got ", model.share_noise));
  }
  return absl::OkStatus();
}

absl::Status ValidateNumbers(const Model& model) {
  const std::map<absl::string_view, const std::vector<float>*> arrays = {{kWeights, &model.weights},
                                                                         {kOutputWeights, &model.output_weights},
                                                                         {kCenter, &model.center},
                                                                         {kClassShares, &model.class_shares},
                                                                         {kEncoderWeights, &model.encoder_weights}};
  for (const auto& [name, entries] : arrays) {
    if (!std::all_of(entries->begin(), entries->end(), [](float entry) { return std::isfinite(entry); })) {
      return ModelError(absl::StrCat(name, " must be finite"));
    }
  }
  if (!(std::isfinite(model.logit_noise) && model.logit_noise >= 0)) {
    return ModelError(absl::StrCat("logit_noise must be finite and at least 0, got ", model.logit_noise));
  }
  return ValidateShares(model);
}

absl::Status ValidateTransform(const Model& model) {
  if (model.transform != v1::RAW && model.transform != v1::UNIT && model.transform != v1::SQRT_UNIT) {
    return ModelError("transform must be RAW, UNIT or SQRT_UNIT");
  }
  if (model.reads != ModelInputs::kFeatures && !model.center.empty()) {
    return ModelError("a model that reads edges has no center");
  }
  if (model.transform == v1::RAW && !model.center.empty()) {
    return ModelError("a center needs rows of unit length, which RAW does not give");
  }
  return absl::OkStatus();
}

absl::Status ReadHeader(const std::string& text, Model& model) {
  DPAR_ASSIGN_OR_RETURN(const Json header, ParseStrictJson(kHeader, text));
  int64_t format = 0;
  std::string transform;
  std::string reads;
  JsonFields fields(kHeader, header);
  fields.Read("/format", format);
  fields.Read("/transform", transform);
  fields.Read("/logit_noise", model.logit_noise);
  fields.Read("/share_noise", model.share_noise);
  fields.Read("/reads", reads);
  fields.Read("/hops", model.hops);
  DPAR_RETURN_IF_ERROR(fields.status());
  const auto* const known = std::find(std::begin(kReads), std::end(kReads), reads);
  if (format != kFormat || !v1::Transform_Parse(transform, &model.transform) || known == std::end(kReads) ||
      header.size() != 7 || !header.contains("plan") || !header["plan"].is_object()) {
    return ModelError(
        "its header has the fields format (1; a later one needs a later version of dpar), transform (RAW, UNIT or "
        "SQRT_UNIT), logit_noise, share_noise, reads (features, neighbour-mean or hops), hops and plan (an object)");
  }
  model.reads = static_cast<ModelInputs>(known - std::begin(kReads));
  model.plan = header["plan"].dump();
  return absl::OkStatus();
}

struct FloatArray {
  std::vector<int64_t> shape;
  std::vector<float> entries;
};

absl::StatusOr<NpyArray> ReadArray(NpzFile& file, absl::string_view name) {
  absl::StatusOr<NpyArray> array = file.ReadArray(name);
  return array.ok() ? std::move(array) : AsModelError(array.status());
}

absl::StatusOr<FloatArray> ReadFloats(NpzFile& file, absl::string_view name, size_t rank) {
  DPAR_ASSIGN_OR_RETURN(NpyArray array, ReadArray(file, name));
  auto* entries = std::get_if<std::vector<float>>(&array.data);
  if (entries == nullptr || array.shape.size() != rank) {
    return ModelError(absl::StrCat(name, " must be a float32 array of rank ", rank));
  }
  return FloatArray{std::move(array.shape), std::move(*entries)};
}

absl::Status ReadWeights(NpzFile& file, Model& model) {
  DPAR_ASSIGN_OR_RETURN(FloatArray weights, ReadFloats(file, kWeights, 2));
  const int64_t inputs = weights.shape[0] - 1;
  model.feature_count = model.reads == ModelInputs::kNeighbourMean ? inputs / 2 : inputs;
  model.class_count = weights.shape[1];
  model.weights = std::move(weights.entries);
  if (!file.Contains(kOutputWeights)) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(FloatArray output, ReadFloats(file, kOutputWeights, 2));
  if (output.shape[0] < 1 || output.shape[0] != weights.shape[1]) {
    return ModelError("output_weights must have a row for each column of weights");
  }
  model.hidden_size = output.shape[0];
  model.class_count = output.shape[1];
  model.output_weights = std::move(output.entries);
  return absl::OkStatus();
}

// An array that may be missing, but not empty.
absl::Status ReadOptional(NpzFile& file, absl::string_view name, std::vector<float>& entries) {
  if (!file.Contains(name)) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(FloatArray array, ReadFloats(file, name, 1));
  if (array.entries.empty()) {
    return ModelError(absl::StrCat(name, " must have entries where it is given"));
  }
  entries = std::move(array.entries);
  return absl::OkStatus();
}

absl::Status ReadEncoder(NpzFile& file, Model& model) {
  if (model.reads != ModelInputs::kHops) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(FloatArray encoder, ReadFloats(file, kEncoderWeights, 2));
  model.feature_count = encoder.shape[0] - 1;
  model.encoder_size = encoder.shape[1];
  model.encoder_weights = std::move(encoder.entries);
  return absl::OkStatus();
}

absl::StatusOr<Model> ReadModel(NpzFile& file) {
  Model model;
  DPAR_ASSIGN_OR_RETURN(const NpyArray header, ReadArray(file, kHeader));
  const auto* text = std::get_if<std::string>(&header.data);
  if (text == nullptr) {
    return ModelError("header is not text");
  }
  if (const absl::Status read = ReadHeader(*text, model); !read.ok()) {
    return AsModelError(read);
  }
  DPAR_RETURN_IF_ERROR(ReadWeights(file, model));
  DPAR_RETURN_IF_ERROR(ReadOptional(file, kCenter, model.center));
  DPAR_RETURN_IF_ERROR(ReadOptional(file, kClassShares, model.class_shares));
  DPAR_RETURN_IF_ERROR(ReadEncoder(file, model));
  if (file.Contains(kSchema)) {
    DPAR_ASSIGN_OR_RETURN(NpyArray schema, ReadArray(file, kSchema));
    auto* schema_text = std::get_if<std::string>(&schema.data);
    if (schema_text == nullptr || !schema.shape.empty() || schema_text->empty()) {
      return ModelError("schema is not a text");
    }
    model.schema = std::move(*schema_text);
  }
  return model;
}

}  // namespace

absl::Status ValidateModel(const Model& model) {
  DPAR_RETURN_IF_ERROR(ValidateShapes(model));
  DPAR_RETURN_IF_ERROR(ValidateNumbers(model));
  DPAR_RETURN_IF_ERROR(ValidateTransform(model));
  if (!model.schema.empty()) {
    if (const absl::Status parsed = ParseStrictJson(kSchema, model.schema).status(); !parsed.ok()) {
      return AsModelError(parsed);
    }
  }
  return AsModelError(ParseStrictJson("plan", model.plan).status());
}

std::string ModelHeader(const Model& model) {
  // Parsing the plan's text makes a model that was read give the same header again.
  return Json{{"format", kFormat},
              {"transform", v1::Transform_Name(model.transform)},
              {"logit_noise", model.logit_noise},
              {"share_noise", model.share_noise},
              {"reads", kReads[static_cast<size_t>(model.reads)]},
              {"hops", model.hops},
              {"plan", Json::parse(model.plan, /*cb=*/nullptr, /*allow_exceptions=*/false)}}
      .dump();
}

absl::Status WriteModelFile(const std::string& path, const Model& model) {
  DPAR_RETURN_IF_ERROR(ValidateModel(model));
  const std::string header = ModelHeader(model);
  if (const absl::Status parsed = ParseStrictJson(kHeader, header).status(); !parsed.ok()) {
    return AsModelError(parsed);
  }
  std::map<std::string, NpyView> arrays;
  arrays[kHeader] = NpyView{{}, absl::string_view(header)};
  arrays[kWeights] = NpyView{{model.input_count() + 1, model.width()}, std::span<const float>(model.weights)};
  if (model.hidden_size > 0) {
    arrays[kOutputWeights] =
        NpyView{{model.hidden_size, model.class_count}, std::span<const float>(model.output_weights)};
  }
  if (!model.center.empty()) {
    arrays[kCenter] = NpyView{{model.feature_count}, std::span<const float>(model.center)};
  }
  if (!model.class_shares.empty()) {
    arrays[kClassShares] = NpyView{{model.class_count}, std::span<const float>(model.class_shares)};
  }
  if (model.encoder_size > 0) {
    arrays[kEncoderWeights] =
        NpyView{{model.feature_count + 1, model.encoder_size}, std::span<const float>(model.encoder_weights)};
  }
  if (!model.schema.empty()) {
    arrays[kSchema] = NpyView{{}, absl::string_view(model.schema)};
  }
  return WriteNpzFile(path, arrays);
}

absl::StatusOr<Model> ReadModelFile(const std::string& path) {
  absl::StatusOr<NpzFile> file = NpzFile::Open(path, NpzLimits{.max_arrays = kMaxModelArrays});
  if (!file.ok()) {
    return AsModelError(file.status());
  }
  DPAR_ASSIGN_OR_RETURN(Model model, ReadModel(*file));
  DPAR_RETURN_IF_ERROR(ValidateModel(model));
  return model;
}

}  // namespace dpar
