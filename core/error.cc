#include "core/error.h"

#include "absl/strings/cord.h"

namespace dpar {

absl::Status MakeError(absl::StatusCode code, v1::ErrorReason reason, absl::string_view message,
                       const std::map<std::string, std::string>& metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(v1::ErrorReason_Name(reason));
  info.set_domain(std::string(kErrorDomain));
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  absl::Status status(code, message);
  status.SetPayload(kErrorInfoTypeUrl, absl::Cord(info.SerializeAsString()));
  return status;
}

absl::Status InvalidField(absl::string_view field, absl::string_view message) {
  return MakeError(absl::StatusCode::kInvalidArgument, v1::INVALID_FIELD, message, {{"field", std::string(field)}});
}

std::optional<google::rpc::ErrorInfo> GetErrorInfo(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorInfoTypeUrl);
  google::rpc::ErrorInfo info;
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload))) {
    return std::nullopt;
  }
  return info;
}

}  // namespace dpar
