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
    "the server failed while running this job as often as it may try; its data was never opened, and its price was "
    "given "
    "back";
constexpr absl::string_view kAttemptsUsedUpAfterOpening =
    "the server failed while running this job as often as it may try; its data was opened, so its price was posted in "
    "full";
constexpr absl::string_view kDamaged =
    "the dataset's stored file is damaged; nothing was computed from it, and the price was given back. The dataset is "
    "out "
    "of service until an operator has restored the file; it can also be deleted and uploaded again";
// Of the dataset. Says nothing about its content: it depends on the disk alone.
constexpr absl::string_view kOutOfService =
    "its stored file is damaged. Upload it again (the budget goes on), or an operator restores the file from a backup: "
    "`dpard check` puts it back into service";

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

// How an attempt without output ended. `openings` are the job's, without this attempt's if it opened nothing.
struct Ending {
  const StoredJob& stored;
  int openings = 0;
  EntryContext context;
};

absl::StatusOr<v1::Job::State> EndAs(Transaction& transaction, const Ending& ending, v1::Job::State state,
                                     absl::string_view failure) {
  DPAR_RETURN_IF_ERROR(End(transaction, ending.stored.job.name(), state, std::string(failure), ending.context.time));
  return state;
}

absl::StatusOr<v1::Job::State> PostAndFail(Transaction& transaction, const Ending& ending, absl::string_view failure) {
  const StoredJob& stored = ending.stored;
  if (!stored.population.empty()) {
    DPAR_RETURN_IF_ERROR(
        Post(transaction, stored.population, stored.job.name(), stored.job.attempts(), ending.context).status());
  }
  return EndAs(transaction, ending, v1::Job::FAILED, failure);
}

// Only for causes that the money rules allow.
absl::StatusOr<Settlement> GiveBack(Transaction& transaction, const Ending& ending, const std::string& reason) {
  Settlement settlement = Settlement::kVoided;
  if (!ending.stored.population.empty()) {
    DPAR_ASSIGN_OR_RETURN(settlement, VoidOrPost(transaction, ending.stored.population, ending.stored.job.name(),
                                                 ending.openings, reason, ending.context));
  }
  DPAR_SEAM("voided");
  return settlement;
}

absl::StatusOr<v1::Job::State> Cancel(Transaction& transaction, const Ending& ending) {
  DPAR_ASSIGN_OR_RETURN(const Settlement settlement, GiveBack(transaction, ending, "cancelled while it ran"));
  return EndAs(transaction, ending, v1::Job::CANCELLED, settlement == Settlement::kPosted ? kPostedAtCancel : "");
}

absl::StatusOr<v1::Job::State> FailUnopened(Transaction& transaction, const Ending& ending, absl::string_view failure,
                                            const std::string& reason) {
  DPAR_RETURN_IF_ERROR(GiveBack(transaction, ending, reason).status());
  return EndAs(transaction, ending, v1::Job::FAILED, failure);
}

// After an infrastructure failure: another attempt, or the end.
absl::StatusOr<v1::Job::State> TryAgain(Transaction& transaction, const Ending& ending, int max_attempts) {
  const v1::Job& job = ending.stored.job;
  if (job.attempts() < max_attempts) {
    DPAR_RETURN_IF_ERROR(Requeue(transaction, job.name(), /*count_attempt=*/true,
                                 /*opened=*/ending.openings == ending.stored.openings,
                                 ending.context.time + PauseAfter(job.attempts())));
    return v1::Job::QUEUED;
  }
  return ending.openings > 0 ? PostAndFail(transaction, ending, kAttemptsUsedUpAfterOpening)
                             : FailUnopened(transaction, ending, kAttemptsUsedUp,
                                            "infrastructure failure before its data was opened, attempts used up");
}

// The file failed its checks, which read all of it and compare checksums before anything is computed: what is seen of
// the job is that the disk failed. No later job can repeat it, since the dataset is out of service.
absl::StatusOr<v1::Job::State> FailDamaged(Transaction& transaction, const Ending& ending, const std::string& dataset) {
  DPAR_RETURN_IF_ERROR(SetOutOfService(transaction, dataset, std::string(kOutOfService)));
  // An earlier attempt may have opened it when it was whole.
  return ending.openings > 0 ? PostAndFail(transaction, ending, kFailedAfterOpening)
                             : FailUnopened(transaction, ending, kDamaged, "the dataset's file is damaged");
}

