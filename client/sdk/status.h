#ifndef DPAR_CLIENT_SDK_STATUS_H_
#define DPAR_CLIENT_SDK_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace dpar {

// Restores what core/error.h made: code, message, and each detail that parses as a payload, so GetErrorInfo works.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Whether the connection failed, so that a retry may succeed: UNAVAILABLE, or a stream that a stopping server cut.
bool IsTransportFailure(const absl::Status& status);

// The wait before retry `attempt` (0, 1, ...): 200 ms doubling to 5 s, its second half times `jitter` in 0..1, and at
// least the server's RetryInfo (up to a minute) plus up to a quarter by jitter, so that clients do not return together.
absl::Duration RetryDelay(const absl::Status& status, int attempt, double jitter);

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_STATUS_H_
