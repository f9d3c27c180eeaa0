// The privacy certificate: an in-toto Statement v1 in a DSSE envelope, signed with Ed25519. docs/certificate.md
// describes every field.
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

// DSSE's pre-authentication encoding.
std::string PreAuthenticationEncoding(absl::string_view payload_type, absl::string_view payload);

// A signed envelope around the statement: compact JSON with one signature. INVALID_ARGUMENT for a statement that
// StatementFromJson does not take back.
absl::StatusOr<std::string> SignStatement(const Statement& statement, const SigningKey& key);

// The statement of an envelope that one of the keys signed. Nothing is recomputed. PERMISSION_DENIED when the signature
// does not hold. A revoked key is as good as any here: this is for the server, which has its certificates from itself.
absl::StatusOr<Statement> OpenSigned(absl::string_view envelope, const std::vector<KnownKey>& trusted);

// One line of a verification: what was checked and how it came out.
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

// Checks the signature over the exact payload bytes first, and parses them only if it holds; whether the key was
// revoked; then each file of `files` (path to a model file, matched to a subject by its digest), the event against the
// plan, the epsilon recomputed from the event, which must not exceed the stated one, the ledger's units and cap, and
// the hash of the ledger's entry, recomputed from what the statement says. For public data nothing is guaranteed, so
// the last four are replaced by a check that says so. INVALID_ARGUMENT when the envelope is not one, in the one byte
// form that SignStatement gives.
absl::StatusOr<Verification> VerifyCertificate(absl::string_view envelope, const std::vector<KnownKey>& trusted,
                                               const std::vector<std::string>& files);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_CERTIFICATE_H_
