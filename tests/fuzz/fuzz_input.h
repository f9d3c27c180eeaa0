// The bytes that a fuzzer was given, taken apart from the front. Past the end everything is zero, so that every input
// is a good one.
#ifndef DPAR_TESTS_FUZZ_FUZZ_INPUT_H_
#define DPAR_TESTS_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace dpar::fuzz {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : bytes_(reinterpret_cast<const char*>(data), size) {}

  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] absl::string_view rest() const { return bytes_; }

  std::string Take(size_t count) {
    const std::string taken(bytes_.substr(0, count));
    bytes_.remove_prefix(taken.size());
    return taken;
  }

  template <typename Number>
  Number Read() {
    const std::string taken = Take(sizeof(Number));
    Number number = 0;
    std::memcpy(&number, taken.data(), taken.size());
    return number;
  }

  uint8_t Byte() { return Read<uint8_t>(); }
  bool Bit() { return (Byte() & 1) != 0; }
  // One of `count` choices.
  size_t Choice(size_t count) { return Byte() % count; }
  template <typename Table>
  const auto& Pick(const Table& table) {
    return table[Choice(std::size(table))];
  }

 private:
  absl::string_view bytes_;
};

}  // namespace dpar::fuzz

#endif  // DPAR_TESTS_FUZZ_FUZZ_INPUT_H_