// A stop of the server is the operator's. A shortage may be a caller's doing, who fills the disk and watches how long
// runs on the data take; so those are free as often as a job is tried.
bool IsNoAttempt(const Ending& ending, const FailedAttempt& attempt, int max_attempts) {
  return attempt.stopped == StopCause::kShutdown ||
         (attempt.stopped == StopCause::kShortage && (!attempt.opened || ending.openings <= max_attempts));
}

absl::StatusOr<v1::Job::State> Settle(Transaction& transaction, const StoredJob& now, const std::string& dataset,
                                      const FailedAttempt& attempt, int max_attempts) {
  const Ending ending{now, now.openings - (attempt.opened ? 0 : 1), WorkerNow()};
  // A stopped attempt, and one that the machine failed, released nothing.
  const bool stopped = absl::IsCancelled(attempt.cause);
  const bool nothing_left = stopped || absl::IsUnavailable(attempt.cause);
  if (nothing_left && now.cancel_requested) {
    return Cancel(transaction, ending);
  }
  if (stopped && IsNoAttempt(ending, attempt, max_attempts)) {
    DPAR_RETURN_IF_ERROR(
        Requeue(transaction, now.job.name(), /*count_attempt=*/false, attempt.opened, ending.context.time));
    return v1::Job::QUEUED;
  }
  if (nothing_left) {
    return TryAgain(transaction, ending, max_attempts);
  }
  if (absl::IsDataLoss(attempt.cause) && !attempt.opened) {
    return FailDamaged(transaction, ending, dataset);
  }
  return PostAndFail(transaction, ending, kFailedAfterOpening);
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
  for (const auto& [name, file] : output.files) {
    statement.subjects[name] = file.sha256;
  }
  statement.job = stored.job.name();
  statement.dataset = stored.job.spec().dataset();
  statement.plan = stored.job.plan();
  statement.evaluation = output.evaluation;
  statement.software = absl::StrCat("dpar ", DPAR_VERSION);
  statement.build = BuildDescription();
  statement.created_at = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
  statement.dataset_digest = dataset.content_digest();
  statement.sizes = {dataset.node_count(), dataset.feature_count(), dataset.class_count()};
  statement.bounds = {dataset.edge_bound(), dataset.entry_bound()};
  statement.max_degree = dataset.max_degree();
  statement.is_public = dataset.is_public();
  statement.schema = dataset.schema();
  return statement;
}

// Posts the price and puts the entry into the statement, so the signature covers a checkpoint of the chain.
absl::Status PostFor(Transaction& transaction, const StoredJob& stored, const EntryContext& context,
                     Statement& statement) {
  DPAR_ASSIGN_OR_RETURN(Posted posted,
                        Post(transaction, stored.population, stored.job.name(), stored.job.attempts(), context));
  const BudgetTerms& terms = posted.account.terms;
  statement.population = stored.population;
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
  statement.entry_time_microseconds = ToMicroseconds(posted.entry.time());
  statement.entry_actor = posted.entry.actor();
  statement.entry_attempt = posted.entry.attempt();
  statement.entry_event = std::move(posted.event_text);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<double> AccountantEpsilon(const StoredJob& stored) {
  const v1::Plan& plan = stored.job.plan();
  return stored.population.empty() ? 0.0 : EventEpsilon(plan.event(), plan.delta());
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
    DPAR_ASSIGN_OR_RETURN(const v1::Dataset dataset, GetDataset(transaction, stored.job.spec().dataset()));
    Statement statement = DescribeJob(stored, output, dataset, context.time);
    statement.accountant_epsilon = accountant_epsilon;
    if (!stored.population.empty()) {
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

absl::StatusOr<v1::Job::State> GiveUp(Database& database, const StoredJob& stored, const FailedAttempt& attempt,
                                      int max_attempts) {
  const std::string& name = stored.job.name();
  v1::Job::State state = v1::Job::RUNNING;
  DPAR_SEAM("giving-up");
  DPAR_RETURN_IF_ERROR(database.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const StoredJob now, HoldLease(transaction, name, stored.lease));
    DPAR_RETURN_IF_ERROR(transaction.Notify(name));
    DPAR_ASSIGN_OR_RETURN(state, Settle(transaction, now, stored.job.spec().dataset(), attempt, max_attempts));
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
    // How far its worker came is not known, so it counts as having opened the data.
    const Ending ending{now, now.openings, WorkerNow()};
    DPAR_ASSIGN_OR_RETURN(
        state, now.cancel_requested ? Cancel(transaction, ending) : TryAgain(transaction, ending, max_attempts));
    return transaction.Notify(orphan.job.name());
  }));
  return state;
}

}  // namespace dpar
