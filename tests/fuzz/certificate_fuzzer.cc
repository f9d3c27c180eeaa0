// Certificates and lists of keys from strangers: an envelope as it is, a payload that a trusted key signed whatever it
// says, and a list of keys.
//
// For any bytes the result is INVALID_ARGUMENT or PERMISSION_DENIED with a reason, or a verdict; and only what was
// signed by the trusted key is ever read as a statement.
#include <cstdint>
#include <string>
#include <vector>

#include "core/certificate/certificate.h"
#include "core/certificate/key_list.h"
#include "core/certificate/testing/example_statement.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

const SigningKey& Key() {
  static const auto* const key = new SigningKey(SigningKey::Generate().value());
  return *key;
}

void Verify(const std::string& envelope, bool is_signed) {
  const std::vector<KnownKey> trusted = {KnownKey(Key().verifying_key())};
  const absl::StatusOr<Verification> verified = VerifyCertificate(envelope, trusted, {});
  RequireJudged(verified.status(), {absl::StatusCode::kInvalidArgument});
  const absl::StatusOr<Statement> opened = OpenSigned(envelope, trusted);
  Require(opened.ok() || absl::IsInvalidArgument(opened.status()) || absl::IsPermissionDenied(opened.status()),
          opened.status().ToString());
  if (!is_signed) {
    Require(!opened.ok() && (!verified.ok() || !verified->passed()), "nothing unsigned passes");
  }
  if (verified.ok() && verified->has_statement()) {
    Require(opened.ok(), "a statement is read in both ways");
    const absl::StatusOr<Statement> again = StatementFromJson(StatementToJson(*opened));
    Require(again.ok() && StatementToJson(*again) == StatementToJson(*opened), "a statement is written as it was read");
  }
}

void Run(const std::string& text) {
  Verify(text, /*is_signed=*/false);
  Verify(SignPayload(text, Key()), /*is_signed=*/true);
  const absl::StatusOr<std::vector<KnownKey>> keys = ParseKeyList(text);
  RequireJudged(keys.status(), {absl::StatusCode::kInvalidArgument});
  if (keys.ok()) {
    const std::string formatted = FormatKeyList(*keys);
    const absl::StatusOr<std::vector<KnownKey>> again = ParseKeyList(formatted);
    Require(again.ok() && FormatKeyList(*again) == formatted, "a list of keys is written as it was read");
  }
}

}  // namespace
}  // namespace dpar::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dpar::fuzz::Run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
