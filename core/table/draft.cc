#include "core/table/draft.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status_macros.h"
#include "core/strict_json.h"
#include "core/table/id_index.h"
#include "core/table/row_encoder.h"

namespace dpar {
namespace {

constexpr size_t kMaxCategories = 50;  // more are text or left out
constexpr size_t kMaxClasses = 20;
constexpr int64_t kTextWidth = 256;
constexpr size_t kLeastVectorColumns = 4;
constexpr double kLogRatio = 1000;  // of the ends of a range that suggests a log scale

// What the cells of one column look like.
struct Column {
  std::string name;
  int64_t present = 0;
  bool numbers = true;
  bool dates = true;
  bool flags = true;
  bool brackets = true;
  int64_t words = 0;
  int64_t entries = 0;  // of the first bracketed cell
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  std::set<std::string> values;  // at most kMaxCategories + 1

  void Add(absl::string_view cell, char separator) {
    if (IsMissing(cell)) {
      return;
    }
    ++present;
    double number = 0;
    bool flag = false;
    if (numbers && ParseNumber(cell, separator, number)) {
      low = std::min(low, number);
      high = std::max(high, number);
    } else {
      numbers = false;
    }
    if (dates && ParseDate(cell, number)) {
      low = std::min(low, number);
      high = std::max(high, number);
    } else {
      dates = false;
    }
    flags = flags && ParseFlag(cell, flag);
    brackets = brackets && cell.size() > 1 && cell.front() == '[' && cell.back() == ']';
    if (present == 1 && brackets) {
      entries = 1 + std::count(cell.begin(), cell.end(), ',');
    }
    if (values.size() <= kMaxCategories) {
      values.emplace(cell);
    }
    words += 1 + std::count(cell.begin(), cell.end(), ' ');
  }

  [[nodiscard]] bool IsCategory() const { return !values.empty() && values.size() <= kMaxCategories; }
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

// 1, 2 or 5 times a power of ten, not below `value`.
double RoundUp(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * power >= value) {
      return step * power;
    }
  }
  return 10 * power;
}

std::string SuggestedRange(const Column& column) {
  const double low = column.low >= 0 ? 0 : -RoundUp(-1.2 * column.low);
  const double high = column.high <= 0 ? 0 : RoundUp(1.2 * column.high);
  return absl::StrCat(low, " to ", low < high ? high : low + 1);
}

class Draft {
 public:
  explicit Draft(const TableFiles& files) : files_(files) {}

  absl::StatusOr<SchemaDraft> Run() {
    DPAR_RETURN_IF_ERROR(ReadNodes());
    DPAR_RETURN_IF_ERROR(ReadEdges());
    Write();
    return std::move(draft_);
  }

 private:
  absl::Status ReadNodes() {
    DPAR_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(files_.nodes));
    for (const std::string& name : table.header()) {
      columns_.emplace_back().name = name;
    }
    std::vector<IdIndex> ids(columns_.size());
    std::vector<bool> distinct(columns_.size(), true);
    while (true) {
      DPAR_ASSIGN_OR_RETURN(const bool found, table.Next());
      if (!found) {
        break;
      }
      for (size_t i = 0; i < columns_.size(); ++i) {
        const absl::string_view cell = table.fields()[i];
        columns_[i].Add(cell, table.separator());
        if (distinct[i] && (cell.empty() || cell.size() > kMaxNodeIdBytes || !ids[i].Add(cell).has_value())) {
          distinct[i] = false;
          ids[i] = IdIndex();
        }
      }
    }
    const auto id = std::find(distinct.begin(), distinct.end(), true);
    if (id == distinct.end() || columns_[0].present == 0) {
      return table.Refuse("no column can be the id: each is empty in some row or has a value twice");
    }
    id_ = static_cast<size_t>(id - distinct.begin());
    ids_ = std::move(ids[id_]);
    label_ = GuessLabel();
    return label_.has_value() ? absl::OkStatus() : table.Refuse("no column can be the label: none has 2 to 20 values");
  }

  // A column that is called so, or else the last that has few values.
  [[nodiscard]] std::optional<size_t> GuessLabel() const {
    std::optional<size_t> last;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      if (i == id_ || column.values.size() < 2 || column.values.size() > kMaxClasses) {
        continue;
      }
      const std::string name = absl::AsciiStrToLower(column.name);
      if (name == "label" || name == "class" || name == "target" || name == "segment") {
        return i;
      }
      last = column.flags ? last : std::optional(i);
    }
    return last;
  }

  absl::Status ReadEdges() {
    DPAR_ASSIGN_OR_RETURN(TableReader table, TableReader::Open(files_.edges));
    std::vector<int64_t> known(table.header().size(), 0);
    int64_t rows = 0;
    while (true) {
      DPAR_ASSIGN_OR_RETURN(const bool found, table.Next());
      if (!found) {
        break;
      }
      ++rows;
      for (size_t i = 0; i < known.size(); ++i) {
        known[i] += ids_.Find(table.fields()[i]).has_value() ? 1 : 0;
      }
    }
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
    if (column.numbers) {
      const bool is_log = column.low >= 0 && column.high > kLogRatio * std::max(column.low, 1.0);
      const double high = column.high > column.low ? column.high : column.low + 1;
      return absl::StrCat(
          "{type: number, range: [", Json(column.low).dump(), ", ", Json(high).dump(), "]",
          is_log ? ", scale: log" : "",
          Ask(name, absl::StrCat(column.low, " to ", column.high,
                                 " seen. Declare a range that is public knowledge, such as ", SuggestedRange(column))),
          "}");
    }
    if (column.dates) {
      return absl::StrCat("{type: date, range: [", FormatDate(column.low), ", ",
                          FormatDate(std::max(column.high, column.low + 1)), "]",
                          Ask(name, absl::StrCat(FormatDate(column.low), " to ", FormatDate(column.high),
                                                 " seen. Declare a range that is public knowledge, such as from the "
                                                 "year of foundation to ten years from now")),
                          "}");
    }
    if (column.brackets) {
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
    while (text == prefix && number == start + static_cast<int64_t>(count)) {
      ++count;
      if (first + count == columns_.size() || !parts(first + count, text, number)) {
        break;
      }
    }
    return count >= kLeastVectorColumns ? count : 0;
  }

  void Write() {
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
        absl::StrAppend(&text, "    ", Scalar(prefix), ": {type: vector, columns: [", absl::StrJoin(names, ", "),
                        "]}\n");
        i += count - 1;
        continue;
      }
      absl::StrAppend(&text, "    ", Scalar(columns_[i].name), ": ", Describe(columns_[i]), "\n");
    }
    absl::StrAppend(&text, "edges: {source: ", Scalar(ends_[0]), ", target: ", Scalar(ends_[1]), "}\n");
    draft_.yaml = std::move(text);
  }

  const TableFiles& files_;
  std::vector<Column> columns_;
  IdIndex ids_;
  size_t id_ = 0;
  std::optional<size_t> label_;
  std::vector<std::string> ends_;
  SchemaDraft draft_;
};

}  // namespace

absl::StatusOr<SchemaDraft> DraftSchema(const TableFiles& files) { return Draft(files).Run(); }

}  // namespace dpar
