#ifndef DPAR_SERVER_ADMISSION_SUBMIT_H_
#define DPAR_SERVER_ADMISSION_SUBMIT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/plan/plan.h"
#include "dpar/v1/training.pb.h"
#include "server/ledger/ledger.h"
#include "server/queue/queue.h"
#include "server/store/database.h"
#include "server/store/once.h"

namespace dpar {

// A job that is neither reserved nor queued yet.
struct PlannedJob {
  StoredJob stored;            // without a name
  std::optional<Price> price;  // none for public data
  absl::Duration estimated_time;
};

struct JobLimits {
  int64_t max_job_bytes = 0;
  int threads = 1;  // of a job
};

// Derives a job from its spec and public quantities; takes seconds where noise is calibrated, and holds no transaction
// meanwhile. FAILED_PRECONDITION / INVALID_FIELD for a run without noise, with a seed, or with a delta
// above the cap's, on private data.
// RESOURCE_EXHAUSTED / LIMIT_EXCEEDED, with the estimate, for a job that needs more memory than there is.
// `bounds` are those of MakePlan.
absl::StatusOr<PlannedJob> PlanJob(Database& database, const v1::TrainingSpec& spec, const JobLimits& limits,
                                   const PlanningBounds& bounds = {});

// Adds the price of each stage alone and the expected running time. Takes up to seconds.
absl::Status DescribeStages(PlannedJob& planned);

// OK when the job would be admitted now; sets what would be left in its plan. FAILED_PRECONDITION /
// PRIVACY_BUDGET_EXHAUSTED when not. This and all that follow run inside the caller's transaction, except SubmitOnce.
absl::Status CheckPlannedJob(Transaction& transaction, PlannedJob& planned);

// The job's name follows from the tenant and the request's id, and names are unique: a request makes at most one job.
struct JobRequest {
  std::string name;
  RequestKey key;
};
JobRequest MakeJobRequest(const v1::CreateJobRequest& request);

// Reserves and queues. RESOURCE_EXHAUSTED past `max_queued` live jobs of the tenant; ALREADY_EXISTS as Enqueue.
absl::StatusOr<v1::Job> SubmitJob(Transaction& transaction, const PlannedJob& planned, const JobRequest& request,
                                  int64_t max_queued, const EntryContext& context);

// The job that the request made, as answered then, if any. ALREADY_EXISTS / REQUEST_ID_REUSED for a reused id.
absl::StatusOr<std::optional<v1::Job>> RecallJob(Transaction& transaction, const JobRequest& request);

// SubmitJob in its own transaction. When it fails because the request was carried out meanwhile, returns that job.
absl::StatusOr<v1::Job> SubmitOnce(Database& database, const PlannedJob& planned, const JobRequest& request,
                                   int64_t max_queued, const EntryContext& context);

// Ends a QUEUED job and voids its reservation; asks the worker of a RUNNING one to do so. Returns a CANCELLED job as it
// is; FAILED_PRECONDITION / JOB_ENDED for other ends.
absl::StatusOr<v1::Job> CancelJob(Transaction& transaction, const std::string& name, const EntryContext& context);

}  // namespace dpar

#endif  // DPAR_SERVER_ADMISSION_SUBMIT_H_
