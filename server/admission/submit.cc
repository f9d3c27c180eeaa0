#include "server/admission/submit.h"

#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/plan/plan_event.h"
#include "core/privacy/accountant.h"
#include "core/privacy/budget.h"
#include "core/status_macros.h"
#include "server/admission/estimate.h"
#include "server/ledger/entries.h"
#include "server/seam.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

struct PlanningBasis {
  v1::Dataset dataset;
  std::optional<Account> account;  // none for public data
};

absl::StatusOr<PlanningBasis> LoadBasis(Transaction& transaction, const std::string& dataset) {
  PlanningBasis basis;
  DPAR_ASSIGN_OR_RETURN(basis.dataset, GetDataset(transaction, dataset));
  if (!basis.dataset.population().empty()) {
    DPAR_ASSIGN_OR_RETURN(basis.account, LoadAccount(transaction, basis.dataset.population()));
  }
  return basis;
}

absl::Status CheckInService(const v1::Dataset& dataset) {
  if (dataset.out_of_service_reason().empty()) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::DATASET_OUT_OF_SERVICE,
                   absl::StrCat(dataset.name(), " is out of service: ", dataset.out_of_service_reason()),
                   {{"resource", dataset.name()}});
}

// The dataset and population that the plan was made from must not have changed.
absl::Status CheckBasis(const v1::Dataset& dataset, const PlannedJob& planned) {
  DPAR_RETURN_IF_ERROR(CheckInService(dataset));
  return dataset.population() == planned.stored.population
             ? absl::OkStatus()
             : MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                         "the dataset changed while the job was planned; try again");
}

// Sets what is left once `used_units`, the job's own included, are used; negative when it fits only by its own epsilon.
void SetLeft(const Account& account, int64_t used_units, v1::Job& job) {
  job.mutable_plan()->set_left_units(account.terms.cap_units - used_units);
}

absl::Status PublicOnly(absl::string_view field, absl::string_view what) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD,
                   absl::StrCat(field, " ", what,
                                ", which only a dataset that was declared public allows; leave it out and set epsilon"),
                   {{"field", std::string(field)}});
}

// A refusal of the PAPER preset names both the paper's claim and the price of its noise.
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

absl::Status CheckMemory(int64_t estimate, int64_t maximum) {
  if (estimate <= maximum) {
    return absl::OkStatus();
  }
  constexpr double kGibibyte = 1 << 30;
  return MakeError(
      absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED,
      absl::StrFormat(
          "the job is expected to need %.1f GiB of memory and this server gives its jobs %.1f GiB; ask for "
          "less (no evaluation, fewer DP-APPR rows, no hidden layer), upload the graph with smaller bounds, "
          "or ask an operator for more",
          static_cast<double>(estimate) / kGibibyte, static_cast<double>(maximum) / kGibibyte),
      {{"limit", "max_job_bytes"}, {"maximum", absl::StrCat(maximum)}, {"estimate", absl::StrCat(estimate)}});
}

absl::StatusOr<double> DeltaFor(const PlanningBasis& basis) {
  if (basis.account.has_value()) {
    return basis.account->terms.cap_delta;
  }
  return DefaultDelta(basis.dataset.node_count());
}

// A larger delta would weaken what the cap promises, and near 1/N it permits publishing whole nodes.
absl::Status CheckDelta(double delta, double most) {
  if (delta <= most) {
    return absl::OkStatus();
  }
  return MakeError(
      absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD,
      absl::StrFormat("delta %g is above %g, the delta of the population's cap; leave it out or ask for less", delta,
                      most),
      {{"field", "delta"}, {"max_delta", absl::StrCat(most)}});
}

absl::StatusOr<v1::Job> AsStored(Transaction& transaction, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(StoredJob stored, GetJob(transaction, name));
  return std::move(stored.job);
}

v1::Job AsSubmitted(v1::Job job) {
  job.set_state(v1::Job::QUEUED);
  job.clear_failure();
  job.clear_start_time();
  job.clear_end_time();
  job.clear_attempts();
  job.clear_evaluation();
  job.clear_progress();
  return job;
}

}  // namespace

