// What every call goes through: authentication, a request id, the handler, the error on the wire, one line in the log,
// metrics, and the audit log.
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

namespace dpar {

// What an audited call was about: a resource's name, and a fixed word or two where the name does not say it all.
struct Subject {
  std::string resource;
  std::string note;
};

// Where calls are told of, besides the log. Both may be missing.
struct CallObservers {
  Metrics* metrics = nullptr;
  AuditLog* audit = nullptr;
};

// A call that came over HTTP instead of gRPC: a bearer token as its header has it, or, without one, the token of a
// session.
struct WebCall {
  std::string peer;                // as gRPC has it
  std::string request_id = "";     // the caller's own; empty when there is none
  std::string authorization = "";  // the header; empty when there is none
  std::string session_token = "";  // the token's name; empty when there is no live session
  bool has_session = false;        // whether it named a session, live or not
};

// CANCELLED when the call's deadline has passed or its caller has gone: then nothing should be begun for it any more.
// The gate asks before every handler, so only those that work for long before they change something ask again.
absl::Status CheckWaiting(const grpc::ServerContextBase& context);

// Thread-safe. What is passed in outlives it.
//
// An Identity comes from here only, and nothing of a tenant can be reached without one, so a handler cannot forget to
// authenticate.
class Gate {
 public:
  using Handler = std::function<absl::Status(const Identity& caller)>;

  // Asked once the handler has run; `ok` says whether it gave an answer.
  using SubjectOf = std::function<Subject(bool ok)>;

  explicit Gate(const Authenticator& authenticator, CallObservers observers = {});

  // Runs `handler` for the caller behind `context`. `method` is "Service/Method", a constant: what it asks of its
  // caller is in a table under that name, and the log has it.
  grpc::Status Admit(grpc::ServerContextBase& context, absl::string_view method, const Handler& handler) const;
  // The same for a method that is audited, and what the audit log says that it was about.
  grpc::Status Admit(grpc::ServerContextBase& context, absl::string_view method, const SubjectOf& subject,
                     const Handler& handler) const;
  // The same for a call over HTTP; `subject` may be missing. What is returned may be shown to the caller.
  absl::Status Admit(const WebCall& call, absl::string_view method, const SubjectOf& subject,
                     const Handler& handler) const;

 private:
  friend class CallScope;

  const Authenticator& authenticator_;
  const CallObservers observers_;
  // Request ids that the server makes: what tells this process from others, and a number.
  const std::string id_prefix_;
  mutable std::atomic<int64_t> ids_made_ = 0;
};

// One call, from its arrival to its answer. Admit is made of it; handlers that do not answer before they return hold
// one themselves.
class CallScope {
 public:
  // Authenticates, and promises the request's id in the call's initial metadata. The gate and the context outlive this.
  CallScope(const Gate& gate, grpc::ServerContextBase& context, absl::string_view method);
  CallScope(const Gate& gate, const WebCall& call, absl::string_view method);
  // A call that was not ended is one that a fault cut off.
  ~CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

  // UNAUTHENTICATED for a call without a valid token: then nothing is done for it, and it ends with this status.
  [[nodiscard]] const absl::StatusOr<Identity>& caller() const { return caller_; }
  // What the audit log says the call was about.
  void About(Subject subject) { subject_ = std::move(subject); }
  // Logs and counts the call, and returns what goes on the wire. Called once.
  grpc::Status End(const absl::Status& status);
  // The same, as a status that the caller may see.
  absl::Status Finish(const absl::Status& status);

 private:
  void Audit(absl::string_view code, absl::string_view reason);

  const std::string method_;
  const absl::Time start_;
  const CallObservers observers_;
  const std::string peer_;
  const std::string request_id_;
  const absl::StatusOr<Identity> caller_;
  // Whether it showed anything to be known by: a browser's first visit is no failure.
  const bool tried_ = true;
  Subject subject_;
  bool ended_ = false;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_GATE_H_
