#ifndef DPAR_CLIENT_SDK_WATCH_H_
#define DPAR_CLIENT_SDK_WATCH_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/sdk/cancellation.h"
#include "client/sdk/connection.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

struct WatchOptions {
  std::string job;  // tenants/{t}/jobs/{j}
  // How long the server may stay away before the watch gives up.
  absl::Duration patience = absl::Minutes(2);
};

using WatchEvent = std::function<void(const v1::WatchJobResponse& event)>;
// The connection broke; the next attempt is after `delay`.
using WatchRetry = std::function<void(const absl::Status& status, absl::Duration delay)>;

// Calls `on_event` once for every message that says something new, and returns the terminal one. After a broken
// connection, or a restart of the server, it goes on after the last sequence number shown. CANCELLED by `cancellation`.
absl::StatusOr<v1::WatchJobResponse> WatchJob(Connection& connection, const WatchOptions& options,
                                              const WatchEvent& on_event, const WatchRetry& on_retry,
                                              Cancellation& cancellation);

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_WATCH_H_
