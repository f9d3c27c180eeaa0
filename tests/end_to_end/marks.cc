#include "tests/end_to_end/marks.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/certificate/digest.h"

namespace dpar::e2e {

void Marks::AddBytes(const std::string& bytes) {
  AddText(bytes);
  AddText(absl::BytesToHexString(bytes));
  AddText(absl::AsciiStrToUpper(absl::BytesToHexString(bytes)));
  // Three bytes are four digits: without the first none, one or two, whole groups look the same wherever they stand.
  for (size_t skipped = 0; skipped < 3; ++skipped) {
    const size_t length = (bytes.size() - skipped) / 3 * 3;
    AddText(absl::Base64Escape(bytes.substr(skipped, length)));
    AddText(absl::WebSafeBase64Escape(bytes.substr(skipped, length)));
  }
}

void Marks::AddHex(const std::string& digits) {
  AddText(digits);
  AddBytes(HexDecode(digits).value());
}

std::vector<std::string> Marks::FindIn(absl::string_view text) const {
  std::vector<std::string> found;
  for (const std::string& mark : texts_) {
    if (text.find(mark) != absl::string_view::npos) found.push_back(absl::CHexEscape(mark));
  }
  const auto in_word = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.'; };
  for (size_t start = 0; start < text.size();) {
    size_t end = start;
    while (end < text.size() && in_word(text[end])) ++end;
    absl::string_view word = text.substr(start, end - start);
    while (!word.empty() && word.back() == '.') word.remove_suffix(1);  // the end of a sentence
    if (numbers_.contains(std::string(word))) found.emplace_back(word);
    start = end + 1;
  }
  return found;
}

}  // namespace dpar::e2e
