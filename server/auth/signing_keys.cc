#include "server/auth/signing_keys.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/files.h"

namespace dpar {
namespace {

constexpr unsigned kSecretMode = 0600;
constexpr unsigned kPublicMode = 0644;
constexpr size_t kMinKeyIdDigits = 8;

// The file's identity. Opens the file, because over NFS only an open shows that another machine replaced it.
absl::StatusOr<struct stat> Identify(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat file = {};
  const bool known = descriptor >= 0 && fstat(descriptor, &file) == 0;
  const int error = errno;
  if (descriptor >= 0) {
    close(descriptor);
  }
  if (known) {
    return file;
  }
  const absl::StatusCode code = error == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kUnavailable;
  return MakeError(code, error == ENOENT ? v1::RESOURCE_NOT_FOUND : v1::SERVER_UNAVAILABLE,
                   absl::StrCat("cannot read ", path, ": ", std::strerror(error), "; `dpard init` makes a first key"),
                   {{"resource", path}});
}

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

absl::Status CheckMode(const std::string& path, const struct stat& file) {
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) == 0) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::STORE_CORRUPT,
                   absl::StrCat("others may read ", path, ", which signs certificates: chmod 600 it, and if somebody ",
                                "did, replace it with `dpard keys revoke`"),
                   {{"resource", path}});
}

absl::Status Corrupt(const std::string& path, absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, absl::StrCat(path, " ", what), {{"resource", path}});
}

// The list in signing-keys.pem; empty before the first rotation.
absl::StatusOr<std::vector<KnownKey>> ReadList(const DataDirectory& directory) {
  std::error_code error;
  if (!std::filesystem::exists(directory.SigningKeyList(), error) && !error) {
    return std::vector<KnownKey>();
  }
  DPAR_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(directory.SigningKeyList()));
  absl::StatusOr<std::vector<KnownKey>> keys = ParseKeyList(text);
  if (!keys.ok()) {
    return Corrupt(directory.SigningKeyList(), absl::StrCat("is damaged: ", keys.status().message()));
  }
  return keys;
}

absl::Status Unavailable(const absl::Status& status) {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, status.message());
}

absl::StatusOr<size_t> FindByPrefix(const std::vector<KnownKey>& keys, absl::string_view key_id) {
  if (key_id.size() < kMinKeyIdDigits) {
    return InvalidField("key id", absl::StrCat("give at least ", kMinKeyIdDigits, " digits of the key's id"));
  }
  std::optional<size_t> found;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!absl::StartsWith(keys[i].key.key_id(), key_id)) {
      continue;
    }
    if (found.has_value()) {
      return InvalidField("key id", absl::StrCat("more than one key has the id ", key_id, "; give more of it"));
    }
    found = i;
  }
  if (!found.has_value()) {
    return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND,
                     absl::StrCat("no signing key has the id ", key_id, "; `dpard keys list` shows them"),
                     {{"resource", std::string(key_id)}});
  }
  return *found;
}

absl::Status WriteList(const DataDirectory& directory, const std::vector<KnownKey>& keys) {
  return WriteFileDurably(directory.SigningKeyList(), FormatKeyList(keys), kPublicMode);
}

}  // namespace

absl::StatusOr<SigningKey> ReadSigningKey(const DataDirectory& directory) {
  const std::string path = directory.SigningKey();
  DPAR_ASSIGN_OR_RETURN(const struct stat file, Identify(path));
  DPAR_RETURN_IF_ERROR(CheckMode(path, file));
  DPAR_ASSIGN_OR_RETURN(const std::string pem, ReadWholeFile(path));
  absl::StatusOr<SigningKey> key = SigningKey::FromPem(pem);
  return key.ok() ? std::move(key) : Corrupt(path, "holds no Ed25519 private key; restore it from a backup");
}

