#include "server/worker/outcome.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/certificate/certificate.h"
#include "core/error.h"
#include "core/privacy/accountant.h"
#include "core/status_macros.h"
#include "server/build.h"
#include "server/ledger/ledger.h"
#include "server/seam.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

// The only texts a failed job shows. None depends on the data.
constexpr absl::string_view kFailedAfterOpening =
    "the job failed after its data was opened; its price was posted in full";
constexpr absl::string_view kAttemptsUsedUp =
    "the server failed while running this job as often as it may try; nothing was released, and its price was given "
    "back";

// Between attempts: 1, 4, 16, ... seconds, at most kLongestPause.
constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr int kPauseGrowth = 4;

absl::Duration PauseAfter(int attempts) {
  absl::Duration pause = kFirstPause;
  for (int i = 1; i < attempts && pause < kLongestPause; ++i) {
    pause *= kPauseGrowth;
  }
  return std::min(pause, kLongestPause);
}

EntryContext WorkerNow() { return {"worker", absl::Now()}; }

// Voids the reservation and ends the job; returns its state. Only for causes that the money rules allow.
absl::StatusOr<v1::Job::State> VoidAndEnd(Transaction& transaction, const StoredJob& stored, v1::Job::State state,
                                          absl::string_view failure, const std::string& reason) {
  const EntryContext context = WorkerNow();
  if (!stored.budget_id.empty()) {
    DPAR_RETURN_IF_ERROR(
        Void(transaction, stored.budget_id, stored.job.name(), stored.job.attempts(), reason, context));
  }
  DPAR_SEAM("voided");
  DPAR_RETURN_IF_ERROR(End(transaction, stored.job.name(), state, std::string(failure), context.time));
  return state;
}

absl::StatusOr<v1::Job::State> Cancel(Transaction& transaction, const StoredJob& stored) {
  return VoidAndEnd(transaction, stored, v1::Job::CANCELLED, "", "cancelled while it ran");
}

// After an infrastructure failure: another attempt, or the end.
absl::StatusOr<v1::Job::State> TryAgain(Transaction& transaction, const StoredJob& stored, int max_attempts) {
  if (stored.job.attempts() >= max_attempts) {
    return VoidAndEnd(transaction, stored, v1::Job::FAILED, kAttemptsUsedUp,
                      "infrastructure failure, attempts used up");
  }
  DPAR_RETURN_IF_ERROR(
      Requeue(transaction, stored.job.name(), /*count_attempt=*/true, absl::Now() + PauseAfter(stored.job.attempts())));
  return v1::Job::QUEUED;
}

absl::StatusOr<v1::Job::State> Settle(Transaction& transaction, const StoredJob& now, const absl::Status& cause,
                                      StopCause stopped, int max_attempts, const EntryContext& context) {
  const std::string& name = now.job.name();
  // A stopped attempt, and one that the machine failed, released nothing.
  const bool nothing_left = absl::IsCancelled(cause) || absl::IsUnavailable(cause);
  if (nothing_left && now.cancel_requested) {
    return Cancel(transaction, now);
  }
  if (absl::IsCancelled(cause) && stopped == StopCause::kShutdown) {
    DPAR_RETURN_IF_ERROR(Requeue(transaction, name, /*count_attempt=*/false, context.time));
    return v1::Job::QUEUED;
  }
  if (nothing_left) {
    return TryAgain(transaction, now, max_attempts);
  }
  if (!now.budget_id.empty()) {
    DPAR_RETURN_IF_ERROR(Post(transaction, now.budget_id, name, now.job.attempts(), context).status());
  }
  DPAR_RETURN_IF_ERROR(End(transaction, name, v1::Job::FAILED, std::string(kFailedAfterOpening), context.time));
  return v1::Job::FAILED;
}

// Whether the job succeeded with this lease's output: an earlier commit reported an error but took place.
absl::StatusOr<bool> WasReleased(Transaction& transaction, const StoredJob& stored, const StoredJob& now) {
  if (now.job.state() != v1::Job::SUCCEEDED) {
    return false;
  }
  DPAR_ASSIGN_OR_RETURN(const JobOutput output, GetOutput(transaction, stored.job.name()));
  return output.lease == stored.lease;
}

Statement DescribeJob(const StoredJob& stored, const JobOutput& output, const v1::Dataset& dataset, absl::Time now) {
  Statement statement;
  statement.subjects = {{"model.npz", output.weights_sha256}, {"model.pt", output.script_sha256}};
  statement.job = stored.job.name();
  statement.dataset = stored.job.spec().dataset();
  statement.plan = stored.job.plan();
  statement.evaluation = output.evaluation;
  statement.software = absl::StrCat("dpar ", DPAR_VERSION);
  statement.build = BuildDescription();
  statement.created_at = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
  statement.dataset_digest = dataset.content_digest();
  statement.sizes = {dataset.node_count(), dataset.feature_count(), dataset.class_count()};
  statement.max_degree = dataset.max_degree();
  statement.is_public = dataset.is_public();
  return statement;
}

