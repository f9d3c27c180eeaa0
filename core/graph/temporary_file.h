// Files that appear whole or not at all: written under another name beside their place, synced, renamed.
#ifndef DPAR_CORE_GRAPH_TEMPORARY_FILE_H_
#define DPAR_CORE_GRAPH_TEMPORARY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

// INTERNAL / INTERNAL_FAULT: "cannot write <path>: <why>".
absl::Status WriteError(const std::string& path, absl::string_view why);

// An empty file beside the place where it is meant to go. It is removed unless it was moved there.
class TemporaryFile {
 public:
  static absl::StatusOr<TemporaryFile> Create(const std::string& path);

  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&& other) = delete;
  ~TemporaryFile();

  [[nodiscard]] const std::string& name() const { return name_; }

  // Syncs, renames and syncs the directory, so that after a crash the path holds the old file or the new one.
  absl::Status MoveTo(const std::string& path);

 private:
  explicit TemporaryFile(std::string name);

  std::string name_;
};

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_TEMPORARY_FILE_H_
