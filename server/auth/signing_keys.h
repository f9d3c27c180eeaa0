// The keys that certificates are signed with, below keys/ of the data directory, which all servers of a fleet share:
//
//   signing.key        the private key that signs now
//   signing.pub        its public half
//   signing-keys.pem   every public key there ever was, with when it was made, retired and revoked
//
// Keys are changed by `dpard keys`, also while servers run: they look before they sign. signing.key decides which key
// signs, and it is replaced last, after the list that names the new key, so that no certificate is ever signed by a key
// that is not listed. The private half of a key that was replaced is gone; the public one stays for what it signed.
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
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/certificate/key_list.h"
#include "core/certificate/signing_key.h"
#include "server/store/data_directory.h"

namespace dpar {

// The private key that signs now. FAILED_PRECONDITION when others than its owner may read the file, DATA_LOSS when it
// holds no key, NOT_FOUND when there is none.
absl::StatusOr<SigningKey> ReadSigningKey(const DataDirectory& directory);

// Every public key, the one that signs now first, then the newest first. Only that one has no retire_time.
absl::StatusOr<std::vector<KnownKey>> ReadSigningKeys(const DataDirectory& directory);

// FAILED_PRECONDITION for another user than the one that the key belongs to: a key that it made would be out of reach
// for the servers, and every finished job would wait for it.
absl::Status CheckKeyOwner(const DataDirectory& directory);

// Makes a new key and signs with it from now on; the id of the new key. Only one process at a time may change keys.
// FAILED_PRECONDITION for another user than the one that the key belongs to.
absl::StatusOr<std::string> RotateSigningKey(const DataDirectory& directory, absl::Time now);

// Marks a key as revoked. The one that signs now is replaced first. `key_id` may be cut short, to 8 digits or more.
// NOT_FOUND when no key has it, INVALID_ARGUMENT when more than one has or the reason is none,
// FAILED_PRECONDITION when it was revoked before. The id of the revoked key.
absl::StatusOr<std::string> RevokeSigningKey(const DataDirectory& directory, absl::string_view key_id,
                                             const std::string& reason, absl::Time now);

// Writes signing.pub anew where a rotation was cut short before it. True when it did. DATA_LOSS when signing.pub is the
// half of no key that there ever was.
absl::StatusOr<bool> RepairPublicKey(const DataDirectory& directory);

// The keys of a running server.
class SigningKeys {
 public:
  // `directory` outlives it.
  explicit SigningKeys(const DataDirectory& directory) : directory_(directory) {}

  // The key to sign with now; its file is read again when it was replaced. UNAVAILABLE when it cannot be read, because
  // that may pass, and a finished job waits for it.
  absl::StatusOr<SigningKey> Current() ABSL_LOCKS_EXCLUDED(mutex_);
  // As ReadSigningKeys; UNAVAILABLE as above.
  absl::StatusOr<std::vector<KnownKey>> List() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DataDirectory& directory_;
  absl::Mutex mutex_;
  std::optional<SigningKey> key_ ABSL_GUARDED_BY(mutex_);
  struct stat file_ ABSL_GUARDED_BY(mutex_) = {};  // that key_ was read from
};

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_SIGNING_KEYS_H_
