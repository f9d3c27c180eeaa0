#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/error.h"
#include "core/plain_text.h"
#include "core/status_macros.h"
#include "core/table/schema.h"
#include "core/table/yaml_tree.h"

namespace dpar {
namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr size_t kMaxListLength = 10'000;
constexpr int64_t kMaxTextWidth = 65'536;
constexpr int64_t kMaxVectorWidth = 16'384;
constexpr int64_t kMaxFeatures = 1'000'000;
constexpr double kMaxMagnitude = 1e15;

absl::Status Fault(absl::string_view place, absl::string_view fault) {
  return InvalidField("schema", absl::StrCat("schema, ", place, ": ", fault));
}

absl::Status CheckName(absl::string_view place, absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || !IsPlainText(name) || absl::StripAsciiWhitespace(name) != name) {
    return Fault(place, absl::StrCat("expected a text of 1 to ", kMaxNameBytes,
                                     " bytes without control characters and without spaces around it"));
  }
  return absl::OkStatus();
}

// The members of an object, each taken at most once; Finish refuses what nobody took.
class Members {
 public:
  static absl::StatusOr<Members> Of(const Json& json, std::string place) {
    if (!json.is_object()) {
      return Fault(place, "expected `key: value` lines");
    }
    return Members(json, std::move(place));
  }

