#include "core/plain_text.h"

namespace dpar {

bool IsPlainText(absl::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f || text.substr(i, 2) == "\u061C") {
      return false;
    }
    const absl::string_view three = text.substr(i, 3);
    if (three == "\u200E" || three == "\u200F" || (three >= "\u202A" && three <= "\u202E") ||
        (three >= "\u2066" && three <= "\u2069")) {
      return false;
    }
  }
  return true;
}

}  // namespace dpar
