// Jobs: durable, first in first out within a tenant, fair between tenants, each leased by one worker at a time. All
// functions run inside the caller's transaction.
//
// A lease is the right to run a job until it expires, unless it is renewed. Its number is a fencing token: it rises
// with every lease of the job, and whoever ends or renews must hold the present one, unexpired. So a worker that stood
// still past its lease can do nothing any more, whether or not somebody else has taken the job. Expiry is judged by the
// clocks of the servers; clocks that differ by less than a lease make a job start late or twice, never end twice.
#ifndef DPAR_SERVER_QUEUE_QUEUE_H_
#define DPAR_SERVER_QUEUE_QUEUE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dpar/v1/training.pb.h"
#include "server/store/database.h"

namespace dpar {

// A job as stored: the API's view, and what the worker needs besides.
struct StoredJob {
  v1::Job job;
  std::string budget_id;          // empty for public data
  bool cancel_requested = false;  // the running worker must stop and void
  int64_t lease = 0;              // number of the last lease; 0 before the first
  absl::Time lease_expire_time;   // of that lease
  std::string fingerprint;        // of the request that made it
};

// Files, certificate and evaluation of a job that succeeded.
struct JobOutput {
  std::string weights_sha256;
  int64_t weights_bytes = 0;
  std::string script_sha256;
  int64_t script_bytes = 0;
  std::string envelope;                      // the certificate's exact bytes
  std::optional<v1::Evaluation> evaluation;  // there when one was asked for; becomes Job.evaluation
  int64_t lease = 0;                         // of the attempt that wrote the files
};

// RESOURCE_EXHAUSTED when the dataset's tenant already has `max_queued` jobs that have not ended. Of submissions that
// run at the same moment on PostgreSQL, each counts only those committed before it.
absl::Status CheckQueueLimit(Transaction& transaction, const std::string& dataset, int64_t max_queued);

// Adds a QUEUED job. `job.name`, spec, plan, create_time, priority and memory_bytes are set.
// ALREADY_EXISTS, at the latest from the commit, when there is a job of that name.
absl::Status Enqueue(Transaction& transaction, const StoredJob& job);

// One job. NOT_FOUND when there is none of that name.
absl::StatusOr<StoredJob> GetJob(Transaction& transaction, const std::string& name);
// The same for whoever changes it: no other transaction does until this one ends. Without its messages: spec, plan,
// evaluation and progress.
absl::StatusOr<StoredJob> LockJob(Transaction& transaction, const std::string& name);

// What watchers are told of jobs: state, progress while it runs, the plan once it succeeded; no more is read. Jobs that
// are not there are left out. A row that cannot be read back is the error of its own job alone.
using JobStandings = std::map<std::string, absl::StatusOr<v1::Job>>;
absl::StatusOr<JobStandings> GetStandings(Transaction& transaction, const std::vector<std::string>& names);

// A tenant's jobs, newest first. `page_token` as in the API.
struct JobPage {
  std::vector<v1::Job> jobs;
  std::string next_page_token;
};
absl::StatusOr<JobPage> ListJobs(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                 const std::string& page_token);

// Jobs of a dataset that have not ended: looks at the live jobs of its tenant.
absl::StatusOr<int64_t> CountLiveJobs(Transaction& transaction, const std::string& dataset);

// Jobs that have not ended, of one tenant (tenants/{t}) or, when it is empty, of all.
struct QueueState {
  int64_t queued = 0;
  int64_t running = 0;
  std::optional<absl::Time> oldest_queued;  // when the one that waits longest was submitted
};
absl::StatusOr<QueueState> GetQueueState(Transaction& transaction, const std::string& tenant = "");

// Who leases, and what it can run.
struct LeaseRequest {
  std::string owner;
  absl::Time now;
  absl::Duration duration;
  int64_t max_running_jobs = 0;  // of a tenant at once
  int64_t free_bytes = 0;        // for a job now
  int64_t total_bytes = 0;       // for a job when nothing else runs here
};
// Takes the next QUEUED job, marks it RUNNING and counts its attempt: of the tenant with the fewest jobs running, then
// of the one whose last job started longest ago; of that tenant's jobs the one of highest priority, then the oldest.
// Nothing when none waits, or when the next one needs more than is free: smaller ones do not overtake it, so that it is
// not starved. Jobs that never fit here are left to other servers. O(tenants that wait), whatever the queue's length.
absl::StatusOr<std::optional<StoredJob>> Lease(Transaction& transaction, const LeaseRequest& request);

// Extends a lease and stores the job's progress. Returns the job as LockJob does, to see whether its cancel was
// requested.
// FAILED_PRECONDITION when the lease is lost.
absl::StatusOr<StoredJob> Renew(Transaction& transaction, const std::string& name, int64_t lease, absl::Time now,
                                absl::Duration duration, const std::optional<v1::JobProgress>& progress);

// FAILED_PRECONDITION unless the job is RUNNING under this lease, which has not expired.
absl::Status CheckLease(const StoredJob& job, int64_t lease, absl::Time now);
// The same of the stored job, which it locks as LockJob does.
absl::StatusOr<StoredJob> HoldLease(Transaction& transaction, const std::string& name, int64_t lease, absl::Time now);

// RUNNING jobs whose lease expired, or, with `everyone`, all of them: for a server that has the store to itself, at its
// start.
absl::StatusOr<std::vector<StoredJob>> OrphanedJobs(Transaction& transaction, absl::Time now, bool everyone);

// Puts a RUNNING job back, not to be leased before `not_before`. After a clean shutdown (`count_attempt` false) the
// attempt is not held against it.
absl::Status Requeue(Transaction& transaction, const std::string& name, bool count_attempt, absl::Time not_before);

// Ends a RUNNING job as SUCCEEDED with its output. The caller holds its lease.
absl::Status Succeed(Transaction& transaction, const std::string& name, const JobOutput& output, absl::Time now);

// Ends a job that has not ended as FAILED or CANCELLED. FAILED_PRECONDITION when it has ended.
absl::Status End(Transaction& transaction, const std::string& name, v1::Job::State state, const std::string& failure,
                 absl::Time now);

// Asks the worker of a RUNNING job to stop.
absl::Status RequestCancel(Transaction& transaction, const std::string& name);

// The output of a job that SUCCEEDED. FAILED_PRECONDITION / JOB_NOT_SUCCEEDED otherwise.
absl::StatusOr<JobOutput> GetOutput(Transaction& transaction, const std::string& name);

// The certificates of a budget's jobs.
absl::StatusOr<std::vector<std::string>> Envelopes(Transaction& transaction, const std::string& budget_id);

}  // namespace dpar

#endif  // DPAR_SERVER_QUEUE_QUEUE_H_
