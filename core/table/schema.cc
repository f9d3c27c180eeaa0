#include "core/table/schema.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/civil_time.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "core/strict_json.h"

namespace dpar {
namespace {

Json DescribeRange(const ColumnSchema& column) {
  return column.type == ColumnType::kDate ? Json::array({FormatDate(column.low), FormatDate(column.high)})
                                          : Json::array({column.low, column.high});
}

Json DescribeColumn(const ColumnSchema& column) {
  switch (column.type) {
    case ColumnType::kNumber:
      return column.log_scale ? Json{{"type", "number"}, {"range", DescribeRange(column)}, {"scale", "log"}}
                              : Json{{"type", "number"}, {"range", DescribeRange(column)}};
    case ColumnType::kCategory:
      return {{"type", "category"}, {"values", column.values}};
    case ColumnType::kFlag:
      return {{"type", "flag"}};
    case ColumnType::kDate:
      return {{"type", "date"}, {"range", DescribeRange(column)}};
    case ColumnType::kText:
      return {{"type", "text"}, {"width", column.width}};
    case ColumnType::kVector:
      return column.parts.empty() ? Json{{"type", "vector"}, {"width", column.width}}
                                  : Json{{"type", "vector"}, {"columns", column.parts}};
    case ColumnType::kIgnore:
      break;
  }
  return {{"type", "ignore"}};
}

}  // namespace

int64_t ColumnSchema::value_places() const {
  switch (type) {
    case ColumnType::kNumber:
    case ColumnType::kDate:
      return kNumberKnots;
    case ColumnType::kCategory:
      return static_cast<int64_t>(values.size());
    case ColumnType::kFlag:
      return 2;
    case ColumnType::kText:
    case ColumnType::kVector:
      return width;
    case ColumnType::kIgnore:
      break;
  }
  return 0;
}

int64_t ColumnSchema::feature_count() const {
  if (type == ColumnType::kIgnore) {
    return 0;
  }
  return value_places() + (type == ColumnType::kVector ? 1 : 2);
}

int64_t ColumnSchema::max_entries() const {
  switch (type) {
    case ColumnType::kNumber:
    case ColumnType::kDate:
      return 2;
    case ColumnType::kCategory:
    case ColumnType::kFlag:
      return 1;
    case ColumnType::kText:
      return std::min(width, kMaxTextWords);
    case ColumnType::kVector:
      return width;
    case ColumnType::kIgnore:
      break;
  }
  return 0;
}

int64_t TableSchema::feature_count() const {
  int64_t count = 0;
  for (const ColumnSchema& column : columns) {
    count += column.feature_count();
  }
  return count;
}

int64_t TableSchema::max_entries() const {
  int64_t count = 0;
  for (const ColumnSchema& column : columns) {
    count += column.max_entries();
  }
  return count;
}

std::string CanonicalSchema(const TableSchema& schema) {
  Json columns = Json::object();
  for (const ColumnSchema& column : schema.columns) {
    columns[column.name] = DescribeColumn(column);
  }
  Json json = {{"nodes",
                {{"id", schema.id},
                 {"label", {{"column", schema.label}, {"classes", schema.classes}}},
                 {"columns", std::move(columns)}}},
               {"edges", {{"source", schema.source}, {"target", schema.target}}}};
  if (!schema.accepted_observed.empty()) {
    json["accepted_observed"] = schema.accepted_observed;
  }
  return json.dump();
}

std::string SchemaDifference(const TableSchema& a, const TableSchema& b) {
  if (a.classes != b.classes) {
    return "the classes differ";
  }
  const auto encoded = [](const TableSchema& schema) {
    std::vector<const ColumnSchema*> columns;
    for (const ColumnSchema& column : schema.columns) {
      if (column.type != ColumnType::kIgnore) {
        columns.push_back(&column);
      }
    }
    return columns;
  };
  const std::vector<const ColumnSchema*> first = encoded(a);
  const std::vector<const ColumnSchema*> second = encoded(b);
  for (size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i >= first.size() || i >= second.size()) {
      return absl::StrCat("column ", (i < first.size() ? first : second)[i]->name, " differs");
    }
    if (first[i]->name != second[i]->name || DescribeColumn(*first[i]) != DescribeColumn(*second[i])) {
      return absl::StrCat("column ", first[i]->name, " differs");
    }
  }
  return "";
}

