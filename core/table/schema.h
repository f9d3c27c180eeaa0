// How an owner's tables become a graph (docs/your-data.md). All of a schema is public: it is declared, never read off
// private rows, and it travels with the model.
#ifndef DPAR_CORE_TABLE_SCHEMA_H_
#define DPAR_CORE_TABLE_SCHEMA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph.h"

namespace dpar {

inline constexpr size_t kMaxSchemaBytes = size_t{1} << 16;  // of the canonical form
inline constexpr int64_t kNumberKnots = 16;                 // of the triangular basis of numbers and dates
inline constexpr int64_t kMaxTextWords = 64;                // of one cell that count
inline constexpr int64_t kMaxTextWeight = 8;                // of a cell of text; that of any other value is 1

enum class ColumnType { kNumber, kCategory, kFlag, kDate, kText, kVector, kIgnore };

// One feature of a node and the cells that it is read from.
struct ColumnSchema {
  std::string name;  // in the header; of a vector with `parts`, its own
  ColumnType type = ColumnType::kIgnore;
  double low = 0;  // the range of a number, or of a date in days since 1970-01-01
  double high = 0;
  bool log_scale = false;
  std::vector<std::string> values;  // of a category
  int64_t width = 0;                // of text: places for words; of a vector: entries
  std::vector<std::string> parts;   // a vector's columns; empty: it is one column, in brackets

  // Feature columns of the graph: places for values, then one for other values and one for missing ones. A vector has
  // none for others, since every finite vector has a place. Ignored columns have none.
  [[nodiscard]] int64_t value_places() const;
  [[nodiscard]] int64_t feature_count() const;
  // The most entries that one row can have of it.
  [[nodiscard]] int64_t max_entries() const;
};

struct SchemaQuestion {
  std::string column;
  std::string text;
};

struct TableSchema {
  std::string id;
  std::string label;
  std::vector<std::string> classes;
  std::vector<ColumnSchema> columns;
  std::string source;
  std::string target;
  // Columns whose declared values were read off the data, which their owner accepted.
  std::vector<std::string> accepted_observed;
  std::vector<SchemaQuestion> questions;  // of a draft: not yet answered

  [[nodiscard]] int64_t feature_count() const;
  [[nodiscard]] int64_t max_entries() const;
};

// Reads YAML or JSON and validates it. INVALID_ARGUMENT / INVALID_FIELD `schema` says where and what is expected.
absl::StatusOr<TableSchema> ParseSchema(absl::string_view text);

// JSON with a fixed order and spelling, and without questions: one text for what ParseSchema reads alike.
std::string CanonicalSchema(const TableSchema& schema);

// Where two schemas first encode a row otherwise: "the classes differ" or "column age differs"; empty if they encode
// alike. Columns count in their order, and those that are ignored do not.
std::string SchemaDifference(const TableSchema& a, const TableSchema& b);

// FAILED_PRECONDITION naming the open questions, if there are any.
absl::Status CheckAnswered(const TableSchema& schema);
// Answers every question with what the draft has read off the data, and notes that. Of an ignored column, that is
// nothing.
TableSchema AcceptObserved(TableSchema schema);

// What a server takes: a canonical form without open questions that gives these sizes.
absl::Status CheckDeclaredSchema(absl::string_view text, int64_t feature_count, int64_t class_count);

// Days since 1970-01-01 of YYYY-MM-DD, perhaps with a time after it that does not count. False if it is none.
bool ParseDate(absl::string_view text, double& days);
std::string FormatDate(double days);

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_SCHEMA_H_
