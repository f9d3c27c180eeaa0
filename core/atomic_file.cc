#include "core/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int kAttempts = 1'000'000;  // to find a name that no crash left behind

absl::Status Sync(const std::string& name, int flags, const std::string& path) {
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (descriptor < 0) {
    return WriteError(path, std::strerror(errno));
  }
  const int result = ::fsync(descriptor);
  const int cause = errno;
  ::close(descriptor);
  return result == 0 ? absl::OkStatus() : WriteError(path, std::strerror(cause));
}

}  // namespace

absl::Status WriteError(const std::string& path, absl::string_view why) {
  return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, absl::StrCat("cannot write '", path, "': ", why));
}

absl::Status SyncDirectory(const std::string& directory) {
  const std::string name = directory.empty() ? "." : directory;
  return Sync(name, O_DIRECTORY, name);
}

AtomicFile::AtomicFile(std::string path, std::string temporary_path, int descriptor)
    : path_(std::move(path)), temporary_path_(std::move(temporary_path)), descriptor_(descriptor) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::move(other.temporary_path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_path_.c_str());
  }
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path, mode_t mode) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return InvalidField("output", absl::StrCat("cannot write '", path, "': it is a directory"));
  }
  // An existing file may be somebody else's, who could then read what is written.
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string temporary = absl::StrCat(path, ".partial-", ::getpid(), "-", attempt);
    const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (descriptor >= 0) {
      return AtomicFile(path, std::move(temporary), descriptor);
    }
    if (errno != EEXIST) {
      break;
    }
  }
  return InvalidField("output", absl::StrCat("cannot write '", path, "': ", std::strerror(errno)));
}

absl::Status AtomicFile::Append(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      return WriteError(path_, std::strerror(errno));
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    size_ += written;
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  DPAR_RETURN_IF_ERROR(Sync(temporary_path_, O_NOFOLLOW, path_));  // a library may have replaced the file
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return WriteError(path_, std::strerror(errno));
  }
  ::close(std::exchange(descriptor_, -1));
  return SyncDirectory(std::filesystem::path(path_).parent_path().string());
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view bytes, mode_t mode) {
  DPAR_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, mode));
  DPAR_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
}

}  // namespace dpar
