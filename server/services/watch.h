// Following a job.
#ifndef DPAR_SERVER_SERVICES_WATCH_H_
#define DPAR_SERVER_SERVICES_WATCH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "dpar/v1/training.pb.h"
#include "server/services/rooms.h"

namespace dpar {

// What one message says of a job: its stored state, and its progress while it runs. Without sequence and time.
v1::WatchJobResponse DescribeProgress(const v1::Job& job, const std::optional<Progress>& progress, absl::Time now);

// Sends the present state at once, then every change (at most ten a second) and at least one message every ten
// seconds, and the terminal one last. Sequence numbers are microseconds since 1970, so that they also rise over a
// restart. `send` returns false when the caller is gone; `gone` says so between messages.
absl::Status Watch(const Rooms& rooms, const std::string& job, int64_t after_sequence,
                   const std::function<bool(const v1::WatchJobResponse&)>& send, const std::function<bool()>& gone);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_WATCH_H_
