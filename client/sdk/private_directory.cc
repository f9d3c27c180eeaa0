#include "client/sdk/private_directory.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr mode_t kPrivateDirectoryMode = 0700;

std::string Below(const Variables& variables, const std::string& variable, const std::string& below_home) {
  const auto base = variables(variable);
  // The XDG specification: a relative path is to be ignored.
  if (base.has_value() && base->front() == '/') {
    return absl::StrCat(*base, "/dpar");
  }
  const auto home = variables("HOME");
  return home.has_value() ? absl::StrCat(*home, "/", below_home, "/dpar") : "";
}

}  // namespace

std::string ConfigDirectory(const Variables& variables) { return Below(variables, "XDG_CONFIG_HOME", ".config"); }

std::string DataDirectory(const Variables& variables) { return Below(variables, "XDG_DATA_HOME", ".local/share"); }

absl::Status MakePrivateDirectory(const std::string& path) {
  const std::filesystem::path directory(path);
  if (std::error_code error; std::filesystem::is_directory(directory, error)) {
    return absl::OkStatus();
  }
  if (directory.has_parent_path() && directory.parent_path() != directory) {
    DPAR_RETURN_IF_ERROR(MakePrivateDirectory(directory.parent_path().string()));
  }
  if (::mkdir(path.c_str(), kPrivateDirectoryMode) != 0 && errno != EEXIST) {
    return InvalidField("directory", absl::StrCat("cannot make the directory '", path, "': ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace dpar
