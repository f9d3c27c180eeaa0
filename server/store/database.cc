#include "server/store/database.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {

absl::StatusOr<int64_t> Transaction::QueryInt(absl::string_view sql, const std::vector<Value>& parameters) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, Query(sql, parameters));
  const Row none;
  RowReader reader(rows.empty() ? none : rows[0]);
  const int64_t value = reader.Int();
  DPAR_RETURN_IF_ERROR(reader.status());
  return value;
}

absl::StatusOr<std::vector<std::string>> Transaction::QueryTexts(absl::string_view sql,
                                                                 const std::vector<Value>& parameters) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, Query(sql, parameters));
  std::vector<std::string> texts;
  texts.reserve(rows.size());
  for (const Row& row : rows) {
    RowReader reader(row);
    texts.push_back(reader.Text());
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return texts;
}

absl::StatusOr<std::vector<Row>> Transaction::QueryNames(absl::string_view sql, const std::vector<std::string>& names) {
  // Engines cache query texts, so one text serves any number of names; the last name fills it up.
  constexpr size_t kNamesAtOnce = 32;
  std::vector<std::string> places;
  for (size_t i = 1; i <= kNamesAtOnce; ++i) {
    places.push_back(absl::StrCat("$", i));
  }
  const std::string text = absl::StrReplaceAll(sql, {{"($)", absl::StrCat("(", absl::StrJoin(places, ", "), ")")}});
  std::vector<Row> all;
  for (size_t begin = 0; begin < names.size(); begin += kNamesAtOnce) {
    std::vector<Value> parameters;
    for (size_t i = 0; i < kNamesAtOnce; ++i) {
      parameters.emplace_back(names[std::min(begin + i, names.size() - 1)]);
    }
    DPAR_ASSIGN_OR_RETURN(std::vector<Row> rows, Query(text, parameters));
    std::move(rows.begin(), rows.end(), std::back_inserter(all));
  }
  return all;
}

absl::Status Transaction::ExecuteOne(absl::string_view sql, const std::vector<Value>& parameters,
                                     const absl::Status& otherwise) {
  DPAR_ASSIGN_OR_RETURN(const int64_t changed, Execute(sql, parameters));
  return changed == 1 ? absl::OkStatus() : otherwise;
}

absl::Status CheckParameters(const std::vector<Value>& parameters) {
  for (const Value& value : parameters) {
    const auto* real = std::get_if<double>(&value);
    if (real != nullptr && !std::isfinite(*real)) {
      return InvalidField("parameter", "a number to be stored must be finite");
    }
    const auto* text = std::get_if<std::string>(&value);
    if (text != nullptr && absl::StrContains(*text, '\0')) {
      return InvalidField("parameter", "a text to be stored must not hold a NUL byte");
    }
  }
  return absl::OkStatus();
}

const Value* RowReader::Next() {
  const size_t column = next_++;
  if (!status_.ok()) {
    return nullptr;
  }
  if (column >= row_.size()) {
    Mismatch();
    return nullptr;
  }
  return &row_[column];
}

void RowReader::Mismatch() {
  if (status_.ok()) {
    status_ = MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT,
                        absl::StrCat("the store holds an unexpected type in column ", next_ - 1, " of a result"));
  }
}

int64_t RowReader::Int() {
  const Value* value = Next();
  if (value != nullptr && std::holds_alternative<int64_t>(*value)) {
    return std::get<int64_t>(*value);
  }
  Mismatch();
  return 0;
}

int32_t RowReader::Int32() {
  const int64_t value = Int();
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    Mismatch();
    return 0;
  }
  return static_cast<int32_t>(value);
}

double RowReader::Real() {
  const Value* value = Next();
  if (value != nullptr && std::holds_alternative<double>(*value)) {
    return std::get<double>(*value);
  }
  Mismatch();
  return 0;
}

std::string RowReader::Text() {
  const Value* value = Next();
  if (value != nullptr && std::holds_alternative<std::string>(*value)) {
    return std::get<std::string>(*value);
  }
  Mismatch();
  return {};
}

std::optional<int64_t> RowReader::OptionalInt() {
  const Value* value = Next();
  if (value != nullptr && std::holds_alternative<int64_t>(*value)) {
    return std::get<int64_t>(*value);
  }
  if (value == nullptr || !std::holds_alternative<std::monostate>(*value)) {
    Mismatch();
  }
  return std::nullopt;
}

}  // namespace dpar
