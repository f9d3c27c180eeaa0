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
#include "server/auth/method.h"
#include "server/observe/log.h"
#include "server/random_text.h"
#include "server/services/status.h"
#include "server/steady_time.h"

namespace dpar {
namespace {

constexpr char kRequestIdKey[] = "x-request-id";
constexpr size_t kMaxRequestId = 128;

// Allocation can fail in any handler; a call must not end the server.
absl::Status RunGuarded(const Gate::Handler& handler, const Identity& caller) {
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

// A caller's request id, if it is safe to log.
std::optional<std::string> UsableRequestId(absl::string_view id) {
  const bool usable = !id.empty() && id.size() <= kMaxRequestId && std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
  return usable ? std::optional<std::string>(id) : std::nullopt;
}

std::optional<std::string> SentRequestId(const CallMetadata& metadata) {
  const auto [first, last] = metadata.equal_range(kRequestIdKey);
  if (first == last || std::next(first) != last) {
    return std::nullopt;
  }
  return UsableRequestId(absl::string_view(first->second.data(), first->second.size()));
}

// HTTP threads are few, so no failure waits here: excess ones get UNAVAILABLE.
absl::StatusOr<Identity> CallerOf(const Authenticator& authenticator, const WebCall& call, absl::string_view method,
                                  absl::Time now) {
  if (call.authorization.empty()) {
    // No token was tried, so the address is not counted as failing.
    return call.session_token.empty() ? SessionOver() : authenticator.Resume(call.session_token, method, now);
  }
  CallMetadata metadata;
  metadata.emplace("authorization", call.authorization);
  return authenticator.Authenticate(
      {.method = method, .metadata = metadata, .address = PeerAddress(call.peer), .may_wait = false}, now);
}

// The reason of a failed authentication, also where the answer hides it; nothing when the caller is not at fault.
std::optional<std::string> FailureOf(const absl::Status& caller) {
  const std::optional<google::rpc::ErrorInfo> info = GetErrorInfo(caller);
  if (!info.has_value()) {
    return std::nullopt;
  }
  const auto instead_of = info->metadata().find(kInsteadOf);
  if (instead_of != info->metadata().end()) {
    return instead_of->second;
  }
  return absl::IsUnauthenticated(caller) ? std::optional<std::string>(info->reason()) : std::nullopt;
}

const CallObservers& Began(const CallObservers& observers, absl::string_view method) {
  if (observers.metrics != nullptr) {
    observers.metrics->CallBegan(method);
  }
  return observers;
}

}  // namespace

absl::Status CheckWaiting(const grpc::ServerContextBase& context) {
  return context.IsCancelled() ? absl::CancelledError("the caller went away, or its deadline has passed")
                               : absl::OkStatus();
}

Gate::Gate(const Authenticator& authenticator, CallObservers observers)
    : authenticator_(authenticator), observers_(observers), id_prefix_(NewPrefix()) {}

grpc::Status Gate::Admit(grpc::ServerContextBase& context, absl::string_view method, const Handler& handler) const {
  return Admit(context, method, nullptr, handler);
}

grpc::Status Gate::Admit(grpc::ServerContextBase& context, absl::string_view method, const SubjectOf& subject,
                         const Handler& handler) const {
  CallScope call(*this, context, method);
  absl::Status status = call.caller().ok() ? CheckWaiting(context) : call.caller().status();
  if (status.ok()) {
    status = rate_.Take(call.caller()->tenant, SteadyNow());
  }
  if (status.ok()) {
    status = RunGuarded(handler, *call.caller());
  }
  if (subject != nullptr) {
    call.About(subject(status.ok()));
  }
  return call.End(status);
}

absl::Status Gate::Admit(const WebCall& call, absl::string_view method, const SubjectOf& subject,
                         const Handler& handler) const {
  CallScope scope(*this, call, method);
  const absl::Status status = scope.caller().ok() ? RunGuarded(handler, *scope.caller()) : scope.caller().status();
  if (subject != nullptr) {
    scope.About(subject(status.ok()));
  }
  return scope.Finish(status);
}

CallScope::CallScope(const Gate& gate, grpc::ServerContextBase& context, absl::string_view method)
    : method_(method),
      start_(absl::Now()),
      observers_(Began(gate.observers_, method)),
      peer_(context.peer()),
      request_id_(
          SentRequestId(context.client_metadata()).value_or(absl::StrCat(gate.id_prefix_, "-", ++gate.ids_made_))),
      caller_(gate.authenticator_.Authenticate(DescribeCall(context, method), start_)) {
  if (caller_.ok() && observers_.connections != nullptr) {
    observers_.connections->Prove(peer_);
  }
  context.AddInitialMetadata(kRequestIdKey, request_id_);
}

CallScope::CallScope(const Gate& gate, const WebCall& call, absl::string_view method)
    : method_(method),
      start_(absl::Now()),
      observers_(Began(gate.observers_, method)),
      peer_(call.peer),
      request_id_(UsableRequestId(call.request_id).value_or(absl::StrCat(gate.id_prefix_, "-", ++gate.ids_made_))),
      caller_(CallerOf(gate.authenticator_, call, method, start_)),
      tried_(call.has_session || !call.authorization.empty()) {}

CallScope::~CallScope() {
  if (!ended_) {
    End(absl::InternalError("the call was not answered"));
  }
}

void CallScope::Audit(absl::string_view code, absl::string_view reason) {
  const absl::Status written =
      observers_.audit->Write({absl::Now(), request_id_, caller_.ok() ? caller_->token : "", method_, subject_.resource,
                               subject_.note, code, reason, peer_});
  if (!written.ok()) {
    LogFault(method_, request_id_, written);
    if (observers_.metrics != nullptr) {
      observers_.metrics->AuditWriteFailed();
    }
  }
}

grpc::Status CallScope::End(const absl::Status& status) { return ToGrpcStatus(Finish(status)); }

absl::Status CallScope::Finish(const absl::Status& status) {
  ended_ = true;
  const absl::Status shown = ForCaller(status);
  const std::optional<google::rpc::ErrorInfo> info = GetErrorInfo(shown);
  const std::string code = absl::StatusCodeToString(shown.code());
  const std::string reason = info.has_value() ? info->reason() : "";
  const absl::Duration took = absl::Now() - start_;
  LogCall({method_, code, reason, caller_.ok() ? absl::string_view(caller_->token) : absl::string_view(), request_id_,
           took});
  if (shown != status) {
    LogFault(method_, request_id_, status);
  }
  const Method* const method = FindMethod(method_);
  if (observers_.audit != nullptr && (method == nullptr || method->audited)) {
    Audit(code, reason);
  }
  if (observers_.metrics != nullptr) {
    const std::optional<std::string> failure = FailureOf(caller_.status());
    if (failure.has_value() && tried_) {
      observers_.metrics->AuthenticationFailed(*failure);
    }
    observers_.metrics->CallEnded(method_, code, took);
  }
  return shown;
}

}  // namespace dpar
