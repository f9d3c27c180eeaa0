// The one place where errors go on the wire: absl::Status to grpc::Status with google.rpc.Status details.
#ifndef DPAR_SERVER_SERVICES_STATUS_H_
#define DPAR_SERVER_SERVICES_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace dpar {

// As a caller may see it: errors without a reason, and faults of the server, become INTERNAL / INTERNAL_FAULT (or
// UNAVAILABLE / SERVER_UNAVAILABLE) with a fixed message, because theirs may reveal data. CANCELLED stays.
absl::Status ForCaller(const absl::Status& status);

// ForCaller(status) with ErrorInfo; a BadRequest for INVALID_FIELD and INVALID_GRAPH, a RetryInfo for UNAVAILABLE.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_STATUS_H_
