#include "core/table/draft.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/plain_text.h"
#include "core/status_macros.h"
#include "core/strict_json.h"
#include "core/table/id_index.h"
#include "core/table/row_encoder.h"
#include "core/table/table_meter.h"

namespace dpar {
namespace {

constexpr size_t kMaxCategories = 50;  // more are text or left out
constexpr size_t kMaxClasses = 20;
constexpr size_t kMaxNameBytes = 128;  // of a declared value
constexpr int64_t kTextWidth = 256;
constexpr size_t kLeastVectorColumns = 4;
constexpr size_t kMostVectorColumns = 10'000;
constexpr int64_t kMostVectorEntries = 16'384;
constexpr double kLogRatio = 1000;       // of the ends of a range that suggests a log scale
constexpr double kMostMagnitude = 1e15;  // of a range's ends
constexpr double kMargin = 0.1;          // of what was seen, that a range adds at each end
constexpr size_t kSample = 1024;         // cells that tell whether a column's values repeat
constexpr int64_t kLeastIdentifiers = 20;
constexpr double kWide = 1e5;  // between the ends of integers that may be identifiers

// The entries of a vector in brackets, separated as RowEncoder reads them; 0 if it is not one.
int64_t CountEntries(absl::string_view cell) {
  if (cell.size() < 2 || cell.front() != '[' || cell.back() != ']') {
    return 0;
  }
  int64_t entries = 0;
  double number = 0;
  for (const absl::string_view entry :
       absl::StrSplit(cell.substr(1, cell.size() - 2), absl::ByAnyChar(" ,;\t\r\n"), absl::SkipEmpty())) {
    if (!ParseNumber(entry, ',', number)) {
      return 0;
    }
    ++entries;
  }
  return entries <= kMostVectorEntries ? entries : 0;
}

// What the cells of one column look like.
struct Column {
  std::string name;
  int64_t present = 0;
  bool can_be_id = true;
  bool numbers = true;
  bool integers = true;
  bool dates = true;
  bool flags = true;
  bool nameable = true;  // every cell can be a declared value
  int64_t words = 0;
  int64_t entries = 0;  // of each bracketed cell; 0: not all are, or they differ
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  std::set<std::string> values;        // at most kMaxCategories + 1
  absl::flat_hash_set<size_t> sample;  // hashes of the first cells
  int64_t sampled = 0;

  void Add(absl::string_view cell, char separator) {
    can_be_id = can_be_id && !cell.empty() && cell.size() <= kMaxNodeIdBytes;
    if (IsMissing(cell)) {
      return;
    }
    ++present;
    AddNumber(cell, separator);
    bool flag = false;
    flags = flags && ParseFlag(cell, flag);
    if (present == 1 || entries > 0) {
      const int64_t count = CountEntries(cell);
      entries = present == 1 || count == entries ? count : 0;
    }
    nameable = nameable && cell.size() <= kMaxNameBytes && IsPlainText(cell);
    if (!nameable) {
      values.clear();
    } else if (values.size() <= kMaxCategories) {
      values.emplace(cell);
    }
    words += 1 + std::count(cell.begin(), cell.end(), ' ');
    AddSample(cell);
  }

  void AddNumber(absl::string_view cell, char separator) {
    double number = 0;
    numbers = numbers && ParseNumber(cell, separator, number);
    integers = numbers && integers && std::floor(number) == number;
    dates = dates && !numbers && ParseDate(cell, number);
    if (numbers || dates) {
      low = std::min(low, number);
      high = std::max(high, number);
    }
  }

  // A measure is not an id, however seldom it repeats.
  void AddSample(absl::string_view cell) {
    if (numbers && !integers) {
      can_be_id = false;
      sample = {};
    } else if (sampled < static_cast<int64_t>(kSample)) {
      ++sampled;
      sample.insert(absl::HashOf(cell));
      can_be_id = can_be_id && static_cast<int64_t>(sample.size()) == sampled;
    }
  }

