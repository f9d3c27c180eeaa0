#include "core/json_text.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace dpar {
namespace {

// Whether it stands for itself. What is not ASCII may not be UTF-8.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> plain{};
  for (size_t c = ' '; c <= '~'; ++c) {
    plain.at(c) = c != '"' && c != '\\';
  }
  return plain;
}();
bool IsPlain(char c) { return kPlain[static_cast<unsigned char>(c)]; }

}  // namespace

void JsonText::Separate() {
  if (!text_.empty() && text_.back() != '{' && text_.back() != '[' && text_.back() != ':') {
    text_.push_back(',');
  }
}

void JsonText::Begin(char bracket) {
  Separate();
  text_.push_back(bracket);
}

void JsonText::Append(absl::string_view value) {
  Separate();
  absl::StrAppend(&text_, value);
}

void JsonText::AppendInteger(int64_t number) {
  Separate();
  absl::StrAppend(&text_, number);
}

void JsonText::Key(absl::string_view key) {
  Separate();
  absl::StrAppend(&text_, "\"", key, "\":");
}

void JsonText::Value(absl::string_view text) {
  Separate();
  const size_t start = text_.size();
  text_.push_back('"');
  for (absl::string_view rest = text; !rest.empty();) {
    const auto plain = static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), IsPlain) - rest.begin());
    text_.append(rest.data(), plain);
    rest.remove_prefix(plain);
    if (rest.empty()) {
      break;
    }
    if (rest.front() != '"' && rest.front() != '\\') {  // what is rare is left to the tree
      text_.resize(start);
      text_ += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      return;
    }
    text_.push_back('\\');
    text_.push_back(rest.front());
    rest.remove_prefix(1);
  }
  text_.push_back('"');
}

void JsonText::AppendReal(double number) { Append(nlohmann::json(number).dump()); }

void JsonText::Value(std::nullptr_t /*null*/) { Append("null"); }

}  // namespace dpar
