// Public keys with when they were made, retired, revoked. As text, a file of PEM blocks with explanatory lines before
// each (RFC 7468; every reader of PEM skips them):
//   Key-Id: 5f0c...
//   Created: 2026-01-02T03:04:05Z
//   Retired: 2026-07-01T00:00:00Z
//   Revoked: 2026-07-02T00:00:00Z
//   Reason: the backup tape was stolen
//   -----BEGIN PUBLIC KEY-----
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

inline constexpr size_t kMaxListedKeys = 10'000;  // one a day for 27 years

// What a retired key signed stays valid. A revoked key may have been in other hands: trust nothing that it signed.
struct KnownKey {
  KnownKey(VerifyingKey verifying_key) : key(std::move(verifying_key)) {}  // NOLINT(google-explicit-constructor)

  VerifyingKey key;
  std::optional<absl::Time> create_time;
  std::optional<absl::Time> retire_time;
  std::optional<absl::Time> revoke_time;
  std::string revoke_reason;
};

std::string KeyTimeText(absl::Time time);  // "2026-01-02T03:04:05Z"

// OK for one line of 1 to 200 printable ASCII characters without a space at either end.
absl::Status ValidateRevokeReason(absl::string_view reason);

std::string FormatKeyList(const std::vector<KnownKey>& keys);

// One key or more, with lines before them or not. INVALID_ARGUMENT for anything but Ed25519 public keys in PEM, another
// key's Key-Id, a repeated, unknown or malformed line, and a key listed twice: no revocation may be overlooked.
absl::StatusOr<std::vector<KnownKey>> ParseKeyList(absl::string_view text);

// Of a key in both, the earlier revocation counts, and otherwise what `keys` says.
void MergeKeys(const std::vector<KnownKey>& more, std::vector<KnownKey>& keys);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_KEY_LIST_H_