absl::Status CheckAnswered(const TableSchema& schema) {
  if (schema.questions.empty()) {
    return absl::OkStatus();
  }
  std::vector<std::string> lines;
  lines.reserve(schema.questions.size());
  for (const SchemaQuestion& question : schema.questions) {
    lines.push_back(absl::StrCat("  ", question.column, ": ", question.text));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the schema is a draft with ", schema.questions.size(),
                   " open questions. Answer each in the file and delete its question, or take what was read off the "
                   "data with --accept-observed, which every certificate then states:\n",
                   absl::StrJoin(lines, "\n")));
}

TableSchema AcceptObserved(TableSchema schema) {
  for (const SchemaQuestion& question : schema.questions) {
    const auto column = std::find_if(schema.columns.begin(), schema.columns.end(),
                                     [&](const ColumnSchema& one) { return one.name == question.column; });
    const bool is_ignored = column != schema.columns.end() && column->type == ColumnType::kIgnore;
    if (!is_ignored && std::find(schema.accepted_observed.begin(), schema.accepted_observed.end(), question.column) ==
                           schema.accepted_observed.end()) {
      schema.accepted_observed.push_back(question.column);
    }
  }
  schema.questions.clear();
  return schema;
}

absl::Status CheckDeclaredSchema(absl::string_view text, int64_t feature_count, int64_t class_count) {
  if (text.size() > kMaxSchemaBytes) {
    return InvalidField("schema", absl::StrCat("schema must have at most ", kMaxSchemaBytes, " bytes"));
  }
  DPAR_ASSIGN_OR_RETURN(const TableSchema schema, ParseSchema(text));
  if (CanonicalSchema(schema) != text) {
    return InvalidField("schema", "schema must be in its canonical form, as dpar graph convert writes it");
  }
  if (schema.feature_count() != feature_count) {
    return InvalidField("schema", absl::StrCat("the schema gives ", schema.feature_count(),
                                               " features, and feature_count declares ", feature_count));
  }
  if (static_cast<int64_t>(schema.classes.size()) != class_count) {
    return InvalidField("schema", absl::StrCat("the schema has ", schema.classes.size(),
                                               " classes, and class_count declares ", class_count));
  }
  return absl::OkStatus();
}

bool ParseDate(absl::string_view text, double& days) {
  constexpr size_t kDateLength = 10;
  if (text.size() < kDateLength || text[4] != '-' || text[7] != '-' ||
      (text.size() > kDateLength && text[kDateLength] != 'T' && text[kDateLength] != ' ')) {
    return false;
  }
  int64_t numbers[3] = {0, 0, 0};
  size_t part = 0;
  for (size_t i = 0; i < kDateLength; ++i) {
    if (i == 4 || i == 7) {
      ++part;
    } else if (text[i] >= '0' && text[i] <= '9') {
      numbers[part] = numbers[part] * 10 + (text[i] - '0');
    } else {
      return false;
    }
  }
  const absl::CivilDay day(numbers[0], static_cast<int>(numbers[1]), static_cast<int>(numbers[2]));
  if (day.year() != numbers[0] || day.month() != numbers[1] || day.day() != numbers[2]) {
    return false;
  }
  days = static_cast<double>(day - absl::CivilDay(1970, 1, 1));
  return true;
}

std::string FormatDate(double days) {
  const absl::CivilDay day = absl::CivilDay(1970, 1, 1) + std::llround(days);
  return absl::StrFormat("%04d-%02d-%02d", day.year(), day.month(), day.day());
}

}  // namespace dpar
