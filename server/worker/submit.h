// From a request to a queued job with its price reserved, and back out again.
#ifndef DPAR_SERVER_WORKER_SUBMIT_H_
#define DPAR_SERVER_WORKER_SUBMIT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dpar/v1/training.pb.h"
#include "server/ledger/ledger.h"
#include "server/queue/queue.h"
#include "server/store/database.h"

namespace dpar {

// A job that nobody has reserved or queued yet.
struct PlannedJob {
  StoredJob stored;   // without a name
  Price price;        // without an event where no noise is drawn
  int64_t order = 0;  // of the budget that plan.price_units are for; 0 for public data
};

// Everything about a job on `spec.dataset` that follows from its spec and public quantities. Changes nothing, and takes
// seconds where noise has to be calibrated, so it holds no transaction meanwhile. FAILED_PRECONDITION / INVALID_FIELD
// for a run without noise on data that was not declared public.
absl::StatusOr<PlannedJob> PlanJob(Database& database, const v1::TrainingSpec& spec);

// OK when the job would be admitted now, with what would be left then in its plan. FAILED_PRECONDITION /
// PRIVACY_BUDGET_EXHAUSTED when not. Inside the caller's transaction, as all that follows.
absl::Status CheckPlannedJob(Transaction& transaction, PlannedJob& planned);

// Reserves the price and queues the job as `name`. The dataset must still be there. RESOURCE_EXHAUSTED past
// `max_queued` live jobs of the tenant.
absl::StatusOr<v1::Job> SubmitJob(Transaction& transaction, const PlannedJob& planned, const std::string& name,
                                  int64_t max_queued, const EntryContext& context);

// Cancels: a QUEUED job ends at once and its reservation is voided; of a RUNNING one the worker is asked to stop, which
// then does the same. A cancelled job is returned as it is; one that ended otherwise is FAILED_PRECONDITION /
// JOB_ENDED.
absl::StatusOr<v1::Job> CancelJob(Transaction& transaction, const std::string& name, const EntryContext& context);

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_SUBMIT_H_
