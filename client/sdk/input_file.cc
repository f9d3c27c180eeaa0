#include "client/sdk/input_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr std::streamsize kMaxSmallBytes = 1 << 20;

}  // namespace

absl::Status CheckInputFile(absl::string_view field, const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return InvalidField(field, absl::StrCat("cannot read '", path, "': ", std::strerror(errno)));
  }
  if (S_ISDIR(status.st_mode)) {
    return InvalidField(field, absl::StrCat("cannot read '", path, "': it is a directory, and a file is needed"));
  }
  if (!S_ISREG(status.st_mode)) {
    return InvalidField(field, absl::StrCat("cannot read '", path, "': it is not a regular file"));
  }
  if (::access(path.c_str(), R_OK) != 0) {
    return InvalidField(field, absl::StrCat("cannot read '", path, "': ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSmallFile(absl::string_view field, const std::string& path) {
  DPAR_RETURN_IF_ERROR(CheckInputFile(field, path));
  std::ifstream file(path, std::ios::binary);
  std::string bytes(static_cast<size_t>(kMaxSmallBytes) + 1, '\0');
  file.read(bytes.data(), kMaxSmallBytes + 1);
  if (file.gcount() > kMaxSmallBytes) {
    return InvalidField(field, absl::StrCat("'", path, "' is too large to be a certificate, a key or a token"));
  }
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

}  // namespace dpar
