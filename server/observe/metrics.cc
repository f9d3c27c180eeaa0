#include "server/observe/metrics.h"

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "prometheus/counter.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace dpar {
namespace {

// Seconds.
const prometheus::Histogram::BucketBoundaries& CallBuckets() {
  static const auto* buckets = new prometheus::Histogram::BucketBoundaries{
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600};
  return *buckets;
}
const prometheus::Histogram::BucketBoundaries& StageBuckets() {
  static const auto* buckets =
      new prometheus::Histogram::BucketBoundaries{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14'400, 86'400};
  return *buckets;
}
const prometheus::Histogram::BucketBoundaries& CommitBuckets() {
  static const auto* buckets = new prometheus::Histogram::BucketBoundaries{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                                           0.25,  0.5,    1,     2.5,  5,     10,   60};
  return *buckets;
}

const char* NameOf(LedgerCommit commit) {
  switch (commit) {
    case LedgerCommit::kReserve:
      return "reserve";
    case LedgerCommit::kRelease:
      return "release";
    case LedgerCommit::kGiveUp:
      return "give-up";
    case LedgerCommit::kTakeBack:
      return "take-back";
    case LedgerCommit::kCancel:
      return "cancel";
    case LedgerCommit::kOperator:
      return "operator";
  }
  return "";
}

std::string NameOf(v1::Job::State state) { return absl::AsciiStrToLower(v1::Job::State_Name(state)); }

bool IsEnd(v1::Job::State state) {
  return state == v1::Job::SUCCEEDED || state == v1::Job::FAILED || state == v1::Job::CANCELLED;
}

// Whether the store failed, as opposed to refused.
bool IsFailure(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsInternal(status) || absl::IsDataLoss(status) ||
         absl::IsAborted(status) || absl::IsUnknown(status);
}

prometheus::Family<prometheus::Counter>& CounterFamily(prometheus::Registry& registry, const char* name,
                                                       const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

prometheus::Family<prometheus::Histogram>& HistogramFamily(prometheus::Registry& registry, const char* name,
                                                           const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

}  // namespace

struct Metrics::Families {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Gauge>& build =
      prometheus::BuildGauge().Name("dpar_build_info").Help("1, with the server's version.").Register(registry);
  prometheus::Family<prometheus::Counter>& calls =
      CounterFamily(registry, "dpar_rpc_requests_total", "Calls that were answered.");
  prometheus::Family<prometheus::Histogram>& call_seconds =
      HistogramFamily(registry, "dpar_rpc_seconds", "Time from a call's arrival to its answer, streams to their end.");
  prometheus::Family<prometheus::Gauge>& in_flight =
      prometheus::BuildGauge().Name("dpar_rpc_in_flight").Help("Calls that are not answered yet.").Register(registry);
  prometheus::Family<prometheus::Counter>& auth_failures =
      CounterFamily(registry, "dpar_auth_failures_total", "Calls without a token, or with one that is not valid.");
  prometheus::Family<prometheus::Counter>& audit_failures =
      CounterFamily(registry, "dpar_audit_write_failures_total", "Lines that could not be written to the audit log.");
  prometheus::Family<prometheus::Counter>& witness_failures = CounterFamily(
      registry, "dpar_witness_failures_total", "Times that spending could not be marked, so that nothing was shown.");
  prometheus::Family<prometheus::Histogram>& stage_seconds = HistogramFamily(
      registry, "dpar_job_stage_seconds", "Time that a stage of a job took on this server, also one cut short.");
  prometheus::Family<prometheus::Counter>& jobs_ended =
      CounterFamily(registry, "dpar_jobs_ended_total", "Jobs that this server ended.");
  prometheus::Family<prometheus::Histogram>& commit_seconds = HistogramFamily(
      registry, "dpar_ledger_commit_seconds", "Time of the committed transactions that reserve, post or void a price.");
  prometheus::Family<prometheus::Counter>& commit_failures =
      CounterFamily(registry, "dpar_ledger_commit_failures_total", "Such transactions that the store failed.");
};

// Series of fixed lists exist from the start, so that the first event is an increase.
Metrics::Metrics() : families_(std::make_unique<Families>()) {
  families_->build.Add({{"version", DPAR_VERSION}}).Set(1);
  families_->audit_failures.Add({});
  families_->witness_failures.Add({});
  for (const char* reason : {"TOKEN_MISSING", "TOKEN_INVALID"}) {
    families_->auth_failures.Add({{"reason", reason}});
  }
  for (const v1::Job::State state : {v1::Job::SUCCEEDED, v1::Job::FAILED, v1::Job::CANCELLED}) {
    families_->jobs_ended.Add({{"state", NameOf(state)}});
  }
  for (const LedgerCommit commit : {LedgerCommit::kReserve, LedgerCommit::kRelease, LedgerCommit::kGiveUp,
                                    LedgerCommit::kTakeBack, LedgerCommit::kCancel, LedgerCommit::kOperator}) {
    families_->commit_seconds.Add({{"transaction", NameOf(commit)}}, CommitBuckets());
    families_->commit_failures.Add({{"transaction", NameOf(commit)}});
  }
}

Metrics::~Metrics() = default;

void Metrics::CallBegan(absl::string_view method) {
  families_->in_flight.Add({{"method", std::string(method)}}).Increment();
}

void Metrics::CallEnded(absl::string_view method, absl::string_view code, absl::Duration took) {
  const std::string name(method);
  families_->in_flight.Add({{"method", name}}).Decrement();
  families_->calls.Add({{"method", name}, {"code", std::string(code)}}).Increment();
  families_->call_seconds.Add({{"method", name}}, CallBuckets()).Observe(absl::ToDoubleSeconds(took));
}

void Metrics::AuthenticationFailed(absl::string_view reason) {
  families_->auth_failures.Add({{"reason", std::string(reason)}}).Increment();
}

void Metrics::AuditWriteFailed() { families_->audit_failures.Add({}).Increment(); }

void Metrics::WitnessFailed() { families_->witness_failures.Add({}).Increment(); }

void Metrics::StageEnded(const std::string& stage, absl::Duration took) {
  families_->stage_seconds.Add({{"stage", stage}}, StageBuckets()).Observe(absl::ToDoubleSeconds(took));
}

void Metrics::JobEnded(v1::Job::State state) {
  if (IsEnd(state)) {
    families_->jobs_ended.Add({{"state", NameOf(state)}}).Increment();
  }
}

void Metrics::LedgerCommitted(LedgerCommit commit, const absl::Status& status, absl::Duration took) {
  const prometheus::Labels labels = {{"transaction", NameOf(commit)}};
  if (status.ok()) {
    families_->commit_seconds.Add(labels, CommitBuckets()).Observe(absl::ToDoubleSeconds(took));
  } else if (IsFailure(status)) {
    families_->commit_failures.Add(labels).Increment();
  }
}

std::vector<prometheus::MetricFamily> Metrics::Collect() const { return families_->registry.Collect(); }

absl::Status TimeLedgerCommit(Metrics* metrics, LedgerCommit commit, const std::function<absl::Status()>& transaction) {
  const absl::Time start = absl::Now();
  absl::Status status = transaction();
  if (metrics != nullptr) {
    metrics->LedgerCommitted(commit, status, absl::Now() - start);
  }
  return status;
}

}  // namespace dpar
