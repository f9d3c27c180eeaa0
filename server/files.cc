#include "server/files.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

absl::Status Unavailable(absl::string_view message) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, message);
}

absl::Status FileError(absl::string_view action, const std::string& path, int error) {
  return Unavailable(absl::StrCat("cannot ", action, " ", path, ": ", std::strerror(error)));
}

absl::Status Write(const std::string& path, absl::string_view bytes, mode_t mode) {
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, mode));
  if (chmod(file.temporary_path().c_str(), mode) != 0) {
    return FileError("protect", path, errno);
  }
  DPAR_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
}

}  // namespace

absl::Status MakeParentDirectory(const std::string& path) {
  std::filesystem::path made;
  for (const std::filesystem::path& part : std::filesystem::path(path).parent_path()) {
    const std::string above = made.string();
    made /= part;
    if (mkdir(made.c_str(), S_IRWXU) == 0) {
      const absl::Status synced = SyncDirectory(above);
      if (!synced.ok()) {
        return Unavailable(synced.message());
      }
    } else if (errno != EEXIST) {
      return FileError("make directory", made.string(), errno);
    }
  }
  return absl::OkStatus();
}

absl::Status WriteFileDurably(const std::string& path, absl::string_view bytes, mode_t mode) {
  const absl::Status written = Write(path, bytes, mode);
  return written.ok() ? written : Unavailable(written.message());
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file || bytes.fail()) {
    return FileError("read", path, errno != 0 ? errno : EIO);
  }
  return bytes.str();
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? FileError("remove", path, error.value()) : absl::OkStatus();
}

}  // namespace dpar
