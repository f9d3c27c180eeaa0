// From a request to a queued job with its price reserved, and back out again. All functions run inside the caller's
// transaction.
#ifndef DPAR_SERVER_WORKER_SUBMIT_H_
#define DPAR_SERVER_WORKER_SUBMIT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "dpar/v1/training.pb.h"
#include "server/ledger/ledger.h"
#include "server/store/database.h"

namespace dpar {

// The plan and price of a job on `spec.dataset`, in a Job without a name. Changes nothing. Budget refused:
// FAILED_PRECONDITION / PRIVACY_BUDGET_EXHAUSTED.
absl::StatusOr<v1::Job> PlanJob(Transaction& transaction, const v1::TrainingSpec& spec);

// Plans, reserves and queues a job named `name`. RESOURCE_EXHAUSTED past `max_queued` live jobs of the tenant.
absl::StatusOr<v1::Job> SubmitJob(Transaction& transaction, const v1::TrainingSpec& spec, const std::string& name,
                                  int64_t max_queued, const EntryContext& context);

// Cancels: a QUEUED job ends at once and its reservation is voided; of a RUNNING one the worker is asked to stop, which
// then does the same. A cancelled job is returned as it is; one that ended otherwise is FAILED_PRECONDITION /
// JOB_ENDED.
absl::StatusOr<v1::Job> CancelJob(Transaction& transaction, const std::string& name, const EntryContext& context);

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_SUBMIT_H_
