#include "core/graph/npy.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/graph/graph_error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr size_t kMaxRank = 8;
constexpr size_t kMaxWidthDigits = 9;
constexpr size_t kMaxShapeDigits = 18;  // so that a dimension always fits int64

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads the dictionary literal. Each Take function consumes what it names, or leaves the cursor and gives nothing.
class Cursor {
 public:
  explicit Cursor(absl::string_view text) : text_(text) {}

  bool TakeSymbol(char symbol) {
    SkipSpace();
    if (text_.empty() || text_.front() != symbol) {
      return false;
    }
    text_.remove_prefix(1);
    return true;
  }

  bool TakeWord(absl::string_view word) {
    SkipSpace();
    if (text_.substr(0, word.size()) != word) {
      return false;
    }
    text_.remove_prefix(word.size());
    return true;
  }

  std::optional<std::string> TakeString() {
    SkipSpace();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) {
      return std::nullopt;
    }
    const size_t end = text_.find(text_.front(), 1);
    if (end == absl::string_view::npos) {
      return std::nullopt;
    }
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }

  std::optional<int64_t> TakeDimension() {
    SkipSpace();
    size_t digits = 0;
    while (digits < text_.size() && IsDigit(text_[digits])) {
      ++digits;
    }
    int64_t value = 0;
    if (digits == 0 || digits > kMaxShapeDigits || !absl::SimpleAtoi(text_.substr(0, digits), &value)) {
      return std::nullopt;
    }
    text_.remove_prefix(digits);
    if (!text_.empty() && text_.front() == 'L') {  // Python 2 wrote long integers so
      text_.remove_prefix(1);
    }
    return value;
  }

  bool AtEnd() {
    SkipSpace();
    return text_.empty();
  }

 private:
  void SkipSpace() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n' || text_.front() == '\t')) {
      text_.remove_prefix(1);
    }
  }

  absl::string_view text_;
};

std::optional<std::vector<int64_t>> TakeShape(Cursor& cursor) {
  std::vector<int64_t> shape;
  if (!cursor.TakeSymbol('(')) {
    return std::nullopt;
  }
  while (!cursor.TakeSymbol(')')) {
    const std::optional<int64_t> dimension = cursor.TakeDimension();
    if (!dimension.has_value() || shape.size() == kMaxRank) {
      return std::nullopt;
    }
    shape.push_back(*dimension);
    if (!cursor.TakeSymbol(',')) {
      if (!cursor.TakeSymbol(')')) {
        return std::nullopt;
      }
      break;
    }
  }
  return shape;
}

