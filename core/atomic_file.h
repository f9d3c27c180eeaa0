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

absl::Status SyncDirectory(const std::string& directory);

// A temporary file beside its final place, removed by the destructor unless Commit renamed it. Errors: WriteError's.
class AtomicFile {
 public:
  // INVALID_ARGUMENT / INVALID_FIELD: no such directory, no permission, `path` is a directory. The umask limits `mode`.
  static absl::StatusOr<AtomicFile> Create(const std::string& path, mode_t mode = 0666);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  absl::Status Append(absl::string_view bytes);
  // Syncs and renames whatever is at temporary_path(): after a crash the path holds the old file or the new one.
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

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes, mode_t mode);

}  // namespace dpar

#endif  // DPAR_CORE_ATOMIC_FILE_H_