  [[nodiscard]] bool IsCategory() const { return !values.empty() && values.size() <= kMaxCategories; }
  // Whether it has so few values that each is that of a group, not of a row.
  [[nodiscard]] bool CanBeLabel(size_t most) const { return values.size() >= 2 && values.size() <= most; }
  [[nodiscard]] bool Repeats() const { return 2 * static_cast<int64_t>(values.size()) <= present; }
  // Integers that nearly never repeat and are far apart, as phone numbers, or dense, as row numbers.
  [[nodiscard]] bool LooksLikeIdentifiers() const {
    const double span = high - low;
    return integers && present >= kLeastIdentifiers && 50 * static_cast<int64_t>(sample.size()) >= 49 * sampled &&
           (span >= kWide || span < 2 * static_cast<double>(present));
  }
};

// A text as a YAML scalar, which is also one of JSON.
std::string Scalar(const std::string& text) { return Json(text).dump(); }

std::string List(const std::set<std::string>& values) {
  std::vector<std::string> scalars;
  scalars.reserve(values.size());
  for (const std::string& value : values) {
    scalars.push_back(Scalar(value));
  }
  return absl::StrCat("[", absl::StrJoin(scalars, ", "), "]");
}

// A number as people write it, which YAML reads as the same.
std::string Figure(double value) {
  return std::fabs(value) < kMostMagnitude && std::floor(value) == value ? absl::StrCat(static_cast<int64_t>(value))
                                                                         : absl::StrCat(value);
}

struct Range {
  double low;
  double high;
};

// Holds what was seen and a margin, with ends of one or two digits: the least and the largest value are a person's.
Range RoundedRange(const Column& column) {
  const auto power = [](double value) { return std::pow(10, std::floor(std::log10(value))); };
  const double span = column.high - column.low;
  const double largest = std::max(std::fabs(column.low), std::fabs(column.high));
  const double step = std::max(span > 0 ? power(span) : 0, largest > 0 ? power(largest) / 10 : 1);
  double low = std::floor((column.low - kMargin * span) / step) * step;
  double high = std::ceil((column.high + kMargin * span) / step) * step;
  if (column.low >= 0) {
    low = std::max(low, 0.0);
  }
  if (column.high <= 0) {
    high = std::min(high, 0.0);
  }
  return {low, low < high ? high : low + step};
}

// Whole years.
std::string FirstDay(double days) { return absl::StrCat(FormatDate(days).substr(0, 4), "-01-01"); }
std::string LastDay(double days) { return absl::StrCat(FormatDate(days).substr(0, 4), "-12-31"); }

class Draft {
 public:
  Draft(const TableFiles& files, const DraftOptions& options, const TableProgress& progress)
      : files_(files), options_(options), progress_(progress) {}

  absl::StatusOr<SchemaDraft> Run() {
    DPAR_RETURN_IF_ERROR(ReadColumns());
    DPAR_RETURN_IF_ERROR(ChooseId());
    DPAR_RETURN_IF_ERROR(ChooseLabel());
    DPAR_RETURN_IF_ERROR(ReadEdges());
    Write();
    const absl::StatusOr<TableSchema> schema = ParseSchema(draft_.yaml);
    if (!schema.ok()) {
      return Refuse(
          absl::StrCat("no schema can be drafted; leave columns out, or write one by hand. The draft's fault: ",
                       schema.status().message()));
    }
    return std::move(draft_);
  }

 private:
  // Of the node table.
  [[nodiscard]] absl::Status Refuse(absl::string_view fault) const {
    DPAR_ASSIGN_OR_RETURN(const TableReader table, TableReader::Open(files_.nodes));
    return table.Refuse(fault);
  }

  absl::Status ReadColumns() {
    DPAR_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(files_.nodes));
    for (const std::string& name : table.header()) {
      columns_.emplace_back().name = name;
    }
    TableMeter meter(progress_, "nodes");
    int64_t rows = 0;
    while (true) {
      DPAR_ASSIGN_OR_RETURN(const bool found, table.Next());
      if (!found) {
        break;
      }
      DPAR_RETURN_IF_ERROR(meter.Count(table));
      ++rows;
      for (size_t i = 0; i < columns_.size(); ++i) {
        columns_[i].Add(table.fields()[i], table.separator());
      }
    }
    DPAR_RETURN_IF_ERROR(meter.Finish());
    return rows > 0 ? absl::OkStatus() : table.Refuse("the table has a header and no row");
  }