namespace {

// The list, with the current key and its file's times added.
absl::StatusOr<std::vector<KnownKey>> CompleteList(const DataDirectory& directory, const VerifyingKey& current,
                                                   const struct stat& file) {
  DPAR_ASSIGN_OR_RETURN(std::vector<KnownKey> keys, ReadList(directory));
  const std::string& current_id = current.key_id();
  // The current key may be older than the list.
  KnownKey unlisted(current);
  unlisted.create_time = absl::FromTimeT(file.st_mtime);
  MergeKeys({unlisted}, keys);
  const absl::Time never = absl::InfinitePast();
  std::stable_sort(keys.begin(), keys.end(), [&](const KnownKey& a, const KnownKey& b) {
    const bool a_signs = a.key.key_id() == current_id;
    const bool b_signs = b.key.key_id() == current_id;
    return a_signs != b_signs ? a_signs : a.create_time.value_or(never) > b.create_time.value_or(never);
  });
  keys.front().retire_time.reset();
  for (size_t i = 1; i < keys.size(); ++i) {
    if (!keys[i].retire_time.has_value()) {
      // A rotation was cut short before this key signed anything.
      keys[i].retire_time = keys[i].create_time.value_or(absl::FromTimeT(file.st_mtime));
    }
  }
  return keys;
}

}  // namespace

absl::StatusOr<std::vector<KnownKey>> ReadSigningKeys(const DataDirectory& directory) {
  DPAR_ASSIGN_OR_RETURN(const struct stat file, Identify(directory.SigningKey()));
  DPAR_ASSIGN_OR_RETURN(const SigningKey current, ReadSigningKey(directory));
  return CompleteList(directory, current.verifying_key(), file);
}

absl::Status CheckKeyOwner(const DataDirectory& directory) {
  const std::string path = directory.SigningKey();
  DPAR_ASSIGN_OR_RETURN(const struct stat file, Identify(path));
  if (file.st_uid == geteuid()) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD,
                   absl::StrCat(path, " belongs to user ", file.st_uid, " and this is user ", geteuid(),
                                ": run this command as the user that dpard runs as"),
                   {{"resource", path}});
}

absl::StatusOr<std::string> RotateSigningKey(const DataDirectory& directory, absl::Time now) {
  DPAR_RETURN_IF_ERROR(CheckKeyOwner(directory));
  DPAR_ASSIGN_OR_RETURN(std::vector<KnownKey> keys, ReadSigningKeys(directory));
  if (keys.size() >= kMaxListedKeys) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::LIMIT_EXCEEDED,
                     absl::StrCat("there were ", kMaxListedKeys, " signing keys here, and a list holds no more"));
  }
  DPAR_ASSIGN_OR_RETURN(const SigningKey fresh, SigningKey::Generate());
  keys.front().retire_time = now;
  KnownKey known(fresh.verifying_key());
  known.create_time = now;
  keys.insert(keys.begin(), std::move(known));
  DPAR_RETURN_IF_ERROR(WriteList(directory, keys));
  DPAR_RETURN_IF_ERROR(WriteFileDurably(directory.SigningKey(), fresh.private_pem(), kSecretMode));
  DPAR_RETURN_IF_ERROR(WriteFileDurably(directory.SigningPublicKey(), fresh.verifying_key().pem(), kPublicMode));
  return fresh.verifying_key().key_id();
}

absl::StatusOr<std::string> RevokeSigningKey(const DataDirectory& directory, absl::string_view key_id,
                                             const std::string& reason, absl::Time now) {
  DPAR_RETURN_IF_ERROR(ValidateRevokeReason(reason));
  DPAR_RETURN_IF_ERROR(CheckKeyOwner(directory));
  DPAR_ASSIGN_OR_RETURN(std::vector<KnownKey> keys, ReadSigningKeys(directory));
  DPAR_ASSIGN_OR_RETURN(const size_t found, FindByPrefix(keys, key_id));
  const std::string full_id = keys[found].key.key_id();
  if (keys[found].revoke_time.has_value()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD,
                     absl::StrCat("key ", full_id, " was revoked on ", KeyTimeText(*keys[found].revoke_time)));
  }
  if (found == 0) {
    DPAR_RETURN_IF_ERROR(RotateSigningKey(directory, now).status());
    DPAR_ASSIGN_OR_RETURN(keys, ReadSigningKeys(directory));
  }
  for (KnownKey& known : keys) {
    if (known.key.key_id() == full_id) {
      known.revoke_time = now;
      known.revoke_reason = reason;
    }
  }
  DPAR_RETURN_IF_ERROR(WriteList(directory, keys));
  return full_id;
}

