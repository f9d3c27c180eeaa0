#include "core/graph/temporary_file.h"

#include <fcntl.h>
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

constexpr int kTemporaryNames = 100;

absl::Status Sync(const std::string& name, int flags, const std::string& path) {
  const int descriptor = open(name.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) {
    return WriteError(path, std::strerror(errno));
  }
  const int result = fsync(descriptor);
  const int cause = errno;
  close(descriptor);
  return result == 0 ? absl::OkStatus() : WriteError(path, std::strerror(cause));
}

}  // namespace

absl::Status WriteError(const std::string& path, absl::string_view why) {
  return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, absl::StrCat("cannot write ", path, ": ", why));
}

TemporaryFile::TemporaryFile(std::string name) : name_(std::move(name)) {}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept : name_(std::exchange(other.name_, std::string())) {}

TemporaryFile::~TemporaryFile() {
  if (!name_.empty()) {
    unlink(name_.c_str());
  }
}

absl::StatusOr<TemporaryFile> TemporaryFile::Create(const std::string& path) {
  for (int attempt = 0; attempt < kTemporaryNames; ++attempt) {
    std::string name = absl::StrCat(path, ".", getpid(), ".", attempt, ".tmp");
    const int descriptor = open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      close(descriptor);
      return TemporaryFile(std::move(name));
    }
    if (errno != EEXIST) {
      break;
    }
  }
  return WriteError(path, std::strerror(errno));
}

absl::Status TemporaryFile::MoveTo(const std::string& path) {
  DPAR_RETURN_IF_ERROR(Sync(name_, O_RDONLY, path));
  if (rename(name_.c_str(), path.c_str()) != 0) {
    return WriteError(path, std::strerror(errno));
  }
  name_.clear();
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  return Sync(directory.empty() ? "." : directory.string(), O_RDONLY | O_DIRECTORY, path);
}

}  // namespace dpar
