#include "server/services/gate.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "server/observe/log.h"
#include "server/random_text.h"
#include "server/services/status.h"

namespace dpar {
namespace {

constexpr char kRequestIdKey[] = "x-request-id";
constexpr size_t kMaxRequestId = 128;

// Allocation can fail anywhere below a handler; a call must not take the server down with it.
absl::Status RunGuarded(const grpc::ServerContextBase& context, const Gate::Handler& handler, const Identity& caller) {
  DPAR_RETURN_IF_ERROR(CheckWaiting(context));
  try {
    return handler(caller);
  } catch (const std::exception&) {
    return absl::InternalError("a handler threw");
  }
}

std::string NewPrefix() {
  SecureRandom random;
  return RandomId(random);
}

// The caller's id of the request, if it sent exactly one that may stand in a log.
std::optional<std::string> SentRequestId(const CallMetadata& metadata) {
  const auto [first, last] = metadata.equal_range(kRequestIdKey);
  if (first == last || std::next(first) != last) {
    return std::nullopt;
  }
  const grpc::string_ref id = first->second;
  const bool usable = !id.empty() && id.size() <= kMaxRequestId && std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
  return usable ? std::optional<std::string>(std::string(id.data(), id.size())) : std::nullopt;
}

}  // namespace

absl::Status CheckWaiting(const grpc::ServerContextBase& context) {
  return context.IsCancelled() ? absl::CancelledError("the caller went away, or its deadline has passed")
                               : absl::OkStatus();
}

Gate::Gate(const Authenticator& authenticator) : authenticator_(authenticator), id_prefix_(NewPrefix()) {}

grpc::Status Gate::Admit(grpc::ServerContextBase& context, absl::string_view method, const Handler& handler) const {
  CallScope call(*this, context, method);
  return call.End(call.caller().ok() ? RunGuarded(context, handler, *call.caller()) : call.caller().status());
}

CallScope::CallScope(const Gate& gate, grpc::ServerContextBase& context, absl::string_view method)
    : method_(method),
      start_(absl::Now()),
      request_id_(
          SentRequestId(context.client_metadata()).value_or(absl::StrCat(gate.id_prefix_, "-", ++gate.ids_made_))),
      caller_(gate.authenticator_.Authenticate(context.client_metadata(), start_)) {
  context.AddInitialMetadata(kRequestIdKey, request_id_);
}

CallScope::~CallScope() {
  if (!ended_) {
    End(absl::InternalError("the call was not answered"));
  }
}

grpc::Status CallScope::End(const absl::Status& status) {
  ended_ = true;
  const absl::Status shown = ForCaller(status);
  const std::optional<google::rpc::ErrorInfo> info = GetErrorInfo(shown);
  const std::string code = absl::StatusCodeToString(shown.code());
  LogCall({method_, code, info.has_value() ? absl::string_view(info->reason()) : absl::string_view(),
           caller_.ok() ? absl::string_view(caller_->token) : absl::string_view(), request_id_, absl::Now() - start_});
  if (shown != status) {
    LogFault(method_, request_id_, status);
  }
  return ToGrpcStatus(shown);
}

}  // namespace dpar
