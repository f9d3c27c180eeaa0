#include "server/services/gate.h"

#include <exception>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "core/error.h"
#include "server/observe/log.h"
#include "server/services/status.h"

namespace dpar {
namespace {

// Allocation can fail anywhere below a handler; a call must not take the server down with it.
absl::Status RunGuarded(const Gate::Handler& handler, const Identity& caller) {
  try {
    return handler(caller);
  } catch (const std::exception&) {
    return absl::InternalError("a handler threw");
  }
}

}  // namespace

grpc::Status Gate::Admit(const grpc::ServerContext& context, absl::string_view method, const Handler& handler) const {
  const absl::Time start = absl::Now();
  const absl::StatusOr<Identity> caller = authenticator_.Authenticate(context.client_metadata(), start);
  const absl::Status status = caller.ok() ? RunGuarded(handler, *caller) : caller.status();
  const absl::Status shown = ForCaller(status);
  const std::optional<google::rpc::ErrorInfo> info = GetErrorInfo(shown);
  const std::string code = absl::StatusCodeToString(shown.code());
  LogCall({method, code, info.has_value() ? absl::string_view(info->reason()) : absl::string_view(),
           caller.ok() ? absl::string_view(caller->token) : absl::string_view(), absl::Now() - start});
  if (shown != status) {
    LogFault(method, status);
  }
  return ToGrpcStatus(shown);
}

}  // namespace dpar
