// The keys that sign certificates, in keys/ of the data directory, which all servers of a fleet share:
//
//   signing.key        the private key that signs now
//   signing.pub        its public half
//   signing-keys.pem   every public key ever, with when it was made, retired and revoked
//
// `dpard keys` changes keys, also while servers run: servers look before they sign. signing.key decides which key signs
// and is replaced last, after the list, so no certificate is signed by an unlisted key. Old private keys are gone.
#ifndef DPAR_SERVER_AUTH_SIGNING_KEYS_H_
#define DPAR_SERVER_AUTH_SIGNING_KEYS_H_

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/certificate/key_list.h"
#include "core/certificate/signing_key.h"
#include "core/mutex.h"
#include "server/store/data_directory.h"

namespace dpar {

// FAILED_PRECONDITION when other users may read the file; DATA_LOSS when it holds no key; NOT_FOUND without a file.
absl::StatusOr<SigningKey> ReadSigningKey(const DataDirectory& directory);

// Every public key, the current one first, then newest first. Only the current one has no retire_time.
absl::StatusOr<std::vector<KnownKey>> ReadSigningKeys(const DataDirectory& directory);

// FAILED_PRECONDITION unless the process runs as the key's owner: servers could not read a new key of another user.
absl::Status CheckKeyOwner(const DataDirectory& directory);

// Makes a new key that signs from now on; returns its id. One process at a time; FAILED_PRECONDITION as CheckKeyOwner.
absl::StatusOr<std::string> RotateSigningKey(const DataDirectory& directory, absl::Time now);

// Revokes a key and returns its id; replaces it first when it is the current one. `key_id` may be a prefix of 8 or more
// digits. NOT_FOUND for no match, INVALID_ARGUMENT for several or no reason, FAILED_PRECONDITION when revoked before.
absl::StatusOr<std::string> RevokeSigningKey(const DataDirectory& directory, absl::string_view key_id,
                                             const std::string& reason, absl::Time now);

// Rewrites signing.pub after an interrupted rotation; true when it did. DATA_LOSS when it matches no known key.
absl::StatusOr<bool> RepairPublicKey(const DataDirectory& directory);

class SigningKeys {
 public:
  // `directory` outlives it.
  explicit SigningKeys(const DataDirectory& directory) : directory_(directory) {}

  // The key to sign with now, read again when its file was replaced. UNAVAILABLE when it or the list cannot be read:
  // that may pass, and a finished job waits for it.
  absl::StatusOr<SigningKey> Current() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::vector<KnownKey>> List() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DataDirectory& directory_;
  Mutex mutex_;
  std::optional<SigningKey> key_ ABSL_GUARDED_BY(mutex_);
  struct stat file_ ABSL_GUARDED_BY(mutex_) = {};  // that key_ was read from
};

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_SIGNING_KEYS_H_
