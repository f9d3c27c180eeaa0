// Bearer tokens: dpar_{id}_{secret}, where the id is public and the secret is 256 random bits in hex. The store keeps
// SHA-256(salt + secret) only; the secret has full entropy, so a slow hash would add nothing.
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

// The two parts of a bearer token.
struct BearerToken {
  std::string id;
  std::string secret;
};

// Nothing unless `text` has exactly the form of a token.
std::optional<BearerToken> ParseBearerToken(absl::string_view text);
std::string FormatBearerToken(const BearerToken& token);

// A fresh id and secret.
BearerToken MakeBearerToken(RandomSource& random);

// A token as it is stored, under a fresh salt. `parent` is tenants/{t} or operator; role, purpose, expire_time and
// scopes are read from `wanted`.
StoredToken SealToken(const BearerToken& bearer, absl::string_view parent, const v1::Token& wanted, absl::Time now,
                      RandomSource& random);

// The same for a token that belongs to the holder of a certificate: it has wanted.certificate_uri() and no secret.
StoredToken SealCertificateToken(absl::string_view id, absl::string_view parent, const v1::Token& wanted,
                                 absl::Time now);

// Whether a certificate_uri can be one: a scheme and more, 1 to 500 printable characters. It is compared as it stands,
// byte by byte, so an asterisk, which would promise more, is refused. INVALID_ARGUMENT / INVALID_FIELD.
absl::Status ValidateCertificateUri(absl::string_view field, absl::string_view uri);

// Whether the secret is the stored one, in time that depends on neither.
bool SecretMatches(const StoredToken& stored, absl::string_view secret);

// Neither revoked nor expired.
bool IsLive(const v1::Token& token, absl::Time now);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_TOKEN_H_
