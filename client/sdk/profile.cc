#include "client/sdk/profile.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/sdk/private_directory.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

struct Part {
  const char* file;
  std::string Profile::*text;
};
// Written last, because without a server there is no profile.
constexpr const char* kServerFile = "server";
constexpr std::array<Part, 5> kParts = {{{"ca.pem", &Profile::ca_pem},
                                         {"token", &Profile::token},
                                         {"client.pem", &Profile::client_certificate_pem},
                                         {"client.key", &Profile::client_key_pem},
                                         {kServerFile, &Profile::server}}};

absl::Status RemoveFile(const std::string& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  return error ? absl::InternalError(absl::StrCat("cannot remove '", path, "': ", error.message())) : absl::OkStatus();
}

// Empty when it cannot be read: a missing part is reported where it is needed.
std::string ReadTrimmed(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  absl::StripAsciiWhitespace(&text);
  return text;
}

}  // namespace

ProfileStore::ProfileStore(const Variables& variables) : directory_(ConfigDirectory(variables)) {}

std::string ProfileStore::PathOf(const std::string& name) const { return absl::StrCat(directory_, "/profiles/", name); }

std::vector<std::string> ProfileStore::List() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat(directory_, "/profiles"), error)) {
    std::string name = entry.path().filename().string();
    if (ValidateId("profile", name).ok() && std::filesystem::exists(entry.path() / kServerFile, error)) {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ProfileStore::Current() const {
  std::string name = directory_.empty() ? "" : ReadTrimmed(absl::StrCat(directory_, "/profile"));
  return ValidateId("profile", name).ok() ? name : "";
}

absl::Status ProfileStore::CheckExists(const std::string& name) const {
  DPAR_RETURN_IF_ERROR(ValidateId("profile", name));
  std::error_code error;
  if (directory_.empty() || !std::filesystem::exists(absl::StrCat(PathOf(name), "/", kServerFile), error)) {
    return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND,
                     absl::StrCat("there is no profile '", name, "'"), {{"profile", name}});
  }
  return absl::OkStatus();
}

absl::StatusOr<Profile> ProfileStore::Load(const std::string& name) const {
  DPAR_RETURN_IF_ERROR(CheckExists(name));
  Profile profile;
  for (const Part& part : kParts) {
    profile.*(part.text) = ReadTrimmed(absl::StrCat(PathOf(name), "/", part.file));
  }
  return profile;
}

absl::Status ProfileStore::Save(const std::string& name, const Profile& profile) const {
  DPAR_RETURN_IF_ERROR(ValidateId("profile", name));
  if (directory_.empty()) {
    return InvalidField("profile", "there is no place for profiles: set HOME or XDG_CONFIG_HOME");
  }
  const std::string path = PathOf(name);
  DPAR_RETURN_IF_ERROR(MakePrivateDirectory(path));
  // An interrupted save leaves no profile, rather than one server with the token of another.
  DPAR_RETURN_IF_ERROR(RemoveFile(absl::StrCat(path, "/", kServerFile)));
  for (const Part& part : kParts) {
    const std::string& text = profile.*(part.text);
    const std::string file = absl::StrCat(path, "/", part.file);
    // Parts of the old profile must not stay.
    if (text.empty()) {
      DPAR_RETURN_IF_ERROR(RemoveFile(file));
    } else {
      DPAR_RETURN_IF_ERROR(WriteFileAtomically(file, text + "\n", kPrivateFileMode));
    }
  }
  return absl::OkStatus();
}

absl::Status ProfileStore::Use(const std::string& name) const {
  DPAR_RETURN_IF_ERROR(CheckExists(name));
  return WriteFileAtomically(absl::StrCat(directory_, "/profile"), name + "\n", kPrivateFileMode);
}

absl::Status ProfileStore::Remove(const std::string& name) const {
  DPAR_RETURN_IF_ERROR(CheckExists(name));
  std::error_code error;
  std::filesystem::remove_all(PathOf(name), error);
  if (error) {
    return absl::InternalError(absl::StrCat("cannot remove '", PathOf(name), "': ", error.message()));
  }
  if (Current() == name) {
    std::filesystem::remove(absl::StrCat(directory_, "/profile"), error);
  }
  return absl::OkStatus();
}

}  // namespace dpar
