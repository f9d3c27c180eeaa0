#include "core/table/utf8.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace dpar {
namespace {

// Bytes of the character at the start of `text`, which is not ASCII; 0 if it is not well-formed.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [text](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto follows = [&](size_t i, uint8_t low, uint8_t high) { return byte(i) >= low && byte(i) <= high; };
  const uint8_t first = byte(0);
  if (first >= 0xc2 && first <= 0xdf) {
    return follows(1, 0x80, 0xbf) ? 2 : 0;
  }
  if (first >= 0xe0 && first <= 0xef) {
    const uint8_t low = first == 0xe0 ? 0xa0 : 0x80;
    const uint8_t high = first == 0xed ? 0x9f : 0xbf;
    return follows(1, low, high) && follows(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const uint8_t low = first == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xf4 ? 0x8f : 0xbf;
    return follows(1, low, high) && follows(2, 0x80, 0xbf) && follows(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t at = 0;
  while (at < text.size()) {
    uint64_t word = kHighBits;
    if (at + sizeof(word) <= text.size()) {
      std::memcpy(&word, text.data() + at, sizeof(word));
    }
    if ((word & kHighBits) == 0) {
      at += sizeof(word);
    } else if (static_cast<uint8_t>(text[at]) < 0x80) {
      ++at;
    } else {
      const size_t bytes = CharacterBytes(text.substr(at));
      if (bytes == 0) {
        return false;
      }
      at += bytes;
    }
  }
  return true;
}

}  // namespace dpar
