#include "client/sdk/status.h"

#include <algorithm>
#include <string>

#include "absl/strings/cord.h"
#include "core/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace dpar {
namespace {

constexpr absl::string_view kRetryInfoTypeUrl = "type.googleapis.com/google.rpc.RetryInfo";
constexpr absl::Duration kFirstDelay = absl::Milliseconds(200);
constexpr absl::Duration kLongestDelay = absl::Seconds(5);
constexpr int kMostDoublings = 10;

}  // namespace

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) {
    return absl::OkStatus();
  }
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) {
    return result;
  }
  for (const google::protobuf::Any& detail : details.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

bool IsTransportFailure(const absl::Status& status) {
  if (absl::IsUnavailable(status)) {
    return true;
  }
  return (absl::IsCancelled(status) || absl::IsUnknown(status)) && !GetErrorInfo(status).has_value();
}

absl::Duration RetryDelay(const absl::Status& status, int attempt, double jitter) {
  const absl::Duration longest =
      std::min(kLongestDelay, kFirstDelay * (int64_t{1} << std::clamp(attempt, 0, kMostDoublings)));
  const absl::Duration delay = longest * (0.5 + 0.5 * jitter);
  const auto payload = status.GetPayload(kRetryInfoTypeUrl);
  google::rpc::RetryInfo info;
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload))) {
    return delay;
  }
  const absl::Duration asked =
      absl::Seconds(info.retry_delay().seconds()) + absl::Nanoseconds(info.retry_delay().nanos());
  return std::max(delay, std::min(asked, absl::Minutes(1)) * (1 + 0.25 * jitter));
}

}  // namespace dpar
