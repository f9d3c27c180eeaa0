#include "server/auth/authenticator.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

constexpr char kHeader[] = "authorization";
constexpr absl::string_view kScheme = "Bearer ";

absl::Status TokenMissing() {
  return MakeError(absl::StatusCode::kUnauthenticated, v1::TOKEN_MISSING,
                   "the call carries no bearer token; send one as metadata 'authorization: Bearer <token>'");
}

absl::Status TokenInvalid() {
  return MakeError(absl::StatusCode::kUnauthenticated, v1::TOKEN_INVALID,
                   "the token is not valid: it is not known, has expired or was revoked. Ask an operator for another");
}

// Stands in for a token that is not there. No SHA-256 is that short, so no secret matches.
StoredToken NoToken() {
  StoredToken none;
  none.salt = std::string(32, '0');
  none.hash = "";
  return none;
}

}  // namespace

absl::StatusOr<StoredToken> Authenticator::Find(const std::string& id) const {
  const absl::StatusOr<StoredToken> stored =
      ReadFrom(database_, [&](Transaction& transaction) { return GetToken(transaction, id); });
  return absl::IsNotFound(stored.status()) ? NoToken() : stored;
}

absl::StatusOr<Identity> Authenticator::Authenticate(const CallMetadata& metadata, absl::Time now) const {
  const auto [first, last] = metadata.equal_range(kHeader);
  if (first == last) {
    return TokenMissing();
  }
  if (std::next(first) != last) {
    return TokenInvalid();
  }
  const absl::string_view header(first->second.data(), first->second.size());
  if (!absl::StartsWithIgnoreCase(header, kScheme)) {
    return TokenMissing();
  }
  // A malformed token takes the same way as an unknown one: the id "-" is not valid, so nothing is stored under it.
  const BearerToken bearer =
      ParseBearerToken(header.substr(kScheme.size())).value_or(BearerToken{"-", std::string(64, '0')});
  DPAR_ASSIGN_OR_RETURN(const StoredToken stored, Find(bearer.id));
  const bool matches = SecretMatches(stored, bearer.secret);
  if (!matches || !IsLive(stored.token, now)) {
    return TokenInvalid();
  }
  return Identity{stored.tenant, stored.token.role(), stored.token.name()};
}

}  // namespace dpar
