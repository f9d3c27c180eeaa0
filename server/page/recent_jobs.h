// Recent, failed and stuck jobs of one tenant (tenants/{t}) or, when it is empty, of all.
#ifndef DPAR_SERVER_PAGE_RECENT_JOBS_H_
#define DPAR_SERVER_PAGE_RECENT_JOBS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dpar/v1/training.pb.h"
#include "server/queue/queue.h"
#include "server/store/database.h"

namespace dpar {

// Running jobs, then waiting ones, oldest first, then ended ones, newest first; at most `limit`. Reads the jobs that
// have not ended, the newest job of every tenant and at most `limit` others.
absl::StatusOr<std::vector<v1::Job>> ListRecentJobs(Transaction& transaction, const std::string& tenant, int64_t limit);

struct NotedJob {
  std::string name;
  std::string failure;  // as Job has it
  absl::Time time;
};
struct NotedJobs {
  int64_t count = 0;
  std::vector<NotedJob> jobs;  // the newest
};
// FAILED jobs that started since `since`, with their end times. Reads all jobs that started since.
absl::StatusOr<NotedJobs> ListFailedJobs(Transaction& transaction, const std::string& tenant, absl::Time since,
                                         int64_t limit);
// RUNNING jobs whose lease ended before `now`, with when.
absl::StatusOr<NotedJobs> ListExpiredLeases(Transaction& transaction, const std::string& tenant, absl::Time now,
                                            int64_t limit);

absl::StatusOr<std::vector<std::string>> JobsWithCertificates(Transaction& transaction,
                                                              const std::vector<std::string>& names);

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_RECENT_JOBS_H_
