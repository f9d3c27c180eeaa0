// Bearer tokens: dpar_{id}_{secret}, a public id and 256 random bits in hex. The store keeps SHA-256(salt + secret); at
// full entropy a slow hash would add nothing.
#ifndef DPAR_SERVER_AUTH_TOKEN_H_
#define DPAR_SERVER_AUTH_TOKEN_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/random/random.h"
#include "dpar/v1/operator.pb.h"
#include "server/resource_name.h"
#include "server/store/tokens.h"

namespace dpar {

struct BearerToken {
  std::string id;
  std::string secret;
};

// Nothing unless `text` has exactly the form of a token.
std::optional<BearerToken> ParseBearerToken(absl::string_view text);
std::string FormatBearerToken(const BearerToken& token);

BearerToken MakeBearerToken(RandomSource& random);

// For the store, with a fresh salt. `parent` is tenants/{t} or operator; `wanted` has role, purpose, expiry, scopes.
StoredToken SealToken(const BearerToken& bearer, absl::string_view parent, const v1::Token& wanted, absl::Time now,
                      RandomSource& random);

// The same for a token that is bound to wanted.certificate_uri() and has no secret.
StoredToken SealCertificateToken(absl::string_view id, absl::string_view parent, const v1::Token& wanted,
                                 absl::Time now);

// INVALID_ARGUMENT / INVALID_FIELD unless it has a scheme and 1 to 500 printable characters. URIs are compared byte by
// byte, so an asterisk is refused.
absl::Status ValidateCertificateUri(absl::string_view field, absl::string_view uri);

// Takes time that depends on neither secret.
bool SecretMatches(const StoredToken& stored, absl::string_view secret);

// Neither revoked nor expired.
bool IsLive(const v1::Token& token, absl::Time now);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_TOKEN_H_
