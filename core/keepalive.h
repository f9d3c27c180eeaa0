// How both ends of a connection find out that the other is gone, and how often they may ask. The numbers stand together
// because they must agree: a client that pings more often than its server allows is disconnected, in the middle of a
// stream, with ENHANCE_YOUR_CALM.
//
// A watch of a long job is quiet for ten seconds at a time, and a machine that loses its power or its network says
// nothing at all. Without pings a server would hold such a connection, with all its streams, for as long as TCP does:
// some minutes while there is something to send, else for ever. With them it takes kPingPeriod + kPingTimeout.
#ifndef DPAR_CORE_KEEPALIVE_H_
#define DPAR_CORE_KEEPALIVE_H_

#include "absl/time/time.h"

namespace dpar {

// A connection on which nothing came for as long is asked whether it is still there: by the server always, by a client
// while a call of its own is open. It is below the minute or more after which routers forget quiet connections.
inline constexpr absl::Duration kPingPeriod = absl::Seconds(20);
// Without an answer for as long the connection is closed.
inline constexpr absl::Duration kPingTimeout = absl::Seconds(20);
// What the server takes without complaint, from clients of other makes too, also while they have no call open.
inline constexpr absl::Duration kLeastPingPeriod = absl::Seconds(5);
// Pings that came sooner, before the connection is closed for them; data between them forgives.
inline constexpr int kMaxPingStrikes = 2;
// A connection that is not set up by then, TLS included, is closed.
inline constexpr absl::Duration kHandshakeTimeout = absl::Seconds(20);

}  // namespace dpar

#endif  // DPAR_CORE_KEEPALIVE_H_
