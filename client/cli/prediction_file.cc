#include "client/cli/prediction_file.h"

#include <fstream>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/graph/npz.h"
#include "core/status_macros.h"
#include "nlohmann/json.hpp"

namespace dpar {
namespace {

constexpr mode_t kFileMode = 0666;
constexpr size_t kFlushBytes = 1 << 20;
constexpr const char* kHeader = "node,class,probability";

class TextWriter final : public PredictionWriter {
 public:
  TextWriter(AtomicFile file, PredictionFormat format) : file_(std::move(file)), format_(format) {
    if (format_ == PredictionFormat::kCsv) {
      text_ = absl::StrCat(kHeader, "\n");
    }
  }

  absl::Status Add(std::span<const Prediction> predictions) override {
    for (const Prediction& prediction : predictions) {
      const auto probability = static_cast<double>(prediction.probability);
      if (format_ == PredictionFormat::kCsv) {
        absl::StrAppendFormat(&text_, "%d,%d,%.6f\n", node_, prediction.label, probability);
      } else {
        absl::StrAppendFormat(&text_, "{\"node\":%d,\"class\":%d,\"probability\":%.6f}\n", node_, prediction.label,
                              probability);
      }
      ++node_;
      if (text_.size() >= kFlushBytes) {
        DPAR_RETURN_IF_ERROR(Flush());
      }
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    DPAR_RETURN_IF_ERROR(Flush());
    return file_.Commit();
  }

 private:
  absl::Status Flush() {
    DPAR_RETURN_IF_ERROR(file_.Append(text_));
    text_.clear();
    return absl::OkStatus();
  }

  AtomicFile file_;
  PredictionFormat format_;
  std::string text_;
  int64_t node_ = 0;
};

// An array's length stands before its entries, so they are held until the end: 8 bytes a node.
class NpzWriter final : public PredictionWriter {
 public:
  explicit NpzWriter(std::string path) : path_(std::move(path)) {}

  absl::Status Add(std::span<const Prediction> predictions) override {
    for (const Prediction& prediction : predictions) {
      classes_.push_back(prediction.label);
      probabilities_.push_back(prediction.probability);
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    const auto nodes = static_cast<int64_t>(classes_.size());
    return WriteNpzFile(path_, {{"class", {{nodes}, std::span<const int32_t>(classes_)}},
                                {"probability", {{nodes}, std::span<const float>(probabilities_)}}});
  }

 private:
  std::string path_;
  std::vector<int32_t> classes_;
  std::vector<float> probabilities_;
};

struct Row {
  int64_t node = 0;
  Prediction prediction;
};

std::optional<Row> ParseCsvRow(const std::string& line) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, ',');
  Row row;
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &row.node) ||
      !absl::SimpleAtoi(fields[1], &row.prediction.label) ||
      !absl::SimpleAtof(fields[2], &row.prediction.probability)) {
    return std::nullopt;
  }
  return row;
}

std::optional<Row> ParseJsonRow(const std::string& line) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("node") || !json["node"].is_number_integer() || !json.contains("class") ||
      !json["class"].is_number_integer() || !json.contains("probability") || !json["probability"].is_number()) {
    return std::nullopt;
  }
  const auto label = json["class"].get<int64_t>();
  if (label < 0 || label > std::numeric_limits<int32_t>::max()) {
    return std::nullopt;
  }
  return Row{json["node"].get<int64_t>(), {static_cast<int32_t>(label), json["probability"].get<float>()}};
}

bool IsPrediction(const Prediction& prediction) {
  return prediction.label >= 0 && prediction.probability >= 0 && prediction.probability <= 1;
}

absl::Status WrongLine(const std::string& path, int64_t number, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' line ", number, ": ", what));
}

absl::StatusOr<std::vector<Prediction>> ReadText(const std::string& path, int64_t nodes, PredictionFormat format) {
  std::ifstream file(path);
  std::vector<Prediction> predictions(static_cast<size_t>(nodes), Prediction{-1, 0});
  std::string line;
  int64_t seen = 0;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    const bool is_header = number == 1 && format == PredictionFormat::kCsv && absl::StartsWith(line, "node,");
    if (line.empty() || is_header) {
      continue;
    }
    const std::optional<Row> row = format == PredictionFormat::kCsv ? ParseCsvRow(line) : ParseJsonRow(line);
    if (!row.has_value() || !IsPrediction(row->prediction)) {
      return WrongLine(path, number, "is not a node, a class and a probability");
    }
    if (row->node < 0 || row->node >= nodes) {
      return WrongLine(path, number, absl::StrCat("names a node that the graph of ", nodes, " nodes does not have"));
    }
    Prediction& place = predictions[static_cast<size_t>(row->node)];
    if (place.label >= 0) {
      return WrongLine(path, number, "names a node for the second time");
    }
    place = row->prediction;
    ++seen;
  }
  if (seen != nodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' has predictions for ", seen, " nodes, and the graph has ", nodes));
  }
  return predictions;
}

absl::StatusOr<std::vector<Prediction>> ReadNpz(const std::string& path, int64_t nodes) {
  DPAR_ASSIGN_OR_RETURN(NpzFile file, NpzFile::Open(path, NpzLimits()));
  DPAR_ASSIGN_OR_RETURN(const NpyArray classes, file.ReadArray("class"));
  DPAR_ASSIGN_OR_RETURN(const NpyArray probabilities, file.ReadArray("probability"));
  const auto* labels = std::get_if<std::vector<int32_t>>(&classes.data);
  const auto* values = std::get_if<std::vector<float>>(&probabilities.data);
  if (labels == nullptr || values == nullptr || labels->size() != static_cast<size_t>(nodes) ||
      values->size() != labels->size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path, "' does not have the arrays class (int32) and probability (float32) with an entry for each of the ",
        nodes, " nodes of the graph"));
  }
  std::vector<Prediction> predictions;
  predictions.reserve(labels->size());
  for (size_t i = 0; i < labels->size(); ++i) {
    predictions.push_back({(*labels)[i], (*values)[i]});
    if (!IsPrediction(predictions.back())) {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "' entry ", i, " is not a class and a probability"));
    }
  }
  return predictions;
}

}  // namespace

absl::StatusOr<PredictionFormat> ParsePredictionFormat(const std::string& format, const std::string& path) {
  const auto is = [&](absl::string_view name) {
    return format.empty() ? absl::EndsWith(path, absl::StrCat(".", name)) : format == name;
  };
  if (is("csv")) {
    return PredictionFormat::kCsv;
  }
  if (is("npz")) {
    return PredictionFormat::kNpz;
  }
  if (is("jsonl")) {
    return PredictionFormat::kJsonLines;
  }
  return format.empty() ? InvalidField("output", absl::StrCat("'", path, "' ends in none of .csv, .npz and .jsonl"))
                        : InvalidField("format", absl::StrCat("--format is csv, npz or jsonl; not '", format, "'"));
}

absl::StatusOr<std::unique_ptr<PredictionWriter>> OpenPredictionWriter(const std::string& path,
                                                                       PredictionFormat format) {
  if (format == PredictionFormat::kNpz) {
    return std::make_unique<NpzWriter>(path);
  }
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, kFileMode));
  return std::make_unique<TextWriter>(std::move(file), format);
}

absl::StatusOr<std::vector<Prediction>> ReadPredictions(const std::string& path, int64_t nodes) {
  DPAR_ASSIGN_OR_RETURN(const PredictionFormat format, ParsePredictionFormat("", path));
  return format == PredictionFormat::kNpz ? ReadNpz(path, nodes) : ReadText(path, nodes, format);
}

}  // namespace dpar
