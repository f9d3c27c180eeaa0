// Connections of quiet streams are kept, those of callers that vanished are closed.
#ifndef DPAR_SERVER_SERVICES_KEEPALIVE_H_
#define DPAR_SERVER_SERVICES_KEEPALIVE_H_

#include "absl/time/time.h"
#include "core/keepalive.h"
#include "grpcpp/server_builder.h"

namespace dpar {

// core/keepalive.h says what each is.
struct KeepaliveSettings {
  absl::Duration period = kPingPeriod;
  absl::Duration timeout = kPingTimeout;
  absl::Duration least_period = kLeastPingPeriod;
  absl::Duration handshake_timeout = kHandshakeTimeout;
};

void SetKeepalive(const KeepaliveSettings& settings, grpc::ServerBuilder& builder);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_KEEPALIVE_H_
