#ifndef DPAR_SERVER_SERVICES_WATCH_H_
#define DPAR_SERVER_SERVICES_WATCH_H_

#include <optional>

#include "absl/time/time.h"
#include "dpar/v1/training.pb.h"
#include "server/worker/progress.h"

namespace dpar {

// A job's stored state, and its progress while it runs; without sequence and time.
v1::WatchJobResponse DescribeProgress(const v1::Job& job, const std::optional<Progress>& progress, absl::Time now);

bool IsTerminal(v1::Job::State state);

// Equal but for rates and times.
bool SaysTheSame(const v1::WatchJobResponse& a, const v1::WatchJobResponse& b);

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_WATCH_H_
