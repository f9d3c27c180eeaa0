// From gRPC's statuses back to the ones that core/error.h makes, so that a client reads the same reasons as the server
// wrote.
#ifndef DPAR_CLIENT_SDK_STATUS_H_
#define DPAR_CLIENT_SDK_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace dpar {

// The same code and message; every detail of the google.rpc.Status in grpc-status-details-bin becomes a payload, so
// GetErrorInfo works on the result. Details that do not parse are left out.
absl::Status FromGrpcStatus(const grpc::Status& status);

// Whether the connection, and not the answer, failed: the same call may succeed once the server is back. True for
// UNAVAILABLE, and for what gRPC makes of a stream that a stopping server cut.
bool IsTransportFailure(const absl::Status& status);

// How long to wait before retry number `attempt` (0, 1, ...): doubling from 200 ms to 5 s, of which `jitter`, uniform
// on 0..1, decides the second half, and at least what the server asked for with RetryInfo, up to a minute. Callers that
// were cut off together must not come back together, so `jitter` adds up to a quarter to what the server asked for too.
absl::Duration RetryDelay(const absl::Status& status, int attempt, double jitter);

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_STATUS_H_
