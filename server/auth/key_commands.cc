#include "server/auth/key_commands.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"
#include "server/auth/signing_keys.h"
#include "server/directory_lock.h"

namespace dpar {
namespace {

std::string StateOf(const KnownKey& known) {
  if (known.revoke_time.has_value()) {
    return absl::StrCat("revoked ", KeyTimeText(*known.revoke_time), " (", known.revoke_reason, ")");
  }
  return known.retire_time.has_value() ? absl::StrCat("retired ", KeyTimeText(*known.retire_time)) : "signs";
}

absl::StatusOr<DirectoryLock> LockKeys(const DataDirectory& directory) {
  // Its error says what to do where there are no keys yet.
  DPAR_RETURN_IF_ERROR(ReadSigningKey(directory).status());
  // Before the lock: a lock file of the wrong user would keep the right one out.
  DPAR_RETURN_IF_ERROR(CheckKeyOwner(directory));
  absl::StatusOr<DirectoryLock> lock = DirectoryLock::Acquire(directory.SigningKeyLock());
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(absl::StrCat("another `dpard keys` is changing the keys (it holds ",
                                                      directory.SigningKeyLock(),
                                                      "); look at `dpard keys list` before you try again"));
  }
  return lock;
}

}  // namespace

absl::Status ListKeys(const DataDirectory& directory, std::ostream& out) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<KnownKey> keys, ReadSigningKeys(directory));
  for (const KnownKey& known : keys) {
    out << known.key.key_id() << "  made "
        << (known.create_time.has_value() ? KeyTimeText(*known.create_time) : "-                   ") << "  "
        << StateOf(known) << "\n";
  }
  return absl::OkStatus();
}

absl::Status PrintKeys(const DataDirectory& directory, std::ostream& out) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<KnownKey> keys, ReadSigningKeys(directory));
  out << FormatKeyList(keys);
  return absl::OkStatus();
}

absl::Status RotateKey(const DataDirectory& directory, absl::Time now, std::ostream& out) {
  DPAR_ASSIGN_OR_RETURN(const DirectoryLock lock, LockKeys(directory));
  DPAR_ASSIGN_OR_RETURN(const std::string key_id, RotateSigningKey(directory, now));
  out << "Certificates are signed with key " << key_id << " from now on.\n"
      << "Those of before stay valid. Give " << directory.SigningPublicKey() << ", or what\n"
      << "`dpard keys print` prints, to those who verify.\n";
  return absl::OkStatus();
}

absl::Status RevokeKey(const DataDirectory& directory, const std::string& key_id, const std::string& reason,
                       absl::Time now, std::ostream& out) {
  DPAR_ASSIGN_OR_RETURN(const DirectoryLock lock, LockKeys(directory));
  DPAR_ASSIGN_OR_RETURN(const SigningKey before, ReadSigningKey(directory));
  DPAR_ASSIGN_OR_RETURN(const std::string revoked, RevokeSigningKey(directory, key_id, reason, now));
  DPAR_ASSIGN_OR_RETURN(const SigningKey after, ReadSigningKey(directory));
  out << "Key " << revoked << " is revoked: nothing that it signed can be relied upon.\n";
  if (before.verifying_key().key_id() == revoked) {
    out << "It signed until now; key " << after.verifying_key().key_id() << " does from now on.\n";
  }
  out << "Servers tell whoever asks them. Give what `dpard keys print` prints to those who\n"
      << "verify without a server.\n";
  return absl::OkStatus();
}

}  // namespace dpar
