#include "server/worker/submit.h"

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/privacy/budget.h"
#include "core/status_macros.h"
#include "core/train/plan.h"
#include "server/queue/queue.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

struct PlannedJob {
  StoredJob stored;
  Price price;
};

// Everything about a job that follows from its spec and public quantities.
absl::StatusOr<PlannedJob> Resolve(Transaction& transaction, const v1::TrainingSpec& spec) {
  DPAR_ASSIGN_OR_RETURN(const StoredDataset dataset, GetDataset(transaction, spec.dataset()));
  const PublicSizes sizes{dataset.dataset.node_count(), dataset.dataset.feature_count(), dataset.dataset.class_count()};
  PlannedJob planned;
  StoredJob& stored = planned.stored;
  stored.budget_id = dataset.budget_id;
  *stored.job.mutable_spec() = spec;
  v1::Budget budget;
  if (!stored.budget_id.empty()) {
    DPAR_ASSIGN_OR_RETURN(budget, GetBudget(transaction, stored.budget_id));
  }
  if (!spec.has_delta()) {
    double delta = budget.cap_delta();
    if (stored.budget_id.empty()) {
      DPAR_ASSIGN_OR_RETURN(delta, DefaultDelta(sizes.node_count));
    }
    stored.job.mutable_spec()->set_delta(delta);
  }
  v1::Plan& plan = *stored.job.mutable_plan();
  DPAR_ASSIGN_OR_RETURN(plan, MakePlan(stored.job.spec(), sizes));
  planned.price = {plan.event(), plan.epsilon(), plan.delta()};
  if (!stored.budget_id.empty()) {
    DPAR_ASSIGN_OR_RETURN(const int64_t units, EventUnits(plan.event(), budget.order()));
    plan.set_price_units(units);
    plan.set_left_units(budget.cap_units() - budget.posted_units() - budget.reserved_units() - units);
  }
  return planned;
}

}  // namespace

absl::StatusOr<v1::Job> PlanJob(Transaction& transaction, const v1::TrainingSpec& spec) {
  DPAR_ASSIGN_OR_RETURN(PlannedJob planned, Resolve(transaction, spec));
  if (!planned.stored.budget_id.empty()) {
    DPAR_RETURN_IF_ERROR(CheckAdmission(transaction, planned.stored.budget_id, planned.price));
  }
  return std::move(planned.stored.job);
}

absl::StatusOr<v1::Job> SubmitJob(Transaction& transaction, const v1::TrainingSpec& spec, const std::string& name,
                                  int64_t max_queued, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(PlannedJob planned, Resolve(transaction, spec));
  StoredJob& stored = planned.stored;
  stored.job.set_name(name);
  stored.job.set_state(v1::Job::QUEUED);
  *stored.job.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(context.time));
  if (!stored.budget_id.empty()) {
    DPAR_RETURN_IF_ERROR(Reserve(transaction, stored.budget_id, name, planned.price, context));
  }
  DPAR_RETURN_IF_ERROR(Enqueue(transaction, stored, max_queued));
  return std::move(stored.job);
}

absl::StatusOr<v1::Job> CancelJob(Transaction& transaction, const std::string& name, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(const StoredJob stored, GetJob(transaction, name));
  switch (stored.job.state()) {
    case v1::Job::CANCELLED:
      return stored.job;
    case v1::Job::QUEUED:
      if (!stored.budget_id.empty()) {
        DPAR_RETURN_IF_ERROR(
            Void(transaction, stored.budget_id, name, stored.job.attempts(), "cancelled before it ran", context));
      }
      DPAR_RETURN_IF_ERROR(End(transaction, name, v1::Job::CANCELLED, "", context.time));
      break;
    case v1::Job::RUNNING:
      DPAR_RETURN_IF_ERROR(RequestCancel(transaction, name));
      break;
    default: {
      const std::string state = v1::Job::State_Name(stored.job.state());
      return MakeError(absl::StatusCode::kFailedPrecondition, v1::JOB_ENDED,
                       absl::StrCat(name, " has ended as ", state, " and cannot be cancelled"), {{"state", state}});
    }
  }
  DPAR_ASSIGN_OR_RETURN(StoredJob after, GetJob(transaction, name));
  return std::move(after.job);
}

}  // namespace dpar