  const Json* Take(const std::string& key) {
    taken_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  absl::StatusOr<const Json*> Need(const std::string& key) {
    const Json* found = Take(key);
    return found == nullptr ? Fault(place_, absl::StrCat("`", key, "` is missing"))
                            : absl::StatusOr<const Json*>(found);
  }

  absl::StatusOr<std::string> Text(const std::string& key) {
    DPAR_ASSIGN_OR_RETURN(const Json* const json, Need(key));
    const std::string place = absl::StrCat(place_, ", ", key);
    if (!json->is_string()) {
      return Fault(place, "expected a text");
    }
    DPAR_RETURN_IF_ERROR(CheckName(place, json->get_ref<const std::string&>()));
    return json->get<std::string>();
  }

  absl::StatusOr<std::vector<std::string>> Texts(const std::string& key, size_t least) {
    DPAR_ASSIGN_OR_RETURN(const Json* const json, Need(key));
    const std::string place = absl::StrCat(place_, ", ", key);
    if (!json->is_array() || json->size() < least || json->size() > kMaxListLength) {
      return Fault(place, absl::StrCat("expected a list of ", least, " to ", kMaxListLength, " texts"));
    }
    std::vector<std::string> texts;
    for (const Json& entry : *json) {
      if (!entry.is_string()) {
        return Fault(place, "expected a list of texts");
      }
      DPAR_RETURN_IF_ERROR(CheckName(place, entry.get_ref<const std::string&>()));
      texts.push_back(entry.get<std::string>());
    }
    if (std::set<std::string>(texts.begin(), texts.end()).size() != texts.size()) {
      return Fault(place, "names the same value twice");
    }
    return texts;
  }

  absl::StatusOr<int64_t> Width(const std::string& key, int64_t most) {
    DPAR_ASSIGN_OR_RETURN(const std::string text, Text(key));
    int64_t width = 0;
    if (!absl::SimpleAtoi(text, &width) || width < 1 || width > most) {
      return Fault(absl::StrCat(place_, ", ", key), absl::StrCat("expected a whole number from 1 to ", most));
    }
    return width;
  }

  absl::Status Finish() {
    for (const auto& [key, value] : json_.items()) {
      if (!taken_.contains(key)) {
        return Fault(place_, absl::StrCat("`", key, "` is not known here; known are ", absl::StrJoin(taken_, ", ")));
      }
    }
    return absl::OkStatus();
  }

  [[nodiscard]] const std::string& place() const { return place_; }

 private:
  Members(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  const Json& json_;
  std::string place_;
  std::set<std::string> taken_;
};

absl::Status ReadQuestion(Members& members, const std::string& column, TableSchema& schema) {
  if (const Json* question = members.Take("question"); question != nullptr) {
    if (!question->is_string() || !IsPlainText(question->get_ref<const std::string&>())) {
      return Fault(absl::StrCat(members.place(), ", question"), "expected a text");
    }
    schema.questions.push_back({column, question->get<std::string>()});
  }
  return absl::OkStatus();
}

absl::Status ReadRange(Members& members, ColumnSchema& column) {
  const bool is_date = column.type == ColumnType::kDate;
  const std::string expected = is_date ? "expected two dates, the earlier first, such as [2000-01-01, 2030-12-31]"
                                       : "expected two numbers, the smaller first, such as [0, 120]";
  DPAR_ASSIGN_OR_RETURN(const Json* const range, members.Need("range"));
  const std::string place = absl::StrCat(members.place(), ", range");
  if (!range->is_array() || range->size() != 2) {
    return Fault(place, expected);
  }
  double ends[2] = {0, 0};
  for (size_t i = 0; i < 2; ++i) {
    const Json& end = (*range)[i];
    const std::string text = end.is_string() ? end.get<std::string>() : "";
    const bool read = is_date ? text.size() == 10 && ParseDate(text, ends[i])
                              : absl::SimpleAtod(text, &ends[i]) && std::fabs(ends[i]) <= kMaxMagnitude;
    if (!read) {
      return Fault(place, expected);
    }
  }
  column.low = ends[0] + 0.0;  // no negative zero
  column.high = ends[1] + 0.0;
  return column.low < column.high ? absl::OkStatus() : Fault(place, expected);
}

absl::Status ReadScale(Members& members, ColumnSchema& column) {
  if (members.Take("scale") == nullptr) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const std::string scale, members.Text("scale"));
  column.log_scale = scale == "log";
  if (!column.log_scale && scale != "linear") {
    return Fault(absl::StrCat(members.place(), ", scale"), "expected log or linear");
  }
  return column.log_scale && column.low < 0
             ? Fault(absl::StrCat(members.place(), ", scale"), "a log scale needs a range that begins at 0 or above")
             : absl::OkStatus();
}

absl::Status ReadVector(Members& members, ColumnSchema& column) {
  if (members.Take("columns") == nullptr) {
    DPAR_ASSIGN_OR_RETURN(column.width, members.Width("width", kMaxVectorWidth));
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(column.parts, members.Texts("columns", 1));
  column.width = static_cast<int64_t>(column.parts.size());
  return absl::OkStatus();
}

absl::Status ReadType(Members& members, ColumnSchema& column) {
  DPAR_ASSIGN_OR_RETURN(const std::string type, members.Text("type"));
  if (type == "number") {
    column.type = ColumnType::kNumber;
    DPAR_RETURN_IF_ERROR(ReadRange(members, column));
    return ReadScale(members, column);
  }
  if (type == "date") {
    column.type = ColumnType::kDate;
    return ReadRange(members, column);
  }
  if (type == "category") {
    column.type = ColumnType::kCategory;
    DPAR_ASSIGN_OR_RETURN(column.values, members.Texts("values", 1));
    return absl::OkStatus();
  }
  if (type == "text") {
    column.type = ColumnType::kText;
    DPAR_ASSIGN_OR_RETURN(column.width, members.Width("width", kMaxTextWidth));
    return absl::OkStatus();
  }
  if (type == "vector") {
    column.type = ColumnType::kVector;
    return ReadVector(members, column);
  }
  if (type == "flag" || type == "ignore") {
    column.type = type == "flag" ? ColumnType::kFlag : ColumnType::kIgnore;
    return absl::OkStatus();
  }
  return Fault(absl::StrCat(members.place(), ", type"),
               "expected number, category, flag, date, text, vector or ignore");
}

absl::Status ReadColumns(const Json& json, TableSchema& schema) {
  if (!json.is_object() || json.empty() || json.size() > kMaxListLength) {
    return Fault("nodes, columns", absl::StrCat("expected 1 to ", kMaxListLength, " columns"));
  }
  for (const auto& [name, description] : json.items()) {
    const std::string place = absl::StrCat("column ", name);
    DPAR_RETURN_IF_ERROR(CheckName("nodes, columns", name));
    DPAR_ASSIGN_OR_RETURN(Members members, Members::Of(description, place));
    ColumnSchema column;
    column.name = name;
    DPAR_RETURN_IF_ERROR(ReadType(members, column));
    DPAR_RETURN_IF_ERROR(ReadQuestion(members, name, schema));
    DPAR_RETURN_IF_ERROR(members.Finish());
    schema.columns.push_back(std::move(column));
  }
  return absl::OkStatus();
}

absl::Status ReadNodes(const Json& json, TableSchema& schema) {
  DPAR_ASSIGN_OR_RETURN(Members nodes, Members::Of(json, "nodes"));
  DPAR_ASSIGN_OR_RETURN(schema.id, nodes.Text("id"));
  DPAR_ASSIGN_OR_RETURN(const Json* const label_json, nodes.Need("label"));
  DPAR_ASSIGN_OR_RETURN(Members label, Members::Of(*label_json, "nodes, label"));
  DPAR_ASSIGN_OR_RETURN(schema.label, label.Text("column"));
  DPAR_ASSIGN_OR_RETURN(schema.classes, label.Texts("classes", 2));
  DPAR_RETURN_IF_ERROR(ReadQuestion(label, schema.label, schema));
  DPAR_RETURN_IF_ERROR(label.Finish());
  DPAR_ASSIGN_OR_RETURN(const Json* const columns, nodes.Need("columns"));
  DPAR_RETURN_IF_ERROR(ReadColumns(*columns, schema));
  return nodes.Finish();
}

// Every column of the node table has one meaning.
absl::Status CheckColumns(const TableSchema& schema) {
  std::set<std::string> names = {schema.id};
  if (!names.insert(schema.label).second) {
    return Fault("nodes, label", "the label's column cannot be the id's");
  }
  for (const ColumnSchema& column : schema.columns) {
    const std::vector<std::string> own = {column.name};
    for (const std::string& name : column.parts.empty() ? own : column.parts) {
      if (!names.insert(name).second) {
        return Fault(absl::StrCat("column ", name), "the column stands twice");
      }
    }
  }
  const int64_t features = schema.feature_count();
  if (features < 1 || features > kMaxFeatures) {
    return Fault("nodes, columns",
                 absl::StrCat("they make ", features, " features; expected 1 to ", kMaxFeatures, " of them"));
  }
  return absl::OkStatus();
}

absl::Status CheckAccepted(const TableSchema& schema) {
  for (const std::string& name : schema.accepted_observed) {
    const bool known =
        name == schema.label || std::any_of(schema.columns.begin(), schema.columns.end(),
                                            [&](const ColumnSchema& column) { return column.name == name; });
    if (!known) {
      return Fault("accepted_observed", absl::StrCat("'", name, "' is not a column of this schema"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TableSchema> ParseSchema(absl::string_view text) {
  DPAR_ASSIGN_OR_RETURN(const Json tree, ParseYamlTree(text));
  DPAR_ASSIGN_OR_RETURN(Members members, Members::Of(tree, "file"));
  TableSchema schema;
  DPAR_ASSIGN_OR_RETURN(const Json* const nodes, members.Need("nodes"));
  DPAR_RETURN_IF_ERROR(ReadNodes(*nodes, schema));
  DPAR_ASSIGN_OR_RETURN(const Json* const edges_json, members.Need("edges"));
  DPAR_ASSIGN_OR_RETURN(Members edges, Members::Of(*edges_json, "edges"));
  DPAR_ASSIGN_OR_RETURN(schema.source, edges.Text("source"));
  DPAR_ASSIGN_OR_RETURN(schema.target, edges.Text("target"));
  DPAR_RETURN_IF_ERROR(edges.Finish());
  if (schema.source == schema.target) {
    return Fault("edges", "source and target cannot be the same column");
  }
  if (members.Take("accepted_observed") != nullptr) {
    DPAR_ASSIGN_OR_RETURN(schema.accepted_observed, members.Texts("accepted_observed", 1));
  }
  DPAR_RETURN_IF_ERROR(members.Finish());
  DPAR_RETURN_IF_ERROR(CheckColumns(schema));
  DPAR_RETURN_IF_ERROR(CheckAccepted(schema));
  if (CanonicalSchema(schema).size() > kMaxSchemaBytes) {
    return Fault("file", absl::StrCat("it is longer than ", kMaxSchemaBytes, " bytes in its canonical form"));
  }
  return schema;
}

}  // namespace dpar