// Posts the price and puts the entry into the statement, so the signature covers a checkpoint of the chain.
absl::Status PostFor(Transaction& transaction, const StoredJob& stored, const EntryContext& context,
                     Statement& statement) {
  DPAR_ASSIGN_OR_RETURN(Posted posted,
                        Post(transaction, stored.budget_id, stored.job.name(), stored.job.attempts(), context));
  const BudgetTerms& terms = posted.account.terms;
  statement.budget = absl::StrCat(statement.dataset, "/budget");
  statement.cap_epsilon = terms.cap_epsilon;
  statement.cap_delta = terms.cap_delta;
  statement.cap_max_degree = posted.account.max_degree;
  statement.order = terms.order;
  statement.cap_units = terms.cap_units;
  statement.units = posted.entry.units();
  statement.units_before = posted.account.posted_units - posted.entry.units();
  statement.ledger_sequence = posted.entry.sequence();
  statement.ledger_hash = posted.entry.hash();
  statement.previous_hash = std::move(posted.previous_hash);
  statement.budget_id = stored.budget_id;
  statement.entry_time_microseconds = ToMicroseconds(posted.entry.time());
  statement.entry_actor = posted.entry.actor();
  statement.entry_attempt = posted.entry.attempt();
  statement.entry_event = std::move(posted.event_text);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<double> AccountantEpsilon(const StoredJob& stored) {
  const v1::Plan& plan = stored.job.plan();
  return stored.budget_id.empty() ? 0.0 : EventEpsilon(plan.event(), plan.delta());
}

// Why a crashed attempt has no price of its own: all that it makes stays in this process and in its own directory,
// which no call serves. It becomes visible only in this transaction, which also posts. If that commits, the job has
// ended and never runs again. If not, only the attempt's timing was seen, which is not protected; the next attempt
// draws fresh noise under the same reservation.
absl::Status Release(Database& database, const SigningKeySource& key, const StoredJob& stored, const JobOutput& output,
                     double accountant_epsilon) {
  const std::string& name = stored.job.name();
  DPAR_SEAM("saved");
  DPAR_RETURN_IF_ERROR(database.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const StoredJob now, LockJob(transaction, name));
    DPAR_ASSIGN_OR_RETURN(const bool released, WasReleased(transaction, stored, now));
    if (released) {
      return absl::OkStatus();
    }
    const EntryContext context = WorkerNow();
    DPAR_RETURN_IF_ERROR(CheckLease(now, stored.lease));
    if (now.cancel_requested) {
      return absl::CancelledError("the job was cancelled before its model was released");
    }
    DPAR_SEAM("release-begun");
    DPAR_ASSIGN_OR_RETURN(const StoredDataset dataset, GetDataset(transaction, stored.job.spec().dataset()));
    Statement statement = DescribeJob(stored, output, dataset.dataset, context.time);
    statement.accountant_epsilon = accountant_epsilon;
    if (!stored.budget_id.empty()) {
      DPAR_RETURN_IF_ERROR(PostFor(transaction, stored, context, statement));
    }
    DPAR_SEAM("posted");
    JobOutput certified = output;
    // Asked for here, so that nothing is signed with a key revoked meanwhile.
    DPAR_ASSIGN_OR_RETURN(const SigningKey signing_key, key());
    DPAR_ASSIGN_OR_RETURN(certified.envelope, SignStatement(statement, signing_key));
    DPAR_RETURN_IF_ERROR(Succeed(transaction, name, certified, context.time));
    DPAR_RETURN_IF_ERROR(transaction.Notify(name));
    DPAR_SEAM("succeeded");
    return absl::OkStatus();
  }));
  DPAR_SEAM("committed");
  return absl::OkStatus();
}

absl::StatusOr<v1::Job::State> GiveUp(Database& database, const StoredJob& stored, const absl::Status& cause,
                                      StopCause stopped, int max_attempts) {
  const std::string& name = stored.job.name();
  v1::Job::State state = v1::Job::RUNNING;
  DPAR_SEAM("giving-up");
  DPAR_RETURN_IF_ERROR(database.Write([&](Transaction& transaction) -> absl::Status {
    const EntryContext context = WorkerNow();
    DPAR_ASSIGN_OR_RETURN(const StoredJob now, HoldLease(transaction, name, stored.lease));
    DPAR_RETURN_IF_ERROR(transaction.Notify(name));
    DPAR_ASSIGN_OR_RETURN(state, Settle(transaction, now, cause, stopped, max_attempts, context));
    return absl::OkStatus();
  }));
  DPAR_SEAM("given-up");
  return state;
}

absl::StatusOr<std::optional<v1::Job::State>> TakeBackOrphan(Database& database, const StoredJob& orphan,
                                                             int max_attempts) {
  std::optional<v1::Job::State> state;
  DPAR_RETURN_IF_ERROR(database.Write([&](Transaction& transaction) -> absl::Status {
    state.reset();
    DPAR_ASSIGN_OR_RETURN(const StoredJob now, LockJob(transaction, orphan.job.name()));
    // It may have ended or been leased anew. If its worker has just renewed this lease, the job is taken anyway.
    if (now.job.state() != v1::Job::RUNNING || now.lease != orphan.lease) {
      return absl::OkStatus();
    }
    DPAR_ASSIGN_OR_RETURN(state,
                          now.cancel_requested ? Cancel(transaction, now) : TryAgain(transaction, now, max_attempts));
    return transaction.Notify(orphan.job.name());
  }));
  return state;
}

}  // namespace dpar
