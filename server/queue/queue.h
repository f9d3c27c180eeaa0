// Jobs: durable, first in first out within a tenant, fair between tenants, leased by one worker at a time. All
// functions run inside the caller's transaction.
//
// A lease's number is a fencing token: it rises with every lease of the job, and ending or renewing requires the
// current one. So a worker from which a job was taken back can change nothing.
// A server takes a job back whose lease it saw unchanged for the lease's length by its own steady clock. The stored
// time only shows that a lease was renewed; members' clocks may differ.
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

struct StoredJob {
  v1::Job job;
  std::string population;         // empty for public data
  bool cancel_requested = false;  // the running worker must stop and void
  int64_t lease = 0;              // number of the last lease; 0 before the first
  int openings = 0;               // leases, the present one too, in which the data may have been opened
  absl::Time lease_expire_time;   // of that lease
  std::string fingerprint;        // of the request that made it
};

struct OutputFile {
  std::string sha256;
  int64_t bytes = 0;

  bool operator==(const OutputFile&) const = default;
};

struct JobOutput {
  std::map<std::string, OutputFile> files;   // by name (DataDirectory::ModelFile)
  std::string envelope;                      // the certificate's exact bytes
  std::optional<v1::Evaluation> evaluation;  // there when one was asked for; becomes Job.evaluation
  int64_t lease = 0;                         // of the attempt that wrote the files
};

// RESOURCE_EXHAUSTED at `max_queued` live jobs of the tenant. On PostgreSQL, uncommitted submissions do not count.
absl::Status CheckQueueLimit(Transaction& transaction, const std::string& dataset, int64_t max_queued);

// Adds a QUEUED job; name, spec, plan, create_time, priority and memory_bytes are set. ALREADY_EXISTS, at the latest
// from the commit, for a name that is taken.
absl::Status Enqueue(Transaction& transaction, const StoredJob& job);

absl::StatusOr<StoredJob> GetJob(Transaction& transaction, const std::string& name);
// GetJob without spec, plan, evaluation and progress, locked until the transaction ends. Both may return NOT_FOUND.
absl::StatusOr<StoredJob> LockJob(Transaction& transaction, const std::string& name);

// State, progress while running, plan after success. Omits unknown jobs; an unreadable row is an error of its job only.
using JobStandings = std::map<std::string, absl::StatusOr<v1::Job>>;
absl::StatusOr<JobStandings> GetStandings(Transaction& transaction, const std::vector<std::string>& names);

// Newest first. `page_token` as in the API.
struct JobPage {
  std::vector<v1::Job> jobs;
  std::string next_page_token;
};
absl::StatusOr<JobPage> ListJobs(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                 const std::string& page_token);

// Reads the live jobs of the dataset's tenant.
absl::StatusOr<int64_t> CountLiveJobs(Transaction& transaction, const std::string& dataset);

// Live jobs of one tenant (tenants/{t}) or, when it is empty, of all.
struct QueueState {
  int64_t queued = 0;
  int64_t running = 0;
  std::optional<absl::Time> oldest_queued;  // when the one that waits longest was submitted
};
absl::StatusOr<QueueState> GetQueueState(Transaction& transaction, const std::string& tenant = "");

struct LeaseRequest {
  std::string owner;
  absl::Time now;
  absl::Duration duration;
  int64_t max_running_jobs = 0;  // of a tenant at once
  int64_t free_bytes = 0;        // for a job now
  int64_t total_bytes = 0;       // for a job when nothing else runs here
};
// Marks the next QUEUED job RUNNING and counts its attempt: of the tenant with the fewest running jobs, then whose last
// job started longest ago, the highest priority, then the oldest. Nothing when the next job needs more than is free: no
// smaller one overtakes it, which would starve it. Jobs that never fit here are left to others. O(waiting tenants).
absl::StatusOr<std::optional<StoredJob>> Lease(Transaction& transaction, const LeaseRequest& request);

// Extends a lease and stores progress. Returns the job as LockJob does. FAILED_PRECONDITION when the lease is lost.
absl::StatusOr<StoredJob> Renew(Transaction& transaction, const std::string& name, int64_t lease, absl::Time now,
                                absl::Duration duration, const std::optional<v1::JobProgress>& progress);

// FAILED_PRECONDITION unless the job is RUNNING under this lease. HoldLease also locks it. No clock is asked: a lease
// is lost when somebody takes the job back, which changes its state.
absl::Status CheckLease(const StoredJob& job, int64_t lease);
absl::StatusOr<StoredJob> HoldLease(Transaction& transaction, const std::string& name, int64_t lease);

absl::StatusOr<std::vector<StoredJob>> RunningJobs(Transaction& transaction);

// The longest that a job waits for its next attempt.
inline constexpr absl::Duration kLongestPause = absl::Minutes(5);
// Lets QUEUED jobs run that wait for longer than that: a clock was ahead when it was written. Returns their names.
absl::StatusOr<std::vector<std::string>> ForgetFarPauses(Transaction& transaction, absl::Time now);

// Queues a RUNNING job again, not before `not_before`. `count_attempt` is false after a clean shutdown, `opened` when
// its worker knows that this attempt did not open the data.
absl::Status Requeue(Transaction& transaction, const std::string& name, bool count_attempt, bool opened,
                     absl::Time not_before);

// The caller holds the job's lease.
absl::Status Succeed(Transaction& transaction, const std::string& name, const JobOutput& output, absl::Time now);

// Ends a job as FAILED, or CANCELLED, which needs no `failure`. FAILED_PRECONDITION when it has ended.
absl::Status End(Transaction& transaction, const std::string& name, v1::Job::State state, const std::string& failure,
                 absl::Time now);

absl::Status RequestCancel(Transaction& transaction, const std::string& name);

// FAILED_PRECONDITION / JOB_NOT_SUCCEEDED for any other job.
absl::StatusOr<JobOutput> GetOutput(Transaction& transaction, const std::string& name);

absl::StatusOr<std::vector<std::string>> Envelopes(Transaction& transaction, const std::string& population);

}  // namespace dpar

#endif  // DPAR_SERVER_QUEUE_QUEUE_H_
