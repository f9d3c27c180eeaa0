// What every call goes through: authentication, the handler, the error on the wire, one line in the log.
#ifndef DPAR_SERVER_SERVICES_GATE_H_
#define DPAR_SERVER_SERVICES_GATE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "server/auth/authenticator.h"
#include "server/auth/identity.h"

namespace dpar {

// Thread-safe. The authenticator outlives it.
//
// An Identity comes from here only, and nothing of a tenant can be reached without one, so a handler cannot forget to
// authenticate.
class Gate {
 public:
  using Handler = std::function<absl::Status(const Identity& caller)>;

  explicit Gate(const Authenticator& authenticator) : authenticator_(authenticator) {}

  // Runs `handler` for the caller behind `context`. `method` is "Service/Method", for the log.
  grpc::Status Admit(const grpc::ServerContext& context, absl::string_view method, const Handler& handler) const;

 private:
  const Authenticator& authenticator_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_GATE_H_
