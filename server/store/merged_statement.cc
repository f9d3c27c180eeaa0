#include "server/store/merged_statement.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace dpar {
namespace {

using Statement = PostgresConnection::Statement;

constexpr absl::string_view kValues = " VALUES (";

// Appends a value as it stands in the text of an array.
void AppendElement(const Value& value, std::string& text) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    absl::StrAppend(&text, *integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    absl::StrAppendFormat(&text, "%.17g", *real);
  } else if (const auto* words = std::get_if<std::string>(&value)) {
    text.push_back('"');
    for (const char character : *words) {
      if (character == '"' || character == '\\') {
        text.push_back('\\');
      }
      text.push_back(character);
    }
    text.push_back('"');
  } else {
    text.append("NULL");
  }
}

// The values of one parameter.
struct Column {
  absl::string_view type = "text[]";  // also of one that has no value
  std::string elements = "{";
};

// None when the values are of different types.
std::optional<Column> MakeColumn(const ParameterRows& rows, size_t parameter) {
  Column column;
  std::optional<size_t> kind;
  for (const std::vector<Value>* row : rows) {
    const Value& value = (*row)[parameter];
    if (!std::holds_alternative<std::monostate>(value)) {
      if (kind.value_or(value.index()) != value.index()) {
        return std::nullopt;
      }
      kind = value.index();
    }
    if (column.elements.size() > 1) {
      column.elements.push_back(',');
    }
    AppendElement(value, column.elements);
  }
  column.elements.push_back('}');
  if (kind == Value(int64_t{}).index()) {
    column.type = "bigint[]";
  } else if (kind == Value(double{}).index()) {
    column.type = "double precision[]";
  }
  return column;
}

// The rows of parameters as a table "given" whose columns p1, p2, ... are the parameters and `n` the row's number.
struct Given {
  std::string source;
  std::vector<Value> parameters;
};

// Each array has something before and after it.
std::optional<Given> MakeGiven(const ParameterRows& rows, absl::string_view before, absl::string_view after) {
  if (rows[0]->empty()) {
    return std::nullopt;
  }
  Given given;
  std::string names;
  for (size_t i = 0; i < rows[0]->size(); ++i) {
    std::optional<Column> column = MakeColumn(rows, i);
    if (!column.has_value()) {
      return std::nullopt;
    }
    absl::StrAppend(&given.source, i == 0 ? "unnest(" : ", ", before, "$", i + 1, "::", column->type, after);
    absl::StrAppend(&names, "p", i + 1, ", ");
    given.parameters.emplace_back(std::move(column->elements));
  }
  absl::StrAppend(&given.source, ") WITH ORDINALITY AS given (", names, "n)");
  return given;
}

// The text with given.p1 for $1, and so on. No text of ours has a dollar sign that is not a parameter's.
std::string WithColumns(absl::string_view sql) {
  std::string text;
  text.reserve(sql.size() * 2);
  for (const char character : sql) {
    if (character == '$') {
      text.append("given.p");
    } else {
      text.push_back(character);
    }
  }
  return text;
}

// Whether every bracket is closed by its own.
bool IsBalanced(absl::string_view text) {
  int open = 0;
  for (const char character : text) {
    open += character == '(' ? 1 : character == ')' ? -1 : 0;
    if (open < 0) {
      return false;
    }
  }
  return open == 0;
}

// The list of values of an INSERT ... VALUES (...), which adds one row or fails: nothing about it needs to be checked.
// None for any other statement, also for one with several lists or with something after it.
std::optional<absl::string_view> ValuesOf(absl::string_view sql) {
  const size_t values = sql.find(kValues);
  if (!absl::StartsWith(sql, "INSERT ") || values == absl::string_view::npos || !absl::EndsWith(sql, ")")) {
    return std::nullopt;
  }
  const size_t begin = values + kValues.size();
  const absl::string_view list = sql.substr(begin, sql.size() - begin - 1);
  return IsBalanced(list) ? std::optional(list) : std::nullopt;
}

std::string ChangeAsMany(absl::string_view sql, absl::string_view wanted) {
  return absl::StrCat("WITH changed AS (", sql, " RETURNING 1) SELECT 1 / (CASE COUNT(*) WHEN ", wanted,
                      " THEN 1 ELSE 0 END) FROM changed");
}

}  // namespace

std::optional<Statement> MergeQueries(absl::string_view sql, const ParameterRows& rows) {
  // Each array in a query of its own: a planner that looks into it would plan anew for each.
  std::optional<Given> given = MakeGiven(rows, "(SELECT ", ")");
  if (!given.has_value()) {
    return std::nullopt;
  }
  // OFFSET 0 keeps the planner from taking the query apart: it is run as it stands, once for each row.
  return Statement{absl::StrCat("SELECT given.n, found.* FROM ", given->source, ", LATERAL (SELECT * FROM (",
                                WithColumns(sql), ") AS one OFFSET 0) AS found"),
                   std::move(given->parameters)};
}

std::optional<Statement> MergeChanges(absl::string_view sql, const ParameterRows& rows) {
  std::optional<Given> given = MakeGiven(rows, "", "");
  if (!given.has_value()) {
    return std::nullopt;
  }
  if (const std::optional<absl::string_view> values = ValuesOf(sql)) {
    return Statement{
        absl::StrCat(sql.substr(0, sql.find(kValues)), " SELECT ", WithColumns(*values), " FROM ", given->source),
        std::move(given->parameters)};
  }
  const size_t where = sql.find(" WHERE ");
  if (!absl::StartsWith(sql, "UPDATE ") || where == absl::string_view::npos || where != sql.rfind(" WHERE ")) {
    return std::nullopt;
  }
  const std::string update =
      absl::StrCat(WithColumns(sql.substr(0, where)), " FROM ", given->source, WithColumns(sql.substr(where)));
  return Statement{ChangeAsMany(update, "cardinality($1)"), std::move(given->parameters)};
}

std::optional<std::vector<std::vector<Row>>> SplitRows(std::vector<Row> rows, size_t count) {
  std::vector<std::vector<Row>> split(count);
  if (count == 1) {
    split[0] = std::move(rows);
    return split;
  }
  for (Row& row : rows) {
    const auto* const number = row.empty() ? nullptr : std::get_if<int64_t>(&row[0]);
    if (number == nullptr || *number < 1 || *number > static_cast<int64_t>(count)) {
      return std::nullopt;
    }
    std::vector<Row>& own = split[static_cast<size_t>(*number - 1)];
    row.erase(row.begin());
    own.push_back(std::move(row));
  }
  return split;
}

std::vector<MergedRun> MergeRuns(const std::vector<Statement>& statements) {
  std::vector<MergedRun> runs;
  for (size_t first = 0; first < statements.size();) {
    ParameterRows rows;
    for (size_t i = first; i < statements.size() && statements[i].sql == statements[first].sql; ++i) {
      rows.push_back(&statements[i].parameters);
    }
    std::optional<Statement> merged;
    if (rows.size() > 1) {
      merged = MergeQueries(statements[first].sql, rows);
    }
    const size_t count = merged.has_value() ? rows.size() : 1;
    runs.push_back({merged.has_value() ? *std::move(merged) : statements[first], first, count});
    first += count;
  }
  return runs;
}

std::string ChangeOne(absl::string_view sql) {
  return ValuesOf(sql).has_value() ? std::string(sql) : ChangeAsMany(sql, "1");
}

}  // namespace dpar
