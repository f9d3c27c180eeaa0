// What watchers are told of a job.
#ifndef DPAR_SERVER_SERVICES_WATCH_H_
#define DPAR_SERVER_SERVICES_WATCH_H_

#include <optional>

#include "absl/time/time.h"
#include "dpar/v1/training.pb.h"
#include "server/worker/progress.h"

namespace dpar {

// What one message says of a job: its stored state, and its progress while it runs. Without sequence and time.
v1::WatchJobResponse DescribeProgress(const v1::Job& job, const std::optional<Progress>& progress, absl::Time now);

// Whether a job in this state has ended.
bool IsTerminal(v1::Job::State state);

// Whether two messages say the same, but for rates and times.
bool SaysTheSame(const v1::WatchJobResponse& a, const v1::WatchJobResponse& b);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_WATCH_H_
