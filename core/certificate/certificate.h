// The privacy certificate: an in-toto Statement v1 in a DSSE envelope, signed with Ed25519 (docs/certificate.md).
#ifndef DPAR_CORE_CERTIFICATE_CERTIFICATE_H_
#define DPAR_CORE_CERTIFICATE_CERTIFICATE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/key_list.h"
#include "core/certificate/signing_key.h"
#include "core/certificate/statement.h"

namespace dpar {

inline constexpr absl::string_view kPayloadType = "application/vnd.in-toto+json";

std::string PreAuthenticationEncoding(absl::string_view payload_type, absl::string_view payload);

// Compact JSON with one signature. INVALID_ARGUMENT for a statement that StatementFromJson does not take back.
absl::StatusOr<std::string> SignStatement(const Statement& statement, const SigningKey& key);

// The statement of an envelope that one of the keys, even a revoked one, signed; nothing is recomputed. For the
// server's own certificates. PERMISSION_DENIED when the signature does not hold.
absl::StatusOr<Statement> OpenSigned(absl::string_view envelope, const std::vector<KnownKey>& trusted);

struct Check {
  std::string name;  // "signature", "model.npz digest", "epsilon", ...
  bool passed = false;
  std::string detail;
};

struct Verification {
  std::string key_id;  // that the envelope names
  std::vector<Check> checks;
  Statement statement;            // only meaningful when has_statement()
  double recomputed_epsilon = 0;  // of the event, at the stated delta; 0 for public data
  [[nodiscard]] bool passed() const;
  // Whether the checks "signature" and "statement" passed.
  [[nodiscard]] bool has_statement() const;
};

// Checks the signature over the exact payload bytes, and parses them only if it holds; then whether the key was
// revoked, each of `files` (model files, matched to subjects by digest), the event against the plan, the epsilon
// recomputed from the event, which must not exceed the stated one, the ledger's units and cap, and the recomputed hash
// of its entry. For public data, which has no guarantee, one check that says so replaces the last four.
// INVALID_ARGUMENT for an envelope not in the one byte form of SignStatement.
absl::StatusOr<Verification> VerifyCertificate(absl::string_view envelope, const std::vector<KnownKey>& trusted,
                                               const std::vector<std::string>& files);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_CERTIFICATE_H_
