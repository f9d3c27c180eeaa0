// JSON as text, written from left to right: the same bytes as a tree of nlohmann::json gives, without the tree.
#ifndef DPAR_CORE_JSON_TEXT_H_
#define DPAR_CORE_JSON_TEXT_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace dpar {

// Compact, and UTF-8 where what is written is; other bytes are replaced. Whoever calls opens and closes objects and
// lists in their order, and gives every value of an object a key.
class JsonText {
 public:
  // Makes room for so many characters at once.
  void Reserve(size_t characters) { text_.reserve(characters); }

  void BeginObject() { Begin('{'); }
  void EndObject() { text_.push_back('}'); }
  void BeginList() { Begin('['); }
  void EndList() { text_.push_back(']'); }

  // The key of the value that follows. Nothing in it may need escaping.
  void Key(absl::string_view key);

  void Value(absl::string_view text);
  void Value(const char* text) { Value(absl::string_view(text)); }
  void Value(const std::string& text) { Value(absl::string_view(text)); }
  void Value(std::nullptr_t null);
  void Value(std::same_as<bool> auto truth) { Append(truth ? "true" : "false"); }
  void Value(std::signed_integral auto number) { AppendInteger(number); }
  // Comes back as the same bits; null unless finite. No other type is taken for one.
  void Value(std::same_as<double> auto number) { AppendReal(number); }

  template <typename T>
  void Add(absl::string_view key, const T& value) {
    Key(key);
    Value(value);
  }

  std::string Take() { return std::move(text_); }

 private:
  void Begin(char bracket);
  void Append(absl::string_view value);
  void AppendInteger(int64_t number);
  void AppendReal(double number);
  // Before a value or a key, unless it is the first of its object or list.
  void Separate();

  std::string text_;
};

}  // namespace dpar

#endif  // DPAR_CORE_JSON_TEXT_H_
