// A file that appears under its name complete or not at all.
#ifndef DPAR_CORE_ATOMIC_FILE_H_
#define DPAR_CORE_ATOMIC_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

// INTERNAL / INTERNAL_FAULT: "cannot write '<path>': <why>".
absl::Status WriteError(const std::string& path, absl::string_view why);

// Makes the names in a directory durable.
absl::Status SyncDirectory(const std::string& directory);

// Written beside its final place under a temporary name, which the destructor removes unless Commit renamed it. Errors
// are those of WriteError unless said otherwise.
class AtomicFile {
 public:
  // INVALID_ARGUMENT / INVALID_FIELD when nothing can be written there: no such directory, no permission, or `path` is
  // a directory. `mode` as in open(2): the umask is taken from it.
  static absl::StatusOr<AtomicFile> Create(const std::string& path, mode_t mode = 0666);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  absl::Status Append(absl::string_view bytes);
  // Makes the bytes durable and gives the file its name, so that after a crash the path holds the old file or the new
  // one. Also of what a library wrote to temporary_path(), or put there.
  absl::Status Commit();

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] const std::string& temporary_path() const { return temporary_path_; }

 private:
  AtomicFile(std::string path, std::string temporary_path, int descriptor);

  std::string path_;
  std::string temporary_path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

// All of it at once.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes, mode_t mode);

}  // namespace dpar

#endif  // DPAR_CORE_ATOMIC_FILE_H_
