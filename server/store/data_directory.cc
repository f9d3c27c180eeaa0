#include "server/store/data_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

absl::Status FileError(absl::string_view action, const std::string& path, int error) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   absl::StrCat("cannot ", action, " ", path, ": ", std::strerror(error)));
}

// tenants/{t}/{collection}/{id} as {root}/{collection}/{t}/{id}.
std::string ResourcePath(const std::string& root, absl::string_view name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  return absl::StrCat(root, "/", parts.at(2), "/", parts.at(1), "/", parts.at(3));
}

absl::Status WriteAll(int descriptor, const std::string& path, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return FileError("write", path, errno);
    }
    bytes.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
  }
  return fsync(descriptor) == 0 ? absl::OkStatus() : FileError("sync", path, errno);
}

}  // namespace

std::string DataDirectory::UploadFile(absl::string_view upload_name) const { return ResourcePath(root_, upload_name); }

std::string DataDirectory::DatasetFile(absl::string_view dataset_name) const {
  return ResourcePath(root_, dataset_name) + "/graph.sealed";
}

std::string DataDirectory::AttemptDirectory(absl::string_view job_name, int64_t lease) const {
  return absl::StrCat(ResourcePath(root_, job_name), "/", lease);
}

std::string DataDirectory::WeightsFile(absl::string_view job_name, int64_t lease) const {
  return AttemptDirectory(job_name, lease) + "/model.npz";
}

std::string DataDirectory::ScriptFile(absl::string_view job_name, int64_t lease) const {
  return AttemptDirectory(job_name, lease) + "/model.pt";
}

absl::Status SyncDirectory(const std::string& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return FileError("open directory", directory, errno);
  }
  const absl::Cleanup close_it = [descriptor] { close(descriptor); };
  return fsync(descriptor) == 0 ? absl::OkStatus() : FileError("sync directory", directory, errno);
}

absl::Status MakeParentDirectory(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (parent.empty()) {
    return absl::OkStatus();
  }
  std::filesystem::path made;
  for (const std::filesystem::path& part : parent) {
    const std::string above = made.empty() ? "." : made.string();
    made /= part;
    if (mkdir(made.c_str(), S_IRWXU) == 0) {
      DPAR_RETURN_IF_ERROR(SyncDirectory(above));
    } else if (errno != EEXIST) {
      return FileError("make directory", made.string(), errno);
    }
  }
  return absl::OkStatus();
}

absl::Status WriteFileDurably(const std::string& path, absl::string_view bytes, unsigned mode) {
  const std::string temporary = path + ".part";
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (descriptor < 0) {
    return FileError("make", temporary, errno);
  }
  absl::Status status = fchmod(descriptor, mode) == 0 ? absl::OkStatus() : FileError("protect", temporary, errno);
  if (status.ok()) {
    status = WriteAll(descriptor, temporary, bytes);
  }
  close(descriptor);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = FileError("rename", temporary, errno);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return SyncDirectory(parent.empty() ? "." : parent);
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
