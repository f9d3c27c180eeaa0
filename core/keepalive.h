// How both ends of a connection find out that the other is gone. The numbers must agree: a server disconnects a client
// that pings too often, with ENHANCE_YOUR_CALM. Without pings a server would hold a dead connection and its streams for
// minutes while it sends, else for ever; with them, for kPingPeriod + kPingTimeout.
#ifndef DPAR_CORE_KEEPALIVE_H_
#define DPAR_CORE_KEEPALIVE_H_

#include "absl/time/time.h"

namespace dpar {

// Silence before a ping (a client's only during a call); below the minute after which routers forget connections.
inline constexpr absl::Duration kPingPeriod = absl::Seconds(20);
inline constexpr absl::Duration kPingTimeout = absl::Seconds(20);  // then the connection is closed
// The server accepts this from any client, also without a call open.
inline constexpr absl::Duration kLeastPingPeriod = absl::Seconds(5);
inline constexpr int kMaxPingStrikes = 2;  // sooner pings before the connection is closed; data resets the count
inline constexpr absl::Duration kHandshakeTimeout = absl::Seconds(20);  // TLS included

}  // namespace dpar

#endif  // DPAR_CORE_KEEPALIVE_H_
