// Public keys with what their owner says about them: when they were made, retired, revoked. As text, a list of keys is
// a file of PEM blocks with lines of explanation before each, which RFC 7468 allows and every reader of PEM skips:
//
//   Key-Id: 5f0c...
//   Created: 2026-01-02T03:04:05Z
//   Retired: 2026-07-01T00:00:00Z
//   Revoked: 2026-07-02T00:00:00Z
//   Reason: the backup tape was stolen
//   -----BEGIN PUBLIC KEY-----
//   ...
#ifndef DPAR_CORE_CERTIFICATE_KEY_LIST_H_
#define DPAR_CORE_CERTIFICATE_KEY_LIST_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/certificate/signing_key.h"

namespace dpar {

// Keys of a list: one a day for 27 years.
inline constexpr size_t kMaxListedKeys = 10'000;

// A retired key signs no more, and what it signed stays valid. A revoked key may have been in other hands: nothing that
// it signed can be relied upon, whenever it claims to be from.
struct KnownKey {
  // A key that nothing is known about but that it is trusted.
  KnownKey(VerifyingKey verifying_key) : key(std::move(verifying_key)) {}  // NOLINT(google-explicit-constructor)

  VerifyingKey key;
  std::optional<absl::Time> create_time;
  std::optional<absl::Time> retire_time;
  std::optional<absl::Time> revoke_time;
  std::string revoke_reason;
};

// "2026-01-02T03:04:05Z".
std::string KeyTimeText(absl::Time time);

// OK for a reason that a list can hold: one line of 1 to 200 printable ASCII characters without a space at either end.
absl::Status ValidateRevokeReason(absl::string_view reason);

std::string FormatKeyList(const std::vector<KnownKey>& keys);

// One key or more, with lines before them or without. INVALID_ARGUMENT for anything that is not an Ed25519 public key
// in PEM, a Key-Id that is not its key's, a line that is repeated, not known or malformed, and a key that is listed
// twice: a line that was meant to revoke a key must not be overlooked.
absl::StatusOr<std::vector<KnownKey>> ParseKeyList(absl::string_view text);

// Adds `more` to `keys`. Of a key that both have, the earlier revocation counts, and what `keys` says of it otherwise.
void MergeKeys(const std::vector<KnownKey>& more, std::vector<KnownKey>& keys);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_KEY_LIST_H_
