// Keeps connections of quiet streams and closes those of vanished callers (core/keepalive.h).
#ifndef DPAR_SERVER_SERVICES_KEEPALIVE_H_
#define DPAR_SERVER_SERVICES_KEEPALIVE_H_

#include "absl/time/time.h"
#include "core/keepalive.h"
#include "grpcpp/server_builder.h"

namespace dpar {

struct KeepaliveSettings {
  absl::Duration period = kPingPeriod;
  absl::Duration timeout = kPingTimeout;
  absl::Duration least_period = kLeastPingPeriod;
  absl::Duration handshake_timeout = kHandshakeTimeout;
};

void SetKeepalive(const KeepaliveSettings& settings, grpc::ServerBuilder& builder);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_KEEPALIVE_H_
