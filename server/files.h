// Files of the server. Every error is UNAVAILABLE / SERVER_UNAVAILABLE and names the file.
#ifndef DPAR_SERVER_FILES_H_
#define DPAR_SERVER_FILES_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

// Makes the directory of `path`, durably, for its owner only.
absl::Status MakeParentDirectory(const std::string& path);

// Atomic and durable (core/atomic_file.h). `mode` as in chmod(2), regardless of the umask.
absl::Status WriteFileDurably(const std::string& path, absl::string_view bytes, mode_t mode);
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);

// Removes a file or a tree; OK when there is none.
absl::Status RemoveTree(const std::string& path);

}  // namespace dpar

#endif  // DPAR_SERVER_FILES_H_
