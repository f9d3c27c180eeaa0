// Following a job on the terminal, shared by `train` and `watch`.
#ifndef DPAR_CLIENT_CLI_WATCHING_H_
#define DPAR_CLIENT_CLI_WATCHING_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/progress.h"
#include "client/cli/session.h"
#include "client/sdk/cancellation.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// A message of a job as a line of progress.
ProgressState ProgressOf(const v1::WatchJobResponse& event);

// Shows a job's progress until it ends, then how it ended and what to run next. `cancellation` is what Ctrl-C cancels:
// the job is left running, and the exit code is 130. Otherwise 0 when it succeeded and 1 when it did not.
absl::StatusOr<int> FollowJob(Session& session, const std::string& job, Cancellation& cancellation);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_WATCHING_H_