absl::StatusOr<PlannedJob> PlanJob(Database& database, const v1::TrainingSpec& spec, const JobLimits& limits,
                                   const PlanningBounds& bounds) {
  DPAR_ASSIGN_OR_RETURN(const PlanningBasis basis, ReadFrom(database, [&](Transaction& transaction) {
                          return LoadBasis(transaction, spec.dataset());
                        }));
  const v1::Dataset& dataset = basis.dataset;
  DPAR_RETURN_IF_ERROR(CheckInService(dataset));
  if (spec.non_private() && !dataset.is_public()) {
    return PublicOnly("non_private", "trains without noise");
  }
  if (spec.has_seed() && !dataset.is_public()) {
    return PublicOnly("seed", "fixes the random stream");
  }
  PlannedJob planned;
  v1::Job& job = planned.stored.job;
  planned.stored.population = basis.dataset.population();
  *job.mutable_spec() = spec;
  if (!spec.has_delta() && !spec.non_private()) {
    DPAR_ASSIGN_OR_RETURN(const double delta, DeltaFor(basis));
    job.mutable_spec()->set_delta(delta);
  }
  v1::Plan& plan = *job.mutable_plan();
  const PublicSizes sizes{dataset.node_count(), dataset.feature_count(), dataset.class_count()};
  DPAR_ASSIGN_OR_RETURN(plan, MakePlan(job.spec(), sizes, dataset.max_degree(), bounds));
  if (basis.account.has_value()) {
    DPAR_RETURN_IF_ERROR(CheckDelta(plan.delta(), basis.account->terms.cap_delta));
    DPAR_ASSIGN_OR_RETURN(planned.price, MakePrice(plan.event(), plan.epsilon(), plan.delta(), basis.account->terms));
    plan.set_price_units(planned.price->cost.units);
  }
  const SizeBounds size_bounds{dataset.edge_bound(), dataset.entry_bound()};
  job.set_memory_bytes(EstimateJobBytes(plan, sizes, size_bounds, limits.threads));
  planned.estimated_time = EstimateJobTime(plan, sizes, size_bounds, limits.threads);
  DPAR_RETURN_IF_ERROR(CheckMemory(job.memory_bytes(), limits.max_job_bytes));
  return planned;
}

absl::Status DescribeStages(PlannedJob& planned) {
  v1::Job& job = planned.stored.job;
  const v1::Plan& plan = job.plan();
  for (const Stage& stage : StagesOf(plan.event())) {
    v1::StagePrice& cost = *job.add_stages();
    cost.set_stage(stage.name);
    DPAR_ASSIGN_OR_RETURN(const double epsilon, EventEpsilon(stage.event, plan.delta()));
    cost.set_epsilon(epsilon);
    if (planned.price.has_value()) {
      DPAR_ASSIGN_OR_RETURN(const int64_t units, EventUnits(stage.event, planned.price->order));
      cost.set_units(units);
    }
  }
  *job.mutable_estimated_time() = ToDuration(planned.estimated_time);
  return absl::OkStatus();
}

absl::Status CheckPlannedJob(Transaction& transaction, PlannedJob& planned) {
  const v1::Job& job = planned.stored.job;
  DPAR_ASSIGN_OR_RETURN(const PlanningBasis basis, LoadBasis(transaction, job.spec().dataset()));
  DPAR_RETURN_IF_ERROR(CheckBasis(basis.dataset, planned));
  if (!planned.price.has_value() || !basis.account.has_value()) {
    return absl::OkStatus();
  }
  SetLeft(*basis.account, basis.account->used_units() + job.plan().price_units(), planned.stored.job);
  return ExplainRefusal(CheckAdmission(transaction, planned.stored.population, *planned.price), planned.stored.job);
}

JobRequest MakeJobRequest(const v1::CreateJobRequest& request) {
  JobRequest made;
  made.key = MakeRequestKey(request.parent(), "CreateJob", request.request_id(), request);
  // As many bits as a random id. Requests whose ids collide differ in their fingerprints, so they are refused.
  constexpr size_t kIdDigits = 16;
  const std::string digest = Sha256Hex(absl::StrCat(made.key.scope, "\n", request.request_id()));
  made.name = absl::StrCat(request.parent(), "/jobs/", digest.substr(0, kIdDigits));
  return made;
}

