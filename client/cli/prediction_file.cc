#include "client/cli/prediction_file.h"

#include <fstream>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/graph/npz.h"
#include "core/status_macros.h"
#include "core/table/id_index.h"
#include "core/table/table_reader.h"
#include "nlohmann/json.hpp"

namespace dpar {
namespace {

constexpr mode_t kFileMode = 0666;
constexpr size_t kFlushBytes = 1 << 20;
constexpr const char* kHeaderEnd = ",class,probability";

class TextWriter final : public PredictionWriter {
 public:
  TextWriter(AtomicFile file, PredictionFormat format, const GraphNames& names)
      : file_(std::move(file)), format_(format), names_(names) {
    if (format_ == PredictionFormat::kCsv) {
      text_ = absl::StrCat(names_.ids.empty() ? "node" : "id", kHeaderEnd, "\n");
    }
  }

  absl::Status Add(std::span<const Prediction> predictions) override {
    for (const Prediction& prediction : predictions) {
      const std::string probability = absl::StrFormat("%.6f", static_cast<double>(prediction.probability));
      const bool has_id = !names_.ids.empty();
      if (format_ == PredictionFormat::kCsv) {
        absl::StrAppend(&text_, has_id ? CsvField(names_.ids[node_]) : absl::StrCat(node_), ",",
                        HasName(prediction) ? CsvField(NameOf(prediction)) : absl::StrCat(prediction.label), ",",
                        probability, "\n");
      } else {
        absl::StrAppend(
            &text_, "{", has_id ? "\"id\":" : "\"node\":", has_id ? Quoted(names_.ids[node_]) : absl::StrCat(node_),
            ",\"class\":", HasName(prediction) ? Quoted(NameOf(prediction)) : absl::StrCat(prediction.label),
            ",\"probability\":", probability, "}\n");
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

  [[nodiscard]] bool HasName(const Prediction& prediction) const {
    return static_cast<size_t>(prediction.label) < names_.classes.size();
  }
  [[nodiscard]] const std::string& NameOf(const Prediction& prediction) const {
    return names_.classes[static_cast<size_t>(prediction.label)];
  }
  static std::string Quoted(absl::string_view text) {
    return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  AtomicFile file_;
  PredictionFormat format_;
  const GraphNames& names_;
  std::string text_;
  int64_t node_ = 0;
};

// An array's length stands before its entries, so they are held until the end: 8 bytes a node.
class NpzWriter final : public PredictionWriter {
 public:
  NpzWriter(std::string path, const GraphNames& names) : path_(std::move(path)), names_{names.ids, names.classes, {}} {}

  absl::Status Add(std::span<const Prediction> predictions) override {
    for (const Prediction& prediction : predictions) {
      classes_.push_back(prediction.label);
      probabilities_.push_back(prediction.probability);
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    const auto nodes = static_cast<int64_t>(classes_.size());
    std::map<std::string, NpyView> arrays = {{"class", {{nodes}, std::span<const int32_t>(classes_)}},
                                             {"probability", {{nodes}, std::span<const float>(probabilities_)}}};
    const NameArrays name_arrays(names_);
    name_arrays.AddTo(arrays);
    return WriteNpzFile(path_, arrays);
  }

 private:
  std::string path_;
  GraphNames names_;
  std::vector<int32_t> classes_;
  std::vector<float> probabilities_;
};

struct Row {
  int64_t node = 0;
  Prediction prediction;
};

// The names of a graph, to be looked up.
class NameIndex {
 public:
  explicit NameIndex(const GraphNames& names) {
    for (int64_t node = 0; node < names.ids.size(); ++node) {
      nodes_.Add(names.ids[node]);
    }
    for (const std::string& name : names.classes) {
      classes_.Add(name);
    }
  }

  [[nodiscard]] bool FindNode(absl::string_view id, int64_t& node) const {
    const std::optional<int32_t> found = nodes_.Find(id);
    node = found.value_or(-1);
    return found.has_value();
  }
  // By name, or else by number.
  [[nodiscard]] bool FindClass(absl::string_view text, int32_t& label) const {
    const std::optional<int32_t> found = classes_.Find(text);
    label = found.value_or(0);
    return found.has_value() || absl::SimpleAtoi(text, &label);
  }

 private:
  IdIndex nodes_;
  IdIndex classes_;
};

std::optional<Row> ParseCsvRow(std::span<const absl::string_view> fields, bool by_id, const NameIndex& index) {
  Row row;
  if (fields.size() != 3 || !(by_id ? index.FindNode(fields[0], row.node) : absl::SimpleAtoi(fields[0], &row.node)) ||
      !index.FindClass(fields[1], row.prediction.label) || !absl::SimpleAtof(fields[2], &row.prediction.probability)) {
    return std::nullopt;
  }
  return row;
}

std::optional<Row> ParseJsonRow(const std::string& line, const NameIndex& index) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto text = [&json](const char* key) {
    const bool plain = json.is_object() && json.contains(key) && (json[key].is_string() || json[key].is_number());
    return !plain ? std::string() : json[key].is_string() ? json[key].get<std::string>() : json[key].dump();
  };
  const bool by_id = json.is_object() && json.contains("id");
  const std::string node = text(by_id ? "id" : "node");
  const std::string label = text("class");
  const std::string probability = text("probability");
  const absl::string_view fields[] = {node, label, probability};
  return ParseCsvRow(fields, by_id, index);
}

bool IsPrediction(const Prediction& prediction) {
  return prediction.label >= 0 && prediction.probability >= 0 && prediction.probability <= 1;
}

absl::Status WrongLine(const std::string& path, int64_t number, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("'", path, "' line ", number, ": ", what));
}

// Puts rows, which come in any order, into the order of the nodes.
class Collection {
 public:
  Collection(std::string path, int64_t nodes)
      : path_(std::move(path)), predictions_(static_cast<size_t>(nodes), Prediction{-1, 0}) {}

  absl::Status Add(int64_t line, const std::optional<Row>& row) {
    if (!row.has_value() || !IsPrediction(row->prediction)) {
      return WrongLine(path_, line, "is not a node of the graph, a class and a probability");
    }
    if (row->node < 0 || row->node >= static_cast<int64_t>(predictions_.size())) {
      return WrongLine(path_, line,
                       absl::StrCat("names a node that the graph of ", predictions_.size(), " nodes does not have"));
    }
    Prediction& place = predictions_[static_cast<size_t>(row->node)];
    if (place.label >= 0) {
      return WrongLine(path_, line, "names a node for the second time");
    }
    place = row->prediction;
    ++seen_;
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<Prediction>> Finish() {
    if (seen_ != predictions_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path_, "' has predictions for ", seen_, " nodes, and the graph has ", predictions_.size()));
    }
    return std::move(predictions_);
  }

 private:
  std::string path_;
  std::vector<Prediction> predictions_;
  size_t seen_ = 0;
};

absl::StatusOr<std::vector<Prediction>> ReadCsv(const std::string& path, int64_t nodes, const NameIndex& index) {
  Collection collection(path, nodes);
  DPAR_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(path));
  const bool by_id = table.header()[0] == "id";
  if (table.header() != std::vector<std::string>{by_id ? "id" : "node", "class", "probability"}) {
    return WrongLine(path, table.line(), "is not the header of predictions: id or node, class, probability");
  }
  while (true) {
    DPAR_ASSIGN_OR_RETURN(const bool found, table.Next());
    if (!found) {
      return collection.Finish();
    }
    DPAR_RETURN_IF_ERROR(collection.Add(table.line(), ParseCsvRow(table.fields(), by_id, index)));
  }
}

absl::StatusOr<std::vector<Prediction>> ReadJsonLines(const std::string& path, int64_t nodes, const NameIndex& index) {
  Collection collection(path, nodes);
  std::ifstream file(path);
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (!line.empty()) {
      DPAR_RETURN_IF_ERROR(collection.Add(number, ParseJsonRow(line, index)));
    }
  }
  return collection.Finish();
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

absl::StatusOr<std::unique_ptr<PredictionWriter>> OpenPredictionWriter(const std::string& path, PredictionFormat format,
                                                                       const GraphNames& names) {
  if (format == PredictionFormat::kNpz) {
    return std::make_unique<NpzWriter>(path, names);
  }
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, kFileMode));
  return std::make_unique<TextWriter>(std::move(file), format, names);
}

absl::StatusOr<std::vector<Prediction>> ReadPredictions(const std::string& path, int64_t nodes,
                                                        const GraphNames& names) {
  DPAR_ASSIGN_OR_RETURN(const PredictionFormat format, ParsePredictionFormat("", path));
  if (format == PredictionFormat::kNpz) {
    return ReadNpz(path, nodes);
  }
  const NameIndex index(names);
  return format == PredictionFormat::kCsv ? ReadCsv(path, nodes, index) : ReadJsonLines(path, nodes, index);
}

}  // namespace dpar