struct Dictionary {
  std::set<std::string> keys;
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

template <typename Value>
bool Store(std::optional<Value> value, Value& target) {
  if (!value.has_value()) {
    return false;
  }
  target = *std::move(value);
  return true;
}

// One `key: value`. False on a syntax error, an unknown key or a repeated one.
bool TakeItem(Cursor& cursor, Dictionary& dictionary) {
  const std::optional<std::string> key = cursor.TakeString();
  if (!key.has_value() || !cursor.TakeSymbol(':') || !dictionary.keys.insert(*key).second) {
    return false;
  }
  if (*key == "descr") {
    return Store(cursor.TakeString(), dictionary.descr);
  }
  if (*key == "shape") {
    return Store(TakeShape(cursor), dictionary.shape);
  }
  if (*key == "fortran_order") {
    dictionary.fortran_order = cursor.TakeWord("True");
    return dictionary.fortran_order || cursor.TakeWord("False");
  }
  return false;
}

absl::StatusOr<Dictionary> ParseDictionary(absl::string_view array, absl::string_view text) {
  Cursor cursor(text);
  Dictionary dictionary;
  const auto malformed = [&] {
    return GraphError(array, "has a malformed header; expected descr (one plain type), fortran_order and shape");
  };
  if (!cursor.TakeSymbol('{')) {
    return malformed();
  }
  while (!cursor.TakeSymbol('}')) {
    if (!TakeItem(cursor, dictionary)) {
      return malformed();
    }
    if (!cursor.TakeSymbol(',')) {
      if (!cursor.TakeSymbol('}')) {
        return malformed();
      }
      break;
    }
  }
  const bool complete = dictionary.keys.size() == 3 && cursor.AtEnd();  // unknown keys did not get here
  if (!complete) {
    return malformed();
  }
  return dictionary;
}

std::optional<NpyKind> KindOf(char symbol, int64_t width) {
  const bool integer_width = width == 1 || width == 2 || width == 4 || width == 8;
  switch (symbol) {
    case 'i':
      return integer_width ? std::optional(NpyKind::kSigned) : std::nullopt;
    case 'u':
      return integer_width ? std::optional(NpyKind::kUnsigned) : std::nullopt;
    case 'f':
      return width == 4 || width == 8 ? std::optional(NpyKind::kFloat) : std::nullopt;
    case 'b':
      return width == 1 ? std::optional(NpyKind::kBool) : std::nullopt;
    case 'U':
      return NpyKind::kUtf32Text;
    case 'S':
      return NpyKind::kByteText;
    default:
      return std::nullopt;
  }
}

absl::Status ParseType(absl::string_view array, absl::string_view descr, NpyHeader& header) {
  char order = '|';
  if (!descr.empty() && (descr.front() == '<' || descr.front() == '>' || descr.front() == '|')) {
    order = descr.front();
    descr.remove_prefix(1);
  }
  if (!descr.empty() && descr.front() == 'O') {
    return GraphError(array, "is an object array; objects are never unpickled. Save it as an array of numbers");
  }
  int64_t width = 0;
  const bool width_is_number = descr.size() > 1 && descr.size() <= kMaxWidthDigits + 1 &&
                               std::all_of(descr.begin() + 1, descr.end(), IsDigit) &&
                               absl::SimpleAtoi(descr.substr(1), &width);
  const std::optional<NpyKind> kind = width_is_number ? KindOf(descr.front(), width) : std::nullopt;
  if (!kind.has_value()) {
    return GraphError(array, "has an unsupported type; use integers, float32 or float64");
  }
  header.kind = *kind;
  header.item_bytes = *kind == NpyKind::kUtf32Text ? width * 4 : width;
  if (order == '>' && *kind != NpyKind::kByteText && header.item_bytes > 1) {
    return GraphError(array, "is big-endian; save it in little-endian order");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view array, absl::string_view dictionary) {
  DPAR_ASSIGN_OR_RETURN(Dictionary parsed, ParseDictionary(array, dictionary));
  NpyHeader header;
  DPAR_RETURN_IF_ERROR(ParseType(array, parsed.descr, header));
  header.shape = std::move(parsed.shape);
  if (parsed.fortran_order && header.shape.size() > 1) {
    return GraphError(array, "is in Fortran order; save it in C order");
  }
  const bool is_text = header.kind == NpyKind::kUtf32Text || header.kind == NpyKind::kByteText;
  if (is_text && header.shape.size() > (header.kind == NpyKind::kByteText ? 1 : 0)) {
    return GraphError(array, "is an array of text; expected numbers, or byte strings (dtype 'S') of rank 1");
  }
  int64_t bytes = 0;
  for (const int64_t dimension : header.shape) {
    if (__builtin_mul_overflow(header.count, dimension, &header.count)) {
      return GraphError(array, "has a shape whose size overflows");
    }
  }
  if (__builtin_mul_overflow(header.count, header.item_bytes, &bytes)) {
    return GraphError(array, "has a shape whose size overflows");
  }
  return header;
}

std::string MakeNpyHeader(absl::string_view descr, const std::vector<int64_t>& shape) {
  constexpr size_t kPreambleBytes = 10;
  constexpr size_t kAlignment = 64;
  std::string dictionary = absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (");
  for (const int64_t dimension : shape) {
    absl::StrAppend(&dictionary, dimension, shape.size() == 1 ? "," : ", ");
  }
  if (shape.size() > 1) {
    dictionary.resize(dictionary.size() - 2);
  }
  dictionary += "), }";
  const size_t unpadded = kPreambleBytes + dictionary.size() + 1;
  dictionary.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  dictionary += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dictionary.size() & 0xff);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

}  // namespace dpar