absl::StatusOr<v1::Job> SubmitJob(Transaction& transaction, const PlannedJob& planned, const JobRequest& request,
                                  int64_t max_queued, const EntryContext& context) {
  StoredJob stored = planned.stored;
  v1::Job& job = stored.job;
  DPAR_ASSIGN_OR_RETURN(const v1::Dataset dataset, LockDataset(transaction, job.spec().dataset()));
  DPAR_RETURN_IF_ERROR(CheckBasis(dataset, planned));
  DPAR_RETURN_IF_ERROR(CheckQueueLimit(transaction, job.spec().dataset(), max_queued));
  job.set_name(request.name);
  job.set_state(v1::Job::QUEUED);
  *job.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(context.time));
  stored.fingerprint = request.key.fingerprint;
  if (planned.price.has_value()) {
    const absl::StatusOr<Account> account =
        Reserve(transaction, stored.population, request.name, *planned.price, context);
    DPAR_RETURN_IF_ERROR(ExplainRefusal(account.status(), job));
    SetLeft(*account, account->used_units(), job);
  }
  DPAR_SEAM("reserved");
  DPAR_RETURN_IF_ERROR(Enqueue(transaction, stored));
  DPAR_RETURN_IF_ERROR(transaction.Notify(request.name));
  DPAR_SEAM("queued");
  return std::move(job);
}

absl::StatusOr<std::optional<v1::Job>> RecallJob(Transaction& transaction, const JobRequest& request) {
  absl::StatusOr<StoredJob> stored = GetJob(transaction, request.name);
  if (absl::IsNotFound(stored.status())) {
    return std::nullopt;
  }
  DPAR_RETURN_IF_ERROR(stored.status());
  if (stored->fingerprint != request.key.fingerprint) {
    return RequestIdReused(request.key.request_id);
  }
  return AsSubmitted(std::move(stored->job));
}

absl::StatusOr<v1::Job> SubmitOnce(Database& database, const PlannedJob& planned, const JobRequest& request,
                                   int64_t max_queued, const EntryContext& context) {
  v1::Job job;
  const absl::Status submitted = database.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(job, SubmitJob(transaction, planned, request, max_queued, context));
    return absl::OkStatus();
  });
  if (submitted.ok()) {
    return job;
  }
  // On any error: the same request may have succeeded meanwhile and used the budget that this one found missing.
  DPAR_ASSIGN_OR_RETURN(std::optional<v1::Job> recalled,
                        ReadFrom(database, [&](Transaction& transaction) { return RecallJob(transaction, request); }));
  if (recalled.has_value()) {
    return *std::move(recalled);
  }
  return submitted;
}

absl::StatusOr<v1::Job> CancelJob(Transaction& transaction, const std::string& name, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(const StoredJob stored, LockJob(transaction, name));
  switch (stored.job.state()) {
    case v1::Job::CANCELLED:
      return AsStored(transaction, name);
    case v1::Job::QUEUED: {
      Settlement settlement = Settlement::kVoided;
      if (!stored.population.empty()) {
        DPAR_ASSIGN_OR_RETURN(settlement, VoidOrPost(transaction, stored.population, name, stored.openings,
                                                     "cancelled in the queue", context));
      }
      DPAR_SEAM("queue-voided");
      const absl::string_view failure = settlement == Settlement::kPosted ? kPostedAtCancel : "";
      DPAR_RETURN_IF_ERROR(End(transaction, name, v1::Job::CANCELLED, std::string(failure), context.time));
      break;
    }
    case v1::Job::RUNNING:
      DPAR_RETURN_IF_ERROR(RequestCancel(transaction, name));
      break;
    default: {
      const std::string state = v1::Job::State_Name(stored.job.state());
      return MakeError(absl::StatusCode::kFailedPrecondition, v1::JOB_ENDED,
                       absl::StrCat(name, " has ended as ", state, " and cannot be cancelled"), {{"state", state}});
    }
  }
  DPAR_RETURN_IF_ERROR(transaction.Notify(name));
  return AsStored(transaction, name);
}

}  // namespace dpar
