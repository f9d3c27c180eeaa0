// From a call to the identity behind it.
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

// What a call says of its caller.
struct Call {
  absl::string_view method;  // "Service/Method"
  const CallMetadata& metadata;
  std::string address;  // as PeerAddress has it
  // Of the client certificate, if there was one and the server's --client-ca signed it: its URIs, and no other name.
  std::vector<std::string> certificate_uris = {};
  // Whether the call holds a thread of its own, which a wait keeps from nobody else. Those of gRPC's callback API do
  // not.
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

  // Starts writing down when tokens were last used. Called once.
  void Start() { last_uses_.Start(); }

  // The identity of the one `authorization: Bearer <token>` in the metadata, which alone counts when there is one; else
  // of the one token whose certificate_uri the caller's certificate has. UNAUTHENTICATED / TOKEN_MISSING with neither;
  // UNAUTHENTICATED / TOKEN_INVALID for a token that is malformed, unknown, wrong, expired or revoked, which are not
  // told apart, by answer or by the work done. Returns late, or UNAVAILABLE, where many such came from the same
  // address.
  [[nodiscard]] absl::StatusOr<Identity> Authenticate(const Call& call, absl::Time now) const;

  // The identity of a token by its name, for whoever showed it before (sessions.h). SessionOver when it has expired or
  // was revoked since.
  [[nodiscard]] absl::StatusOr<Identity> Resume(const std::string& token_name, absl::string_view method,
                                                absl::Time now) const;

  // How many calls were UNAUTHENTICATED since the start.
  [[nodiscard]] int64_t failures() const { return brake_.failures(); }
  [[nodiscard]] LastUseLog& last_uses() const { return last_uses_; }

 private:
  // The token behind a call, live.
  [[nodiscard]] absl::StatusOr<StoredToken> TokenOf(const Call& call, absl::Time now) const;
  [[nodiscard]] absl::StatusOr<StoredToken> BearerTokenOf(absl::string_view header, absl::Time now) const;
  [[nodiscard]] absl::StatusOr<StoredToken> CertificateTokenOf(const std::vector<std::string>& uris,
                                                               absl::Time now) const;
  // Who a live token is, for one call. INTERNAL for a method that is none.
  [[nodiscard]] absl::StatusOr<Identity> IdentityOf(const StoredToken& stored, absl::string_view method,
                                                    absl::Time now) const;
  // What is stored under an id, or a token that no secret matches.
  [[nodiscard]] absl::StatusOr<StoredToken> Find(const std::string& id) const;

  Database& database_;
  // Neither has a say in who is who.
  mutable LastUseLog last_uses_;
  mutable FailureBrake brake_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_AUTHENTICATOR_H_
