// Marks: things of a private dataset that can be recognised wherever they turn up, and the search for them.
#ifndef DPAR_TESTS_END_TO_END_MARKS_H_
#define DPAR_TESTS_END_TO_END_MARKS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace dpar::e2e {

// Thread-safe once it is filled.
class Marks {
 public:
  // A text that stands nowhere by chance.
  void AddText(const std::string& text) { texts_.insert(text); }
  // A number that must not stand anywhere as a word of its own; parts of longer words do not count.
  void AddNumber(int64_t number) { numbers_.insert(std::to_string(number)); }
  // At least 16 bytes: as they are, in hex of either case, and in base64 at any alignment.
  void AddBytes(const std::string& bytes);
  // 64 hex digits, and the bytes that they stand for.
  void AddHex(const std::string& digits);

  // The marks that the text holds.
  [[nodiscard]] std::vector<std::string> FindIn(absl::string_view text) const;

 private:
  std::set<std::string> texts_;
  std::set<std::string> numbers_;
};

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_MARKS_H_
