#ifndef DPAR_SERVER_AUTH_AUTHENTICATOR_H_
#define DPAR_SERVER_AUTH_AUTHENTICATOR_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/string_ref.h"
#include "server/auth/failure_brake.h"
#include "server/auth/identity.h"
#include "server/auth/last_use.h"
#include "server/auth/token.h"
#include "server/store/database.h"

namespace dpar {

using CallMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

struct Call {
  absl::string_view method;  // "Service/Method"
  const CallMetadata& metadata;
  std::string address;  // as PeerAddress has it
  // URIs, and no other names, of a client certificate that --client-ca signed.
  std::vector<std::string> certificate_uris = {};
  // Whether the call has its own thread, so that waiting delays no other call. Calls of gRPC's callback API have none.
  bool may_wait = true;
};
Call DescribeCall(const grpc::ServerContextBase& context, absl::string_view method);

// UNAUTHENTICATED / TOKEN_INVALID, for a browser whose session (sessions.h) has ended.
absl::Status SessionOver();

// Thread-safe. The database outlives it.
class Authenticator {
 public:
  explicit Authenticator(Database& database, FailureBrakeOptions options = {})
      : database_(database), last_uses_(database), brake_(std::move(options)) {}

  // Starts writing last uses of tokens. Called once.
  void Start() { last_uses_.Start(); }

  // The identity of the one `authorization: Bearer <token>`, or, without one, of the one token with the certificate's
  // URI. UNAUTHENTICATED / TOKEN_MISSING with neither; / TOKEN_INVALID for a malformed, unknown, wrong, expired or
  // revoked token, alike in answer and work. Late, or UNAVAILABLE, when many failures came from one address.
  [[nodiscard]] absl::StatusOr<Identity> Authenticate(const Call& call, absl::Time now) const;

  // The identity of a token that a session was opened with (sessions.h). SessionOver when it expired or was revoked.
  [[nodiscard]] absl::StatusOr<Identity> Resume(const std::string& token_name, absl::string_view method,
                                                absl::Time now) const;

  [[nodiscard]] int64_t failures() const { return brake_.failures(); }
  [[nodiscard]] LastUseLog& last_uses() const { return last_uses_; }

 private:
  [[nodiscard]] absl::StatusOr<StoredToken> TokenOf(const Call& call, absl::Time now) const;
  [[nodiscard]] absl::StatusOr<StoredToken> BearerTokenOf(absl::string_view header, absl::Time now) const;
  [[nodiscard]] absl::StatusOr<StoredToken> CertificateTokenOf(const std::vector<std::string>& uris,
                                                               absl::Time now) const;
  // The identity of a live token, for one call. INTERNAL for an unknown method.
  [[nodiscard]] absl::StatusOr<Identity> IdentityOf(const StoredToken& stored, absl::string_view method,
                                                    absl::Time now) const;
  // The stored token, or one that no secret matches.
  [[nodiscard]] absl::StatusOr<StoredToken> Find(const std::string& id) const;

  Database& database_;
  mutable LastUseLog last_uses_;
  mutable FailureBrake brake_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_AUTHENTICATOR_H_
