// From a call's metadata to the identity behind it.
#ifndef DPAR_SERVER_AUTH_AUTHENTICATOR_H_
#define DPAR_SERVER_AUTH_AUTHENTICATOR_H_

#include <map>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/support/string_ref.h"
#include "server/auth/identity.h"
#include "server/auth/token.h"
#include "server/store/database.h"

namespace dpar {

using CallMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// Thread-safe. The database outlives it.
class Authenticator {
 public:
  explicit Authenticator(Database& database) : database_(database) {}

  // The identity of the one `authorization: Bearer <token>` in the metadata. UNAUTHENTICATED / TOKEN_MISSING without
  // one; UNAUTHENTICATED / TOKEN_INVALID for a token that is malformed, unknown, wrong, expired or revoked, which are
  // not told apart, by answer or by the work done.
  [[nodiscard]] absl::StatusOr<Identity> Authenticate(const CallMetadata& metadata, absl::Time now) const;

 private:
  // What is stored under an id, or a token that no secret matches.
  [[nodiscard]] absl::StatusOr<StoredToken> Find(const std::string& id) const;

  Database& database_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_AUTHENTICATOR_H_
