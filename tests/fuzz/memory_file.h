#ifndef DPAR_TESTS_FUZZ_MEMORY_FILE_H_
#define DPAR_TESTS_FUZZ_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {

// A file in memory that has a path.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
    Require(descriptor_ >= 0 && write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
            "there is memory for the input");
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::string path() const { return absl::StrCat("/proc/self/fd/", descriptor_); }

 private:
  const int descriptor_;
};

}  // namespace dpar::fuzz

#endif  // DPAR_TESTS_FUZZ_MEMORY_FILE_H_
