#include "client/cli/trusted_keys.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cli/format.h"
#include "client/sdk/input_file.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

absl::StatusOr<std::vector<std::string>> KeyFiles(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".pub" || extension == ".pem") {
      files.push_back(entry.path().string());
    }
  }
  if (error || files.empty()) {
    return InvalidField("key", absl::StrCat("the directory '", directory, "' holds no key (*.pub or *.pem)",
                                            error ? ": " + error.message() : ""));
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::vector<KnownKey>> ReadKeyFile(const std::string& path) {
  DPAR_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile("key", path));
  absl::StatusOr<std::vector<KnownKey>> keys = ParseKeyList(text);
  if (!keys.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' holds no Ed25519 public key: ", std::string(keys.status().message())));
  }
  return keys;
}

}  // namespace

absl::StatusOr<std::vector<KnownKey>> ReadTrustedKeys(const std::vector<std::string>& paths) {
  std::vector<KnownKey> keys;
  for (const std::string& path : paths) {
    std::error_code error;
    std::vector<std::string> files = {path};
    if (std::filesystem::is_directory(path, error)) {
      DPAR_ASSIGN_OR_RETURN(files, KeyFiles(path));
    }
    for (const std::string& file : files) {
      DPAR_ASSIGN_OR_RETURN(const std::vector<KnownKey> more, ReadKeyFile(file));
      MergeKeys(more, keys);
    }
  }
  return keys;
}

absl::StatusOr<std::vector<KnownKey>> AskForKeys(Connection& connection) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<v1::SigningKey> listed, connection.ListSigningKeys());
  std::vector<KnownKey> keys;
  for (const v1::SigningKey& signing : listed) {
    absl::StatusOr<VerifyingKey> key = VerifyingKey::FromPem(signing.public_key_pem());
    if (!key.ok() || key->key_id() != signing.key_id()) {
      return absl::InternalError(absl::StrCat("the server lists a key ", signing.key_id(), " that is not one"));
    }
    KnownKey known(*std::move(key));
    if (signing.has_create_time()) {
      known.create_time = FromProto(signing.create_time());
    }
    if (signing.has_retire_time()) {
      known.retire_time = FromProto(signing.retire_time());
    }
    if (signing.has_revoke_time()) {
      known.revoke_time = FromProto(signing.revoke_time());
      known.revoke_reason = signing.revoke_reason();
    }
    MergeKeys({known}, keys);
  }
  return keys;
}

}  // namespace dpar
