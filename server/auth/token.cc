#include "server/auth/token.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/certificate/digest.h"
#include "core/validate.h"
#include "server/random_text.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

constexpr absl::string_view kPrefix = "dpar_";
constexpr size_t kSecretBytes = 32;
constexpr size_t kSecretDigits = 2 * kSecretBytes;
constexpr size_t kSaltBytes = 16;

bool IsLowerHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

std::string HashSecret(absl::string_view salt_hex, absl::string_view secret) {
  return Sha256Hex(absl::StrCat(absl::HexStringToBytes(salt_hex), secret));
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
  StoredToken stored;
  stored.token.set_name(absl::StrCat(parent, "/tokens/", bearer.id));
  stored.token.set_role(wanted.role());
  stored.token.set_purpose(wanted.purpose());
  *stored.token.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(now));
  if (wanted.has_expire_time()) {
    *stored.token.mutable_expire_time() = wanted.expire_time();
  }
  if (parent != kOperatorParent) {
    stored.tenant = std::string(parent);
  }
  stored.salt = RandomHex(random, kSaltBytes);
  stored.hash = HashSecret(stored.salt, bearer.secret);
  return stored;
}

bool SecretMatches(const StoredToken& stored, absl::string_view secret) {
  return ConstantTimeEqual(HashSecret(stored.salt, secret), stored.hash);
}

bool IsLive(const v1::Token& token, absl::Time now) {
  return !token.has_revoke_time() &&
         (!token.has_expire_time() || absl::ToUnixMicros(now) < ToMicroseconds(token.expire_time()));
}

}  // namespace dpar
