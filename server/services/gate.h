// Every call's way: authentication, request id, handler, wire error, log line, metrics, audit log.
#ifndef DPAR_SERVER_SERVICES_GATE_H_
#define DPAR_SERVER_SERVICES_GATE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "server/auth/authenticator.h"
#include "server/auth/identity.h"
#include "server/observe/audit_log.h"
#include "server/observe/metrics.h"
#include "server/services/call_rate.h"
#include "server/services/connections.h"

namespace dpar {

// Calls of a tenant, and of the operators together; those of watches and of the page are limited otherwise.
inline constexpr double kCallsPerSecond = 1'000;

// What an audited call was about: a resource's name, and a fixed word or two where needed.
struct Subject {
  std::string resource;
  std::string note;
};

// Each may be null.
struct CallObservers {
  Metrics* metrics = nullptr;
  AuditLog* audit = nullptr;
  Connections* connections = nullptr;
};

// A call over HTTP: a bearer token, or, without one, the token of a session.
struct WebCall {
  std::string peer;                // as gRPC has it
  std::string request_id = "";     // the caller's own; empty when there is none
  std::string authorization = "";  // the header; empty when there is none
  std::string session_token = "";  // the token's name; empty when there is no live session
  bool has_session = false;        // whether it named a session, live or not
};

// CANCELLED when the call's deadline passed or its caller left. The gate asks before every handler; handlers that work
// long before they change something ask again.
absl::Status CheckWaiting(const grpc::ServerContextBase& context);

// Thread-safe; arguments outlive it. Identities come from here only, so no handler can forget to authenticate.
class Gate {
 public:
  using Handler = std::function<absl::Status(const Identity& caller)>;

  // Asked after the handler; `ok` says whether it succeeded.
  using SubjectOf = std::function<Subject(bool ok)>;

  explicit Gate(const Authenticator& authenticator, CallObservers observers = {});

  // Runs `handler` for the caller behind `context`. `method`, "Service/Method", is a constant in the table of method.h.
  grpc::Status Admit(grpc::ServerContextBase& context, absl::string_view method, const Handler& handler) const;
  // For an audited method.
  grpc::Status Admit(grpc::ServerContextBase& context, absl::string_view method, const SubjectOf& subject,
                     const Handler& handler) const;
  // For a call over HTTP; `subject` may be null. The returned status may be shown to the caller.
  absl::Status Admit(const WebCall& call, absl::string_view method, const SubjectOf& subject,
                     const Handler& handler) const;

 private:
  friend class CallScope;

  const Authenticator& authenticator_;
  const CallObservers observers_;
  mutable CallRate rate_{kCallsPerSecond};
  const std::string id_prefix_;
  mutable std::atomic<int64_t> ids_made_ = 0;
};

// One call from arrival to answer. Admit uses it; handlers that answer after they return hold one themselves.
class CallScope {
 public:
  // Authenticates, and puts the request id into the initial metadata. The gate and the context outlive this.
  CallScope(const Gate& gate, grpc::ServerContextBase& context, absl::string_view method);
  CallScope(const Gate& gate, const WebCall& call, absl::string_view method);
  // Without End, logs the call as a fault.
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  // UNAUTHENTICATED without a valid token: the call must end with this status.
  [[nodiscard]] const absl::StatusOr<Identity>& caller() const { return caller_; }
  void About(Subject subject) { subject_ = std::move(subject); }
  // Logs and counts the call; returns the wire status. Called once.
  grpc::Status End(const absl::Status& status);
  // The same, returning a status that the caller may see.
  absl::Status Finish(const absl::Status& status);

 private:
  void Audit(absl::string_view code, absl::string_view reason);

  const std::string method_;
  const absl::Time start_;
  const CallObservers observers_;
  const std::string peer_;
  const std::string request_id_;
  const absl::StatusOr<Identity> caller_;
  // Whether the call carried credentials: a browser's first visit is no failure.
  const bool tried_ = true;
  Subject subject_;
  bool ended_ = false;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_GATE_H_
