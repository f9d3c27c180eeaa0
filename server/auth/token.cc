#include "server/auth/token.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/validate.h"
#include "server/random_text.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

constexpr absl::string_view kPrefix = "dpar_";
constexpr size_t kSecretBytes = 32;
constexpr size_t kSecretDigits = 2 * kSecretBytes;
constexpr size_t kSaltBytes = 16;
constexpr size_t kMaxCertificateUri = 500;

bool IsLowerHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

std::string HashSecret(absl::string_view salt_hex, absl::string_view secret) {
  return Sha256Hex(absl::StrCat(salt_hex, secret));
}

StoredToken Describe(absl::string_view id, absl::string_view parent, const v1::Token& wanted, absl::Time now) {
  StoredToken stored;
  stored.token.set_name(absl::StrCat(parent, "/tokens/", id));
  stored.token.set_role(wanted.role());
  stored.token.set_purpose(wanted.purpose());
  *stored.token.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(now));
  if (wanted.has_expire_time()) {
    *stored.token.mutable_expire_time() = wanted.expire_time();
  }
  const std::set<int> scopes(wanted.scopes().begin(), wanted.scopes().end());
  for (const int scope : scopes) {
    stored.token.add_scopes(static_cast<v1::Scope>(scope));
  }
  if (parent != kOperatorParent) {
    stored.tenant = std::string(parent);
  }
  return stored;
}

}  // namespace

std::optional<BearerToken> ParseBearerToken(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kPrefix)) {
    return std::nullopt;
  }
  const size_t separator = text.find('_');
  if (separator == absl::string_view::npos) {
    return std::nullopt;
  }
  const absl::string_view id = text.substr(0, separator);
  const absl::string_view secret = text.substr(separator + 1);
  if (!ValidateId("token", id).ok() || secret.size() != kSecretDigits ||
      !std::all_of(secret.begin(), secret.end(), IsLowerHexDigit)) {
    return std::nullopt;
  }
  return BearerToken{std::string(id), std::string(secret)};
}

std::string FormatBearerToken(const BearerToken& token) { return absl::StrCat(kPrefix, token.id, "_", token.secret); }

BearerToken MakeBearerToken(RandomSource& random) {
  std::string id = RandomId(random);
  return BearerToken{std::move(id), RandomHex(random, kSecretBytes)};
}

StoredToken SealToken(const BearerToken& bearer, absl::string_view parent, const v1::Token& wanted, absl::Time now,
                      RandomSource& random) {
  StoredToken stored = Describe(bearer.id, parent, wanted, now);
  stored.salt = RandomHex(random, kSaltBytes);
  stored.hash = HashSecret(stored.salt, bearer.secret);
  return stored;
}

StoredToken SealCertificateToken(absl::string_view id, absl::string_view parent, const v1::Token& wanted,
                                 absl::Time now) {
  StoredToken stored = Describe(id, parent, wanted, now);
  stored.token.set_certificate_uri(wanted.certificate_uri());
  return stored;
}

absl::Status ValidateCertificateUri(absl::string_view field, absl::string_view uri) {
  const size_t colon = uri.find(':');
  const absl::string_view scheme = colon == absl::string_view::npos ? "" : uri.substr(0, colon);
  const auto in_scheme = [](unsigned char c) { return absl::ascii_isalnum(c) || c == '+' || c == '-' || c == '.'; };
  const bool has_scheme = !scheme.empty() && colon + 1 < uri.size() &&
                          absl::ascii_isalpha(static_cast<unsigned char>(uri.front())) &&
                          std::all_of(scheme.begin(), scheme.end(), in_scheme);
  if (!has_scheme || uri.size() > kMaxCertificateUri || !std::all_of(uri.begin(), uri.end(), absl::ascii_isgraph)) {
    return InvalidField(field, absl::StrCat(field, " must be a URI with its scheme, of at most ", kMaxCertificateUri,
                                            " printable characters, such as spiffe://example.org/trainer"));
  }
  if (absl::StrContains(uri, '*')) {
    return InvalidField(field, absl::StrCat(field, " is compared as it stands, so it must not have an asterisk in it"));
  }
  return absl::OkStatus();
}

bool SecretMatches(const StoredToken& stored, absl::string_view secret) {
  return ConstantTimeEqual(HashSecret(stored.salt, secret), stored.hash);
}

bool IsLive(const v1::Token& token, absl::Time now) {
  return !token.has_revoke_time() &&
         (!token.has_expire_time() || absl::ToUnixMicros(now) < ToMicroseconds(token.expire_time()));
}

}  // namespace dpar
