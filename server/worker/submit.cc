#include "server/worker/submit.h"

#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/error.h"
#include "core/plan/plan.h"
#include "core/privacy/budget.h"
#include "core/status_macros.h"
#include "server/ledger/entries.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

// What planning reads of the store.
struct PlanningBasis {
  StoredDataset dataset;
  std::optional<Account> account;  // none for public data
};

absl::StatusOr<PlanningBasis> LoadBasis(Transaction& transaction, const std::string& dataset) {
  PlanningBasis basis;
  DPAR_ASSIGN_OR_RETURN(basis.dataset, GetDataset(transaction, dataset));
  if (!basis.dataset.budget_id.empty()) {
    DPAR_ASSIGN_OR_RETURN(basis.account, LoadAccount(transaction, basis.dataset.budget_id));
  }
  return basis;
}

// Checks that what the plan was made from still stands, and brings what is left of the budget up to date.
absl::Status Refresh(Transaction& transaction, PlannedJob& planned) {
  v1::Job& job = planned.stored.job;
  DPAR_ASSIGN_OR_RETURN(const PlanningBasis basis, LoadBasis(transaction, job.spec().dataset()));
  const int64_t order = basis.account.has_value() ? basis.account->terms.order : 0;
  if (basis.dataset.budget_id != planned.stored.budget_id || order != planned.order) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                     "the dataset changed while the job was planned; try again");
  }
  if (basis.account.has_value()) {
    // Negative when the job fits only by its own epsilon.
    job.mutable_plan()->set_left_units(basis.account->terms.cap_units - basis.account->used_units() -
                                       job.plan().price_units());
  }
  return absl::OkStatus();
}

absl::Status PublicOnly(absl::string_view field, absl::string_view what) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD,
                   absl::StrCat(field, " ", what,
                                ", which only a dataset that was declared public allows; leave it out and set epsilon"),
                   {{"field", std::string(field)}});
}

// Whoever asks for the paper's preset names its claim, and is refused for what its noise costs: the refusal says both.
absl::Status ExplainRefusal(const absl::Status& status, const v1::Job& job) {
  if (!absl::IsFailedPrecondition(status) || job.spec().preset() != v1::PAPER) {
    return status;
  }
  absl::Status explained(
      status.code(),
      absl::StrFormat("%s. With the preset PAPER, epsilon %g is the paper's claim; the noise it stands for costs %g",
                      status.message(), job.spec().epsilon(), job.plan().epsilon()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { explained.SetPayload(type, payload); });
  return explained;
}

absl::StatusOr<double> DeltaFor(const PlanningBasis& basis) {
  if (basis.account.has_value()) {
    return basis.account->terms.cap_delta;
  }
  return DefaultDelta(basis.dataset.dataset.node_count());
}

}  // namespace

absl::StatusOr<PlannedJob> PlanJob(Database& database, const v1::TrainingSpec& spec) {
  DPAR_ASSIGN_OR_RETURN(const PlanningBasis basis, ReadFrom(database, [&](Transaction& transaction) {
                          return LoadBasis(transaction, spec.dataset());
                        }));
  const v1::Dataset& dataset = basis.dataset.dataset;
  if (spec.non_private() && !dataset.is_public()) {
    return PublicOnly("non_private", "trains without noise");
  }
  PlannedJob planned;
  v1::Job& job = planned.stored.job;
  planned.stored.budget_id = basis.dataset.budget_id;
  *job.mutable_spec() = spec;
  if (!spec.has_delta() && !spec.non_private()) {
    DPAR_ASSIGN_OR_RETURN(const double delta, DeltaFor(basis));
    job.mutable_spec()->set_delta(delta);
  }
  v1::Plan& plan = *job.mutable_plan();
  DPAR_ASSIGN_OR_RETURN(plan,
                        MakePlan(job.spec(), {dataset.node_count(), dataset.feature_count(), dataset.class_count()}));
  planned.price = {plan.event(), plan.epsilon(), plan.delta()};
  if (basis.account.has_value()) {
    DPAR_ASSIGN_OR_RETURN(const int64_t units, EventUnits(plan.event(), basis.account->terms.order));
    plan.set_price_units(units);
    planned.order = basis.account->terms.order;
  }
  return planned;
}

absl::Status CheckPlannedJob(Transaction& transaction, PlannedJob& planned) {
  DPAR_RETURN_IF_ERROR(Refresh(transaction, planned));
  const std::string& budget_id = planned.stored.budget_id;
  if (budget_id.empty()) {
    return absl::OkStatus();
  }
  return ExplainRefusal(CheckAdmission(transaction, budget_id, planned.price), planned.stored.job);
}

absl::StatusOr<v1::Job> SubmitJob(Transaction& transaction, const PlannedJob& planned, const std::string& name,
                                  int64_t max_queued, const EntryContext& context) {
  PlannedJob current = planned;
  DPAR_RETURN_IF_ERROR(Refresh(transaction, current));
  StoredJob& stored = current.stored;
  stored.job.set_name(name);
  stored.job.set_state(v1::Job::QUEUED);
  *stored.job.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(context.time));
  if (!stored.budget_id.empty()) {
    DPAR_RETURN_IF_ERROR(
        ExplainRefusal(Reserve(transaction, stored.budget_id, name, current.price, context), stored.job));
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
