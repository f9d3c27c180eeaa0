// From a request to a queued job with its price reserved, and back out again.
#ifndef DPAR_SERVER_ADMISSION_SUBMIT_H_
#define DPAR_SERVER_ADMISSION_SUBMIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dpar/v1/training.pb.h"
#include "server/ledger/ledger.h"
#include "server/queue/queue.h"
#include "server/store/database.h"
#include "server/store/once.h"

namespace dpar {

// A job that nobody has reserved or queued yet.
struct PlannedJob {
  StoredJob stored;            // without a name
  std::optional<Price> price;  // none for public data
  absl::Duration estimated_time;
};

// What a job may take.
struct JobLimits {
  int64_t max_job_bytes = 0;
  int threads = 1;  // of a job
};

// Everything about a job on `spec.dataset` that follows from its spec and public quantities. Changes nothing, and takes
// seconds where noise has to be calibrated, so it holds no transaction meanwhile. FAILED_PRECONDITION / INVALID_FIELD
// for a run without noise, or with a seed, on data that was not declared public. RESOURCE_EXHAUSTED / LIMIT_EXCEEDED,
// with the estimate, for a job that is expected to need more memory than there is.
absl::StatusOr<PlannedJob> PlanJob(Database& database, const v1::TrainingSpec& spec, const JobLimits& limits);

// Adds to the planned job what each of its stages would cost alone, and how long it is expected to run. Takes up to
// seconds, as planning does.
absl::Status DescribeStages(PlannedJob& planned);

// OK when the job would be admitted now, with what would be left then in its plan. FAILED_PRECONDITION /
// PRIVACY_BUDGET_EXHAUSTED when not. Inside the caller's transaction, as all that follows.
absl::Status CheckPlannedJob(Transaction& transaction, PlannedJob& planned);

// A request for a job, and the name of the job that it makes, which follows from the tenant and the request's id. So a
// request that is sent twice can make one job at most: names of jobs are unique, whoever else runs at that moment.
struct JobRequest {
  std::string name;
  RequestKey key;
};
JobRequest MakeJobRequest(const v1::CreateJobRequest& request);

// Reserves the price and queues the job. The dataset must still be there. RESOURCE_EXHAUSTED past `max_queued` live
// jobs of the tenant. ALREADY_EXISTS, at the latest from the commit, when there is a job of that name.
absl::StatusOr<v1::Job> SubmitJob(Transaction& transaction, const PlannedJob& planned, const JobRequest& request,
                                  int64_t max_queued, const EntryContext& context);

// The job that the request made, as it was answered then; nothing when it made none. ALREADY_EXISTS / REQUEST_ID_REUSED
// when its id was used for another request.
absl::StatusOr<std::optional<v1::Job>> RecallJob(Transaction& transaction, const JobRequest& request);

// SubmitJob in a transaction of its own, or, when it fails because the request was carried out meanwhile, its answer.
absl::StatusOr<v1::Job> SubmitOnce(Database& database, const PlannedJob& planned, const JobRequest& request,
                                   int64_t max_queued, const EntryContext& context);

// Cancels: a QUEUED job ends at once and its reservation is voided; of a RUNNING one the worker is asked to stop, which
// then does the same. A cancelled job is returned as it is; one that ended otherwise is FAILED_PRECONDITION /
// JOB_ENDED.
absl::StatusOr<v1::Job> CancelJob(Transaction& transaction, const std::string& name, const EntryContext& context);

}  // namespace dpar

#endif  // DPAR_SERVER_ADMISSION_SUBMIT_H_