absl::StatusOr<bool> RepairPublicKey(const DataDirectory& directory) {
  // In this order: if a rotation replaces both in between, the private key is the newer one.
  DPAR_ASSIGN_OR_RETURN(const std::string pem, ReadWholeFile(directory.SigningPublicKey()));
  DPAR_ASSIGN_OR_RETURN(const SigningKey current, ReadSigningKey(directory));
  if (pem == current.verifying_key().pem()) {
    return false;
  }
  const absl::StatusOr<VerifyingKey> stated = VerifyingKey::FromPem(pem);
  DPAR_ASSIGN_OR_RETURN(const std::vector<KnownKey> keys, ReadList(directory));
  const bool replaced = stated.ok() && std::any_of(keys.begin(), keys.end(), [&](const KnownKey& known) {
                          return known.key.key_id() == stated->key_id();
                        });
  if (!replaced) {
    return Corrupt(directory.SigningPublicKey(),
                   absl::StrCat("is not the public half of ", directory.SigningKey(), "; restore the right one"));
  }
  DPAR_RETURN_IF_ERROR(WriteFileDurably(directory.SigningPublicKey(), current.verifying_key().pem(), kPublicMode));
  return true;
}

namespace {

// A revoked key's file may come back from a backup.
absl::Status CheckNotRevoked(const DataDirectory& directory, const std::string& key_id) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<KnownKey> keys, ReadList(directory));
  for (const KnownKey& known : keys) {
    if (known.key.key_id() == key_id && known.revoke_time.has_value()) {
      return MakeError(absl::StatusCode::kFailedPrecondition, v1::STORE_CORRUPT,
                       absl::StrCat(directory.SigningKey(), " was revoked on ", KeyTimeText(*known.revoke_time),
                                    "; `dpard keys rotate` makes another"),
                       {{"resource", directory.SigningKey()}});
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SigningKeys::Refresh() {
  DPAR_ASSIGN_OR_RETURN(const struct stat file, Identify(directory_.SigningKey()));
  if (!key_.has_value() || !IsSameFile(file, file_)) {
    // If it was replaced again in between, the next call reads it again.
    DPAR_ASSIGN_OR_RETURN(SigningKey key, ReadSigningKey(directory_));
    DPAR_RETURN_IF_ERROR(CheckNotRevoked(directory_, key.verifying_key().key_id()));
    if (key_.has_value()) {
      spdlog::info("certificates are signed with key {} from now on", key.verifying_key().key_id());
    }
    key_ = std::move(key);
    file_ = file;
  }
  return absl::OkStatus();
}

absl::StatusOr<SigningKey> SigningKeys::Current() {
  const MutexLock lock(&mutex_);
  if (const absl::Status refreshed = Refresh(); !refreshed.ok()) {
    return Unavailable(refreshed);
  }
  return *key_;
}

absl::StatusOr<std::vector<KnownKey>> SigningKeys::List() {
  const MutexLock lock(&mutex_);
  if (const absl::Status refreshed = Refresh(); !refreshed.ok()) {
    return Unavailable(refreshed);
  }
  absl::StatusOr<std::vector<KnownKey>> keys = CompleteList(directory_, key_->verifying_key(), file_);
  return keys.ok() ? std::move(keys) : Unavailable(keys.status());
}

}  // namespace dpar
