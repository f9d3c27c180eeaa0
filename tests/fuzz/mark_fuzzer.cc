// Marks of the witness directory, as bytes and as lines that end with their right digest.
//
// For any bytes the result is a named error, or a mark that is written as it was read.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/certificate/digest.h"
#include "server/witness/mark.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

void Read(const std::string& text) {
  const absl::StatusOr<Mark> mark = ParseMark(text);
  if (mark.ok()) {
    Require(FormatMark(*mark) == text, "a mark is written as it was read");
    return;
  }
  Require(absl::IsDataLoss(mark.status()) || absl::IsUnimplemented(mark.status()), mark.status().ToString());
}

void Run(const std::string& text) {
  Read(text);
  Read(absl::StrCat(text, "sha256 ", Sha256Hex(text), "\n"));
}

}  // namespace
}  // namespace dpar::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dpar::fuzz::Run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
