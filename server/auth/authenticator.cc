#include "server/auth/authenticator.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "grpc/grpc_security_constants.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

constexpr char kHeader[] = "authorization";
constexpr absl::string_view kScheme = "Bearer ";
// Bounds the lookups for one certificate.
constexpr size_t kMaxCertificateUris = 8;

absl::Status TokenMissing() {
  return MakeError(absl::StatusCode::kUnauthenticated, v1::TOKEN_MISSING,
                   "the call carries no bearer token, nor a client certificate with a URI; send a token as metadata "
                   "'authorization: Bearer <token>'");
}

absl::Status TokenInvalid() {
  return MakeError(absl::StatusCode::kUnauthenticated, v1::TOKEN_INVALID,
                   "the token is not valid: it is not known, has expired or was revoked. Ask an operator for another");
}

absl::Status NoSuchMethod() { return absl::InternalError("a method without a row in the table of methods was called"); }

}  // namespace

absl::Status SessionOver() {
  return MakeError(
      absl::StatusCode::kUnauthenticated, v1::TOKEN_INVALID,
      "there is no session, or it is over: it was not used for a while, has reached its end, or its token has "
      "expired or was revoked. Sign in");
}

namespace {

// Stands in for a missing token or secret. It is no SHA-256 in hex, so no secret matches.
StoredToken NoToken() {
  StoredToken none;
  none.salt = std::string(32, '0');
  none.hash = std::string(64, '-');
  return none;
}

}  // namespace

Call DescribeCall(const grpc::ServerContextBase& context, absl::string_view method) {
  Call call{method, context.client_metadata(), PeerAddress(context.peer())};
  // This property holds URIs only. The peer's identity mixes them with DNS names, where a URI might pass unchecked.
  for (const grpc::string_ref& uri : context.auth_context()->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    call.certificate_uris.emplace_back(uri.data(), uri.size());
  }
  call.may_wait = dynamic_cast<const grpc::CallbackServerContext*>(&context) == nullptr;
  return call;
}

absl::StatusOr<Identity> Authenticator::Authenticate(const Call& call, absl::Time now) const {
  if (FindMethod(call.method) == nullptr) {
    return NoSuchMethod();
  }
  const absl::StatusOr<StoredToken> stored = TokenOf(call, now);
  if (absl::IsUnauthenticated(stored.status())) {
    return brake_.Slow(call.address, stored.status(), now, call.may_wait);
  }
  DPAR_RETURN_IF_ERROR(stored.status());
  return IdentityOf(*stored, call.method, now);
}

absl::StatusOr<Identity> Authenticator::Resume(const std::string& token_name, absl::string_view method,
                                               absl::Time now) const {
  const absl::StatusOr<StoredToken> stored =
      ReadFrom(database_, [&](Transaction& transaction) { return GetToken(transaction, TokenId(token_name)); });
  if (absl::IsNotFound(stored.status()) || (stored.ok() && !IsLive(stored->token, now))) {
    return SessionOver();
  }
  DPAR_RETURN_IF_ERROR(stored.status());
  return IdentityOf(*stored, method, now);
}

absl::StatusOr<Identity> Authenticator::IdentityOf(const StoredToken& stored, absl::string_view method_name,
                                                   absl::Time now) const {
  const Method* const method = FindMethod(method_name);
  if (method == nullptr) {
    return NoSuchMethod();
  }
  const v1::Token& token = stored.token;
  last_uses_.Note(TokenId(token.name()), now);
  Identity identity{stored.tenant, token.role(), token.name()};
  for (const int scope : token.scopes()) {
    identity.scopes.push_back(static_cast<v1::Scope>(scope));
  }
  if (token.has_expire_time()) {
    identity.expire_time = token.expire_time();
  }
  identity.method = *method;
  return identity;
}

absl::StatusOr<StoredToken> Authenticator::TokenOf(const Call& call, absl::Time now) const {
  const auto [first, last] = call.metadata.equal_range(kHeader);
  if (first != last) {
    return std::next(first) == last ? BearerTokenOf(absl::string_view(first->second.data(), first->second.size()), now)
                                    : TokenInvalid();
  }
  if (!call.certificate_uris.empty()) {
    return CertificateTokenOf(call.certificate_uris, now);
  }
  return TokenMissing();
}

absl::StatusOr<StoredToken> Authenticator::BearerTokenOf(absl::string_view header, absl::Time now) const {
  if (!absl::StartsWithIgnoreCase(header, kScheme)) {
    return TokenMissing();
  }
  // A malformed token costs the same work as an unknown one: the id "-" is invalid, so nothing is stored under it.
  const BearerToken bearer =
      ParseBearerToken(header.substr(kScheme.size())).value_or(BearerToken{"-", std::string(64, '0')});
  DPAR_ASSIGN_OR_RETURN(StoredToken stored, Find(bearer.id));
  const bool matches = SecretMatches(stored, bearer.secret);
  const bool live = IsLive(stored.token, now);
  if (!matches || !live) {
    return TokenInvalid();
  }
  return stored;
}

absl::StatusOr<StoredToken> Authenticator::CertificateTokenOf(const std::vector<std::string>& uris,
                                                              absl::Time now) const {
  if (uris.size() > kMaxCertificateUris) {
    return TokenInvalid();
  }
  std::optional<StoredToken> found;
  for (const std::string& uri : uris) {
    if (!ValidateCertificateUri("uri", uri).ok()) {
      continue;
    }
    absl::StatusOr<StoredToken> stored =
        ReadFrom(database_, [&](Transaction& transaction) { return GetCertificateToken(transaction, uri); });
    if (absl::IsNotFound(stored.status())) {
      continue;
    }
    DPAR_RETURN_IF_ERROR(stored.status());
    if (!IsLive(stored->token, now)) {
      continue;
    }
    // Two tokens match: ambiguous.
    if (found.has_value() && found->token.name() != stored->token.name()) {
      return TokenInvalid();
    }
    found = *std::move(stored);
  }
  if (!found.has_value()) {
    return TokenInvalid();
  }
  return *std::move(found);
}

absl::StatusOr<StoredToken> Authenticator::Find(const std::string& id) const {
  const absl::StatusOr<StoredToken> stored =
      ReadFrom(database_, [&](Transaction& transaction) { return GetToken(transaction, id); });
  const bool has_no_secret = stored.ok() && !stored->token.certificate_uri().empty();
  return absl::IsNotFound(stored.status()) || has_no_secret ? NoToken() : stored;
}

}  // namespace dpar