  [[nodiscard]] absl::StatusOr<size_t> Named(const std::string& name) const {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].name == name) {
        return i;
      }
    }
    return Refuse(absl::StrCat("no column is named '", name, "'"));
  }

  // Whether each row has a value of its own, whose index ids_ then is. One column at a time: an index is large.
  absl::StatusOr<bool> ReadIds(size_t column) {
    DPAR_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(files_.nodes));
    TableMeter meter(progress_, "ids");
    ids_ = IdIndex();
    while (true) {
      DPAR_ASSIGN_OR_RETURN(const bool found, table.Next());
      if (!found) {
        DPAR_RETURN_IF_ERROR(meter.Finish());
        return true;
      }
      DPAR_RETURN_IF_ERROR(meter.Count(table));
      const absl::string_view cell = table.fields()[column];
      if (cell.empty() || cell.size() > kMaxNodeIdBytes || !ids_.Add(cell).has_value()) {
        return false;
      }
    }
  }

  // The one that was named, or else the first that can be it.
  absl::Status ChooseId() {
    if (!options_.id.empty()) {
      DPAR_ASSIGN_OR_RETURN(id_, Named(options_.id));
      DPAR_ASSIGN_OR_RETURN(const bool can, ReadIds(id_));
      return can ? absl::OkStatus()
                 : Refuse(absl::StrCat("column ", options_.id,
                                       " cannot be the id: it is empty or too long in some row, or has a value twice"));
    }
    for (id_ = 0; id_ < columns_.size(); ++id_) {
      if (columns_[id_].can_be_id && columns_[id_].name != options_.label) {
        DPAR_ASSIGN_OR_RETURN(const bool can, ReadIds(id_));
        if (can) {
          return absl::OkStatus();
        }
      }
    }
    return Refuse(
        "no column can be the id: each is empty in some row, has a value twice or is a measure; --id COLUMN names it");
  }

  absl::Status ChooseLabel() {
    if (options_.label.empty()) {
      label_ = GuessLabel();
      return label_.has_value() ? absl::OkStatus()
                                : Refuse(absl::StrCat("no column is likely to be the label: none has 2 to ",
                                                      kMaxClasses, " values that repeat; --label COLUMN names it"));
    }
    DPAR_ASSIGN_OR_RETURN(label_, Named(options_.label));
    return *label_ != id_ && columns_[*label_].CanBeLabel(kMaxCategories)
               ? absl::OkStatus()
               : Refuse(absl::StrCat("column ", options_.label, " cannot be the label: expected 2 to ", kMaxCategories,
                                     " short values, and not the id"));
  }

  // A column that is called so, or else the last that has few values; flags come after the others.
  [[nodiscard]] std::optional<size_t> GuessLabel() const {
    std::optional<size_t> last;
    std::optional<size_t> last_flag;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      if (i == id_ || !column.CanBeLabel(kMaxClasses) || !column.Repeats()) {
        continue;
      }
      const std::string name = absl::AsciiStrToLower(column.name);
      if (name == "label" || name == "class" || name == "target" || name == "segment") {
        return i;
      }
      (column.flags ? last_flag : last) = i;
    }
    return last.has_value() ? last : last_flag;
  }

  absl::Status ReadEdges() {
    DPAR_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(files_.edges));
    TableMeter meter(progress_, "edges");
    std::vector<int64_t> known(table.header().size(), 0);
    int64_t rows = 0;
    while (true) {
      DPAR_ASSIGN_OR_RETURN(const bool found, table.Next());
      if (!found) {
        break;
      }
      DPAR_RETURN_IF_ERROR(meter.Count(table));
      ++rows;
      for (size_t i = 0; i < known.size(); ++i) {
        known[i] += ids_.Find(table.fields()[i]).has_value() ? 1 : 0;
      }
    }
    DPAR_RETURN_IF_ERROR(meter.Finish());
    for (size_t i = 0; i < known.size(); ++i) {
      if (2 * known[i] > rows && ends_.size() < 2) {
        ends_.push_back(table.header()[i]);
      }
    }
    return ends_.size() == 2
               ? absl::OkStatus()
               : table.Refuse(absl::StrCat("expected two columns with ids of column ", columns_[id_].name,
                                           " of the nodes; fewer hold them in more than half of their rows"));
  }

  std::string Ask(const std::string& column, const std::string& question) {
    draft_.questions.push_back({column, question});
    return absl::StrCat(", question: ", Scalar(question));
  }

  std::string Describe(const Column& column) {
    const std::string& name = column.name;
    if (column.present == 0) {
      return "{type: ignore}  # every cell is empty";
    }
    if (column.flags) {
      return "{type: flag}";
    }
    if (column.LooksLikeIdentifiers()) {
      return absl::StrCat("{type: ignore",
                          Ask(name,
                              "nearly every row has a number of its own, as identifiers do, so it is left out. Declare "
                              "`type: number` with a range that is public knowledge if it is a measure"),
                          "}");
    }
    if (column.numbers) {
      return DescribeNumber(column);
    }
    if (column.dates) {
      const std::string range = absl::StrCat(FirstDay(column.low), " to ", LastDay(column.high));
      return absl::StrCat("{type: date, range: [", absl::StrReplaceAll(range, {{" to ", ", "}}), "]",
                          Ask(name, absl::StrCat(range,
                                                 " holds what was seen. Declare a range that is public knowledge, such "
                                                 "as from the year of foundation to ten years from now")),
                          "}");
    }
    if (column.entries > 0) {
      return absl::StrCat("{type: vector, width: ", column.entries,
                          Ask(name, absl::StrCat(column.entries, " entries seen. Is that the width by construction?")),
                          "}");
    }
    if (column.IsCategory()) {
      return absl::StrCat("{type: category, values: ", List(column.values),
                          Ask(name, absl::StrCat(column.values.size(),
                                                 " values seen. Declare the values that are public knowledge; others "
                                                 "become 'other'")),
                          "}");
    }
    if (column.words > column.present + column.present / 2) {
      return absl::StrCat("{type: text, width: ", kTextWidth, "}");
    }
    return "{type: ignore}  # nearly every row has a value of its own";
  }

  std::string DescribeNumber(const Column& column) {
    const Range range = RoundedRange(column);
    if (std::max(std::fabs(range.low), std::fabs(range.high)) > kMostMagnitude) {
      return absl::StrCat("{type: ignore}  # numbers above ", Figure(kMostMagnitude));
    }
    const bool is_log = column.low >= 0 && column.high > kLogRatio * std::max(column.low, 1.0);
    const std::string low = Figure(range.low);
    const std::string high = Figure(range.high);
    return absl::StrCat(
        "{type: number, range: [", low, ", ", high, "]", is_log ? ", scale: log" : "",
        Ask(column.name,
            absl::StrCat(low, " to ", high, " holds what was seen. Declare a range that is public knowledge")),
        "}");
  }

  // Runs of number columns that differ by a number at the end of their names, from 0 or 1 on.
  [[nodiscard]] size_t VectorAt(size_t first, std::string& prefix) const {
    const auto parts = [this](size_t i, std::string& text, int64_t& number) {
      const std::string& name = columns_[i].name;
      const size_t digits = name.find_last_not_of("0123456789") + 1;
      text = name.substr(0, digits);
      return i != id_ && i != label_ && columns_[i].numbers && digits > 0 && digits < name.size() &&
             absl::SimpleAtoi(name.substr(digits), &number);
    };
    int64_t start = 0;
    size_t count = 0;
    if (!parts(first, prefix, start) || start > 1) {
      return 0;
    }
    std::string text = prefix;
    int64_t number = start;
    while (count < kMostVectorColumns && text == prefix && number == start + static_cast<int64_t>(count)) {
      ++count;
      if (first + count == columns_.size() || !parts(first + count, text, number)) {
        break;
      }
    }
    return count >= kLeastVectorColumns ? count : 0;
  }

  // What a vector of columns is called: the beginning of their names, made unlike any other name.
  std::string VectorName(const std::string& prefix) {
    std::string name(absl::StripAsciiWhitespace(prefix));
    while (name.empty() || taken_.contains(name)) {
      name += "_";
    }
    taken_.insert(name);
    return name;
  }

  void Write() {
    for (const Column& column : columns_) {
      taken_.insert(column.name);
    }
    const Column& label = columns_[*label_];
    std::string text = absl::StrCat(
        "# A draft by dpar graph schema. Each `question` marks what was read off the data: declare what is public\n"
        "# knowledge instead, and delete the question. docs/your-data.md says why.\n"
        "nodes:\n  id: ",
        Scalar(columns_[id_].name), "\n  label: {column: ", Scalar(label.name), ", classes: ", List(label.values),
        Ask(label.name, absl::StrCat("is this what to predict? ", label.values.size(),
                                     " classes seen. Declare all that there are, by public knowledge")),
        "}\n  columns:\n");
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i == id_ || i == label_) {
        continue;
      }
      std::string prefix;
      if (const size_t count = VectorAt(i, prefix); count > 0) {
        std::vector<std::string> names;
        for (size_t part = i; part < i + count; ++part) {
          names.push_back(Scalar(columns_[part].name));
        }
        absl::StrAppend(&text, "    ", Scalar(VectorName(prefix)), ": {type: vector, columns: [",
                        absl::StrJoin(names, ", "), "]}\n");
        i += count - 1;
        continue;
      }
      absl::StrAppend(&text, "    ", Scalar(columns_[i].name), ": ", Describe(columns_[i]), "\n");
    }
    absl::StrAppend(&text, "edges: {source: ", Scalar(ends_[0]), ", target: ", Scalar(ends_[1]), "}\n");
    draft_.yaml = std::move(text);
  }

  const TableFiles& files_;
  const DraftOptions& options_;
  const TableProgress& progress_;
  std::vector<Column> columns_;
  IdIndex ids_;
  size_t id_ = 0;
  std::optional<size_t> label_;
  std::vector<std::string> ends_;
  std::set<std::string> taken_;  // names of columns and of vectors
  SchemaDraft draft_;
};

}  // namespace

absl::StatusOr<SchemaDraft> DraftSchema(const TableFiles& files, const DraftOptions& options,
                                        const TableProgress& progress) {
  return Draft(files, options, progress).Run();
}

}  // namespace dpar
