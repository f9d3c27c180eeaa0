// The one place where errors go on the wire: absl::Status to grpc::Status with google.rpc.Status details.
#ifndef DPAR_SERVER_SERVICES_STATUS_H_
#define DPAR_SERVER_SERVICES_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace dpar {

// `status` as a caller may see it. An error without a reason becomes INTERNAL / INTERNAL_FAULT (or UNAVAILABLE /
// SERVER_UNAVAILABLE) with a fixed message, because nobody has judged what its own message gives away; so do the
// messages of faults of the server. CANCELLED stays: only the caller can have caused it.
absl::Status ForCaller(const absl::Status& status);

// ForCaller(status) with its ErrorInfo in the binary error details; besides it, a BadRequest that names what is at
// fault for INVALID_FIELD and INVALID_GRAPH, and a RetryInfo for UNAVAILABLE, the only code that is worth a retry.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_STATUS_H_
