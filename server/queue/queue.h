// Jobs: durable, first in first out, each leased by one worker at a time. All functions run inside the caller's
// transaction.
#ifndef DPAR_SERVER_QUEUE_QUEUE_H_
#define DPAR_SERVER_QUEUE_QUEUE_H_

#include <cstdint>
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
};

// Files, certificate and evaluation of a job that succeeded.
struct JobOutput {
  std::string weights_sha256;
  int64_t weights_bytes = 0;
  std::string script_sha256;
  int64_t script_bytes = 0;
  std::string envelope;                      // the certificate's exact bytes
  std::optional<v1::Evaluation> evaluation;  // there when one was asked for; becomes Job.evaluation
};

// Adds a QUEUED job. `job.name`, spec, plan and create_time are set. RESOURCE_EXHAUSTED when the tenant already has
// `max_queued` jobs that have not ended.
absl::Status Enqueue(Transaction& transaction, const StoredJob& job, int64_t max_queued);

// One job. NOT_FOUND when there is none of that name.
absl::StatusOr<StoredJob> GetJob(Transaction& transaction, const std::string& name);

// A tenant's jobs, newest first. `page_token` as in the API.
struct JobPage {
  std::vector<v1::Job> jobs;
  std::string next_page_token;
};
absl::StatusOr<JobPage> ListJobs(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                 const std::string& page_token);

// Jobs of a dataset that have not ended.
absl::StatusOr<int64_t> CountLiveJobs(Transaction& transaction, const std::string& dataset);

// Takes the oldest QUEUED job, marks it RUNNING and counts the attempt. Nothing when the queue is empty.
absl::StatusOr<std::optional<StoredJob>> Lease(Transaction& transaction, absl::Time now);

// Puts a RUNNING job back. After a clean shutdown (`count_attempt` false) the attempt is not held against it.
absl::Status Requeue(Transaction& transaction, const std::string& name, bool count_attempt);

// Jobs that are RUNNING; at start, those that a crash left behind.
absl::StatusOr<std::vector<StoredJob>> RunningJobs(Transaction& transaction);

// Ends a RUNNING job of this attempt as SUCCEEDED with its output. FAILED_PRECONDITION when it is not RUNNING in it.
absl::Status Succeed(Transaction& transaction, const std::string& name, int attempt, const JobOutput& output,
                     absl::Time now);

// Ends a job that has not ended as FAILED or CANCELLED. FAILED_PRECONDITION when it has ended.
absl::Status End(Transaction& transaction, const std::string& name, v1::Job::State state, const std::string& failure,
                 absl::Time now);

// Asks the worker of a RUNNING job to stop.
absl::Status RequestCancel(Transaction& transaction, const std::string& name);

// The output of a job that SUCCEEDED. FAILED_PRECONDITION / JOB_NOT_SUCCEEDED otherwise.
absl::StatusOr<JobOutput> GetOutput(Transaction& transaction, const std::string& name);

}  // namespace dpar

#endif  // DPAR_SERVER_QUEUE_QUEUE_H_
