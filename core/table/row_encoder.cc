#include "core/table/row_encoder.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

void Add(int32_t column, double value, RowEncoder::Row& row) {
  if (value != 0) {
    row.columns.push_back(column);
    row.values.push_back(static_cast<float>(value));
  }
}

bool IsWordByte(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || (c & 0x80) != 0; }

// Where the value stands in the range, 0 to 1.
double Position(const ColumnSchema& column, double value) {
  if (!column.log_scale) {
    return (value - column.low) / (column.high - column.low);
  }
  return column.low > 0 ? std::log(value / column.low) / std::log(column.high / column.low)
                        : std::log1p(value) / std::log1p(column.high);
}

absl::Status CheckKnown(const TableSchema& schema, const TableReader& table) {
  std::set<absl::string_view> known = {schema.id, schema.label};
  for (const ColumnSchema& column : schema.columns) {
    if (column.parts.empty()) {
      known.insert(column.name);
    }
    known.insert(column.parts.begin(), column.parts.end());
  }
  for (const std::string& name : table.header()) {
    if (!known.contains(name)) {
      return table.RefuseColumn(name,
                                "the schema does not know it; leave it out of the table, or declare it, with `type: "
                                "ignore` if it does not count");
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsMissing(absl::string_view cell) {
  return cell.empty() || cell == "NA" || cell == "N/A" || cell == "n/a" || cell == "#N/A" || cell == "NaN" ||
         cell == "nan" || cell == "null" || cell == "NULL" || cell == "None" || cell == "-";
}

bool ParseFlag(absl::string_view cell, bool& value) {
  const auto is = [cell](absl::string_view word) { return absl::EqualsIgnoreCase(cell, word); };
  value = is("yes") || is("true") || is("t") || is("y") || cell == "1";
  return value || is("no") || is("false") || is("f") || is("n") || cell == "0";
}

bool ParseNumber(absl::string_view cell, char separator, double& value) {
  constexpr size_t kMaxNumberBytes = 64;
  char text[kMaxNumberBytes];
  if (cell.empty() || cell.size() > kMaxNumberBytes) {
    return false;
  }
  std::copy(cell.begin(), cell.end(), text);
  if (separator == ';') {
    std::replace(text, text + cell.size(), ',', '.');
  }
  const char* const begin = text + (text[0] == '+' ? 1 : 0);
  const char* const end = text + cell.size();
  const absl::from_chars_result result = absl::from_chars(begin, end, value);
  return result.ec == std::errc() && result.ptr == end && std::isfinite(value);
}

absl::StatusOr<RowEncoder> RowEncoder::Make(const TableSchema& schema, const TableReader& table) {
  DPAR_RETURN_IF_ERROR(CheckKnown(schema, table));
  RowEncoder encoder;
  int64_t first = 0;
  for (const ColumnSchema& column : schema.columns) {
    if (column.type == ColumnType::kIgnore) {
      continue;
    }
    Source source;
    source.schema = &column;
    source.first = static_cast<int32_t>(first);
    first += column.feature_count();
    const std::vector<std::string> own = {column.name};
    for (const std::string& name : column.parts.empty() ? own : column.parts) {
      const std::optional<size_t> field = table.FindColumn(name);
      if (!field.has_value()) {
        return table.RefuseColumn(name, "the schema declares it, and the table does not have it");
      }
      source.fields.push_back(*field);
    }
    for (size_t i = 0; i < column.values.size(); ++i) {
      source.places.emplace(column.values[i], static_cast<int32_t>(i));
    }
    encoder.sources_.push_back(std::move(source));
  }
  return encoder;
}

absl::Status RowEncoder::Encode(const TableReader& table, Row& row) {
  row.columns.clear();
  row.values.clear();
  row.others.clear();
  bool has_value = false;
  for (size_t i = 0; i < sources_.size(); ++i) {
    DPAR_ASSIGN_OR_RETURN(const bool present, EncodeColumn(table, i, row));
    has_value |= present;
    if (!present) {
      const Source& source = sources_[i];
      Add(source.first + static_cast<int32_t>(source.schema->feature_count()) - 1, 1, row);
    }
  }
  if (!has_value) {
    row.columns.clear();
    row.values.clear();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RowEncoder::EncodeColumn(const TableReader& table, size_t index, Row& row) {
  const Source& source = sources_[index];
  const ColumnSchema& column = *source.schema;
  if (column.type == ColumnType::kVector) {
    return EncodeVector(table, source, row);
  }
  const absl::string_view cell = table.fields()[source.fields[0]];
  const auto place = source.places.find(cell);  // a declared value is one, also if it is spelled NA
  if (place == source.places.end() && IsMissing(cell)) {
    return false;
  }
  double number = 0;
  bool flag = false;
  switch (column.type) {
    case ColumnType::kNumber:
      if (!ParseNumber(cell, table.separator(), number)) {
        return table.RefuseColumn(column.name,
                                  absl::StrCat(ShownCell(cell), " is text; expected a number such as 1234.5"));
      }
      EncodePosition(source, number, index, row);
      return true;
    case ColumnType::kDate:
      if (!ParseDate(cell, number)) {
        return table.RefuseColumn(column.name,
                                  absl::StrCat(ShownCell(cell), " is not a date; expected one such as 2024-12-31"));
      }
      EncodePosition(source, number, index, row);
      return true;
    case ColumnType::kCategory:
      place != source.places.end() ? Add(source.first + place->second, 1, row) : AddOther(source, index, row);
      return true;
    case ColumnType::kFlag:
      ParseFlag(cell, flag) ? Add(source.first + (flag ? 0 : 1), 1, row) : AddOther(source, index, row);
      return true;
    default:
      EncodeWords(cell, source, index, row);
      return true;
  }
}

void RowEncoder::AddOther(const Source& source, size_t index, Row& row) {
  Add(source.first + static_cast<int32_t>(source.schema->value_places()), 1, row);
  row.others.push_back(index);
}

void RowEncoder::EncodePosition(const Source& source, double value, size_t index, Row& row) const {
  const ColumnSchema& column = *source.schema;
  if (!(value >= column.low && value <= column.high)) {
    AddOther(source, index, row);
    return;
  }
  const double knot = std::clamp(Position(column, value), 0.0, 1.0) * (kNumberKnots - 1);
  const double below = std::min(std::floor(knot), static_cast<double>(kNumberKnots - 2));
  const auto share = static_cast<float>(knot - below);
  Add(source.first + static_cast<int32_t>(below), static_cast<double>(1.0F - share), row);
  Add(source.first + static_cast<int32_t>(below) + 1, static_cast<double>(share), row);
}

absl::Status RowEncoder::ReadBracketed(const TableReader& table, const Source& source) {
  const ColumnSchema& column = *source.schema;
  absl::string_view cell = table.fields()[source.fields[0]];
  const auto wrong = [&](absl::string_view what) {
    return table.RefuseColumn(
        column.name, absl::StrCat(what, "; expected ", column.width, " numbers in brackets, such as [0.5, -1.25]"));
  };
  if (cell.size() < 2 || cell.front() != '[' || cell.back() != ']') {
    return wrong(absl::StrCat(ShownCell(cell), " is not in brackets"));
  }
  cell = cell.substr(1, cell.size() - 2);
  constexpr absl::string_view kBetween = " ,;\t\r\n";
  size_t at = cell.find_first_not_of(kBetween);
  while (at != absl::string_view::npos) {
    const size_t stop = std::min(cell.find_first_of(kBetween, at), cell.size());
    double value = 0;
    if (!ParseNumber(cell.substr(at, stop - at), ',', value)) {
      return wrong(absl::StrCat(ShownCell(cell.substr(at, stop - at)), " is not a number"));
    }
    vector_.push_back(value);
    at = cell.find_first_not_of(kBetween, stop);
  }
  return static_cast<int64_t>(vector_.size()) == column.width ? absl::OkStatus()
                                                              : wrong(absl::StrCat(vector_.size(), " numbers"));
}

absl::StatusOr<bool> RowEncoder::EncodeVector(const TableReader& table, const Source& source, Row& row) {
  vector_.clear();
  const ColumnSchema& column = *source.schema;
  if (std::any_of(source.fields.begin(), source.fields.end(),
                  [&](size_t field) { return IsMissing(table.fields()[field]); })) {
    return false;  // a direction needs all of its entries
  }
  if (column.parts.empty()) {
    DPAR_RETURN_IF_ERROR(ReadBracketed(table, source));
  }
  for (size_t i = 0; i < column.parts.size(); ++i) {
    const absl::string_view cell = table.fields()[source.fields[i]];
    double value = 0;
    if (!ParseNumber(cell, table.separator(), value)) {
      return table.RefuseColumn(column.parts[i], absl::StrCat(ShownCell(cell), " is not a number"));
    }
    vector_.push_back(value);
  }
  const double largest = std::fabs(*std::max_element(vector_.begin(), vector_.end(),
                                                     [](double a, double b) { return std::fabs(a) < std::fabs(b); }));
  double square = 0;
  for (double& value : vector_) {
    value = largest > 0 ? value / largest : 0;  // so that no square overflows
    square += value * value;
  }
  for (size_t i = 0; i < vector_.size() && square > 0; ++i) {
    Add(source.first + static_cast<int32_t>(i),
        static_cast<double>(static_cast<float>(std::copysign(vector_[i] * vector_[i] / square, vector_[i]))), row);
  }
  return true;
}

void RowEncoder::EncodeWords(absl::string_view text, const Source& source, size_t index, Row& row) {
  words_.clear();
  const auto width = static_cast<uint64_t>(source.schema->width);
  for (size_t at = 0; at < text.size() && static_cast<int64_t>(words_.size()) < kMaxTextWords; ++at) {
    word_.clear();
    for (; at < text.size() && IsWordByte(text[at]); ++at) {
      word_ += absl::ascii_tolower(static_cast<unsigned char>(text[at]));
    }
    if (!word_.empty()) {
      words_.push_back(static_cast<int32_t>(XXH64(word_.data(), word_.size(), /*seed=*/0) % width));
    }
  }
  if (words_.empty()) {
    AddOther(source, index, row);
    return;
  }
  std::sort(words_.begin(), words_.end());
  const auto words = static_cast<int64_t>(words_.size());
  const double weight = static_cast<double>(std::min(words, kMaxTextWeight)) / static_cast<double>(words);
  for (auto word = words_.begin(); word != words_.end();) {
    const auto next = std::upper_bound(word, words_.end(), *word);
    Add(source.first + *word, weight * static_cast<double>(next - word), row);
    word = next;
  }
}

}  // namespace dpar
