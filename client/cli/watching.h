#ifndef DPAR_CLIENT_CLI_WATCHING_H_
#define DPAR_CLIENT_CLI_WATCHING_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/progress.h"
#include "client/cli/session.h"
#include "client/sdk/cancellation.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

ProgressState ProgressOf(const v1::WatchJobResponse& event);

// Watches a job until it ends, then says how it ended and what to run next. Returns exit code 0 if it succeeded, 1 if
// not, 130 if Ctrl-C cancelled `cancellation`; the job then keeps running.
absl::StatusOr<int> FollowJob(Session& session, const std::string& job, Cancellation& cancellation);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_WATCHING_H_
