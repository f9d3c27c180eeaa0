#include "server/services/status.h"

#include <cstdint>
#include <optional>
#include <string>

#include "core/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/store/unavailable.h"

namespace dpar {
namespace {

constexpr absl::string_view kFault =
    "the server met a fault of its own; nothing about the data can be inferred from it";
constexpr absl::string_view kCorrupt = "stored state failed its check; an operator has to look at the server's log";
constexpr absl::string_view kUnavailable = "the server or its store is busy or stopping; try again";

// Least wait before a retry: a busy store is mostly free by then, a restarting server back after a few tries.
constexpr int64_t kRetrySeconds = 1;

// The field or file at fault; nothing for other errors.
std::optional<google::rpc::BadRequest> Violation(const google::rpc::ErrorInfo& info, const std::string& message) {
  const bool field = info.reason() == v1::ErrorReason_Name(v1::INVALID_FIELD);
  const bool graph = info.reason() == v1::ErrorReason_Name(v1::INVALID_GRAPH);
  const auto where = info.metadata().find(graph ? "array" : "field");
  if (!(field || graph) || where == info.metadata().end()) {
    return std::nullopt;
  }
  google::rpc::BadRequest request;
  google::rpc::BadRequest::FieldViolation& violation = *request.add_field_violations();
  violation.set_field(where->second);
  violation.set_description(message);
  return request;
}

}  // namespace

absl::Status ForCaller(const absl::Status& status) {
  const std::optional<google::rpc::ErrorInfo> info = GetErrorInfo(status);
  if (status.ok() || (absl::IsCancelled(status) && !info.has_value())) {
    return status;
  }
  if (absl::IsUnavailable(status) && (!info.has_value() || info->metadata().contains(kForTheLog))) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, kUnavailable);
  }
  if (!info.has_value() || absl::IsInternal(status) || absl::IsUnknown(status)) {
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, kFault);
  }
  if (absl::IsDataLoss(status)) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, kCorrupt,
                     {info->metadata().begin(), info->metadata().end()});
  }
  return status;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  const absl::Status shown = ForCaller(status);
  if (shown.ok()) {
    return grpc::Status::OK;
  }
  // Both enumerations use google.rpc.Code's numbers.
  const auto code = static_cast<grpc::StatusCode>(shown.code());
  const std::string message(shown.message());
  const std::optional<google::rpc::ErrorInfo> info = GetErrorInfo(shown);
  if (!info.has_value()) {
    return {code, message};
  }
  google::rpc::Status details;
  details.set_code(static_cast<int>(code));
  details.set_message(message);
  details.add_details()->PackFrom(*info);
  if (const std::optional<google::rpc::BadRequest> violation = Violation(*info, message)) {
    details.add_details()->PackFrom(*violation);
  }
  if (absl::IsUnavailable(shown)) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(kRetrySeconds);
    details.add_details()->PackFrom(retry);
  }
  return {code, message, details.SerializeAsString()};
}

}  // namespace dpar
