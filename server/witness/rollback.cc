#include "server/witness/rollback.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/ledger/entries.h"
#include "server/queue/queue.h"
#include "server/resource_name.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

constexpr absl::string_view kNext =
    " No job runs on this data until an operator has settled what was spent: `dpard thaw`, see deploy/OPERATIONS.md";
constexpr absl::string_view kJobFailure =
    "the budget of its data was frozen, because results were released that the server's ledger does not know; nothing "
    "of this run was released, and its price was given back";
constexpr absl::string_view kPostedJobFailure =
    "the budget of its data was frozen, because results were released that the server's ledger does not know; nothing "
    "of this run was released, but its data was opened, and the times that the budget gives a price back then are used "
    "up, so its price was posted";
constexpr absl::string_view kVoidReason = "the budget was frozen";
constexpr absl::string_view kClosedByThaw = "nobody knows how much was spent; ";
constexpr size_t kShownHash = 16;

// The start of a thaw's debit reason, by which the debit is found again.
std::string DebitTag(const std::optional<Mark>& mark) {
  return mark.has_value() ? absl::StrCat("thawed past entry ", mark->last().sequence, " (",
                                         mark->last().hash.substr(0, kShownHash), "): ")
                          : "thawed without a mark: ";
}

bool IsLive(const v1::Job& job) { return job.state() == v1::Job::QUEUED || job.state() == v1::Job::RUNNING; }

// Each job in its own transaction, job locked before budget. Nothing new can be reserved meanwhile.
absl::Status EndLiveJobs(Database& database, const std::string& population) {
  using Names = std::vector<std::string>;
  DPAR_ASSIGN_OR_RETURN(const Names names, ReadFrom(database, [&](Transaction& transaction) {
                          return transaction.QueryTexts(
                              "SELECT name FROM jobs WHERE state IN ($2, $3) AND population = $1 ORDER BY name",
                              {population, int64_t{v1::Job::QUEUED}, int64_t{v1::Job::RUNNING}});
                        }));
  for (const std::string& name : names) {
    const absl::Status ended = database.Write([&](Transaction& transaction) -> absl::Status {
      const EntryContext context{"server", absl::Now()};
      DPAR_ASSIGN_OR_RETURN(const StoredJob stored, LockJob(transaction, name));
      if (!IsLive(stored.job)) {
        return absl::OkStatus();
      }
      DPAR_ASSIGN_OR_RETURN(const Settlement settlement, VoidOrPost(transaction, population, name, stored.openings,
                                                                    std::string(kVoidReason), context));
      const absl::string_view failure = settlement == Settlement::kVoided ? kJobFailure : kPostedJobFailure;
      DPAR_RETURN_IF_ERROR(End(transaction, name, v1::Job::FAILED, std::string(failure), context.time));
      return transaction.Notify(name);
    });
    if (absl::IsDataLoss(ended)) {
      // Its entry was altered. It stays, and can neither run while the budget is frozen nor ever be posted.
      spdlog::error("witness: {} cannot be ended: {}", name, std::string(ended.message()));
      continue;
    }
    DPAR_RETURN_IF_ERROR(ended);
  }
  return absl::OkStatus();
}

absl::Status RequireFrozen(const Account& account) {
  return account.frozen_reason.empty() ? MakeError(absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD,
                                                   "the budget is not frozen; nothing was changed")
                                       : absl::OkStatus();
}

// Whether this ledger can cover what was spent only by never admitting a job again.
bool IsUnknown(const std::optional<Mark>& mark, const Account& account) {
  return !mark.has_value() || mark->terms.order != account.terms.order || mark->terms.closed;
}

// What to debit so that this ledger covers everything that the mark knows.
int64_t MissingUnits(const Comparison& comparison, const std::optional<Mark>& mark) {
  const Account& account = comparison.account;
  if (!mark.has_value()) {
    return account.left_units();
  }
  if (!comparison.rolled_back) {
    return 0;
  }
  if (IsUnknown(mark, account)) {
    return account.left_units();
  }
  const int64_t common = comparison.common.has_value() ? mark->checkpoints[*comparison.common].spent_units : 0;
  // A lowered cap was lost with the rollback, so its reduction is debited instead.
  const int64_t lost_cap = std::max<int64_t>(0, account.terms.cap_units - mark->terms.cap_units);
  return std::min(mark->last().spent_units - common + lost_cap, kMaxUnits - account.used_units());
}

// What the mark knows was priced, and promised, under its own degree promise, sum of N and delta, which this store may
// lack.
absl::Status Narrow(Transaction& transaction, const Mark& mark, const EntryContext& context) {
  if (mark.terms.max_degree > 0) {
    DPAR_RETURN_IF_ERROR(NarrowToDegree(transaction, mark.population, mark.terms.max_degree));
  }
  DPAR_RETURN_IF_ERROR(RaiseNodeTotal(transaction, mark.population, mark.terms.node_total));
  return LowerDelta(transaction, mark.population, mark.terms.cap_delta, "the cap's delta as its mark has it", context);
}

// A merged population's ledger has ended. What its mark knows and it lacks is missing where its spend went. Returns
// what is closed for that, if anything.
absl::StatusOr<std::string> SettleMerged(Transaction& transaction, const Comparison& comparison, bool marked,
                                         const std::string& reason, const EntryContext& context) {
  if (marked && !comparison.rolled_back) {
    return std::string();
  }
  std::string end = comparison.account.merged_into;
  while (true) {
    DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, end));
    if (account.merged_into.empty()) {
      DPAR_RETURN_IF_ERROR(Close(
          transaction, end, absl::StrCat(kClosedByThaw, "of a population that was merged into it: ", reason), context));
      return end;
    }
    end = account.merged_into;
  }
}

absl::StatusOr<bool> WasDebited(Transaction& transaction, const std::string& population, const std::string& tag) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> reasons,
                        transaction.QueryTexts("SELECT reason FROM ledger_entries WHERE population = $1 AND kind = $2",
                                               {population, int64_t{v1::LedgerEntry::DEBIT}}));
  return std::any_of(reasons.begin(), reasons.end(),
                     [&](const std::string& reason) { return reason.rfind(tag, 0) == 0; });
}

// The mark of the ledger as it is now, keeping the checkpoints shared with the mark before.
Mark NextMark(const std::string& population, const Comparison& comparison, const std::optional<Mark>& before,
              const Account& account) {
  Mark mark{population, MarkTerms(account), {}};
  if (before.has_value() && comparison.common.has_value()) {
    mark.checkpoints.assign(before->checkpoints.begin(),
                            before->checkpoints.begin() + static_cast<std::ptrdiff_t>(*comparison.common) + 1);
  }
  if (mark.checkpoints.empty() || mark.last().sequence < account.head_sequence) {
    AddCheckpoint(mark, {account.head_sequence, account.head_hash, account.posted_units});
  }
  return mark;
}

// So that a backup from before it was closed is found out. The caller holds the tenant's lock.
absl::Status MarkClosed(Database& database, const MarkDirectory& marks, const std::string& population) {
  const absl::StatusOr<std::optional<Mark>> read = marks.Read(population);
  if (absl::IsDataLoss(read.status())) {
    return absl::OkStatus();  // which closes it at any thaw
  }
  DPAR_RETURN_IF_ERROR(read.status());
  Comparison comparison;
  DPAR_RETURN_IF_ERROR(database.Read([&](Transaction& transaction) -> absl::Status {
    if (read->has_value()) {
      DPAR_ASSIGN_OR_RETURN(comparison, CompareWithMark(transaction, population, **read));
      return absl::OkStatus();
    }
    comparison = {};
    DPAR_ASSIGN_OR_RETURN(comparison.account, LoadAccount(transaction, population));
    return absl::OkStatus();
  }));
  Mark mark = comparison.rolled_back ? **read : NextMark(population, comparison, *read, comparison.account);
  mark.terms.closed = true;
  return marks.Write(mark);
}

absl::StatusOr<std::optional<Rollback>> Judge(Database& database, const MarkDirectory& marks,
                                              const std::string& population, WitnessReport& report) {
  const absl::StatusOr<std::optional<Mark>> mark = marks.Read(population);
  if (!mark.ok() && !absl::IsDataLoss(mark.status())) {
    return mark.status();
  }
  std::optional<Rollback> found;
  DPAR_RETURN_IF_ERROR(database.Read([&](Transaction& transaction) -> absl::Status {
    const absl::StatusOr<Account> account = LoadAccount(transaction, population);
    if (absl::IsNotFound(account.status())) {
      ++report.unclaimed;
      return absl::OkStatus();
    }
    DPAR_RETURN_IF_ERROR(account.status());
    if (!mark.ok()) {
      found = Rollback{population, UnreadableReason(mark.status().message())};
    } else if (mark->has_value()) {
      DPAR_ASSIGN_OR_RETURN(const Comparison comparison, CompareWithMark(transaction, population, **mark));
      if (comparison.rolled_back) {
        found = Rollback{population, RollbackReason(**mark)};
      } else {
        ++report.good;
      }
    }
    return absl::OkStatus();
  }));
  return found;
}

// Populations, not frozen, with spend or a closing entry but without a mark.
absl::StatusOr<std::vector<std::string>> Unmarked(Transaction& transaction, const std::vector<std::string>& marked) {
  DPAR_ASSIGN_OR_RETURN(std::vector<std::string> populations,
                        transaction.QueryTexts("SELECT name FROM populations WHERE (posted_units > 0 OR "
                                               "closed_reason <> '') AND frozen_reason = '' ORDER BY name",
                                               {}));
  std::erase_if(populations, [&](const std::string& population) {
    return std::binary_search(marked.begin(), marked.end(), population);
  });
  return populations;
}

}  // namespace

MarkedTerms MarkTerms(const Account& account) {
  const BudgetTerms& terms = account.terms;
  return {terms.cap_epsilon,
          terms.cap_delta,
          terms.order,
          terms.cap_units,
          account.max_degree,
          account.node_total,
          !account.closed_reason.empty()};
}

BudgetTerms TermsOf(const Mark& mark) {
  return {mark.terms.cap_epsilon, mark.terms.cap_delta, mark.terms.order, mark.terms.cap_units};
}

absl::StatusOr<Comparison> CompareWithMark(Transaction& transaction, const std::string& population, const Mark& mark) {
  Comparison comparison;
  DPAR_ASSIGN_OR_RETURN(comparison.account, LoadAccount(transaction, population));
  for (size_t i = mark.checkpoints.size(); i-- > 0;) {
    DPAR_ASSIGN_OR_RETURN(const std::string hash, HashOfEntry(transaction, population, mark.checkpoints[i].sequence));
    if (hash == mark.checkpoints[i].hash) {
      comparison.common = i;
      break;
    }
  }
  comparison.rolled_back = comparison.common != mark.checkpoints.size() - 1;
  return comparison;
}

std::string RollbackReason(const Mark& mark) {
  return absl::StrCat(
      "results were released up to entry ", mark.last().sequence,
      " of this budget's ledger, and the ledger does not have that entry: it is older, as after a backup "
      "was restored, or another.",
      kNext);
}

std::string UnreadableReason(absl::string_view why) {
  return absl::StrCat("the mark of what was spent cannot be read (", why,
                      "), so the ledger may be older than results "
                      "that were released.",
                      kNext);
}

absl::Status Freeze(Database& database, const std::string& population, const std::string& reason) {
  DPAR_RETURN_IF_ERROR(database.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Account account, LockAccount(transaction, population));
    return account.frozen_reason.empty() ? SetFrozen(transaction, population, reason) : absl::OkStatus();
  }));
  return EndLiveJobs(database, population);
}

absl::StatusOr<WitnessReport> CompareAll(Database& database, const MarkDirectory& marks) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> marked, marks.List());
  WitnessReport report;
  for (const std::string& population : marked) {
    DPAR_ASSIGN_OR_RETURN(std::optional<Rollback> found, Judge(database, marks, population, report));
    if (found.has_value()) {
      report.rollbacks.push_back(*std::move(found));
    }
  }
  DPAR_RETURN_IF_ERROR(database.Read([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(report.unmarked, Unmarked(transaction, marked));
    DPAR_ASSIGN_OR_RETURN(
        report.merged,
        transaction.QueryTexts("SELECT name FROM populations WHERE merged_into <> '' AND frozen_reason = '' UNION "
                               "SELECT merged_into FROM populations WHERE merged_into <> '' ORDER BY 1",
                               {}));
    return absl::OkStatus();
  }));
  return report;
}

absl::StatusOr<Thawed> Thaw(Database& database, const MarkDirectory& marks, const std::string& population,
                            const std::string& reason, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(const DirectoryLock lock, marks.Lock(TenantOf(population)));
  const absl::StatusOr<std::optional<Mark>> read = marks.Read(population);
  if (!read.ok() && !absl::IsDataLoss(read.status())) {
    return read.status();
  }
  const std::optional<Mark> mark = read.ok() ? *read : std::nullopt;
  // Checked before anything is ended, and again below under the lock.
  DPAR_RETURN_IF_ERROR(database.Read([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, population));
    return RequireFrozen(account);
  }));
  DPAR_RETURN_IF_ERROR(EndLiveJobs(database, population));
  Thawed thawed;
  Comparison comparison;
  Account account;
  DPAR_RETURN_IF_ERROR(database.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(account, LockAccount(transaction, population));
    DPAR_RETURN_IF_ERROR(RequireFrozen(account));
    if (mark.has_value()) {
      if (account.merged_into.empty()) {
        DPAR_RETURN_IF_ERROR(Narrow(transaction, *mark, context));
      }
      DPAR_ASSIGN_OR_RETURN(comparison, CompareWithMark(transaction, population, *mark));
    } else {
      comparison = {account, std::nullopt, false};
    }
    if (!account.merged_into.empty()) {
      DPAR_ASSIGN_OR_RETURN(thawed.closed_end,
                            SettleMerged(transaction, comparison, mark.has_value(), reason, context));
      return absl::OkStatus();
    }
    const std::string tag = DebitTag(mark);
    DPAR_ASSIGN_OR_RETURN(const bool debited, WasDebited(transaction, population, tag));
    thawed.debited_units = debited && mark.has_value() ? 0 : MissingUnits(comparison, mark);
    if (thawed.debited_units > 0) {
      DPAR_RETURN_IF_ERROR(
          Debit(transaction, population, thawed.debited_units, absl::StrCat(tag, reason), context).status());
    }
    if (IsUnknown(mark, account)) {
      DPAR_RETURN_IF_ERROR(Close(transaction, population, absl::StrCat(kClosedByThaw, tag, reason), context));
    }
    DPAR_ASSIGN_OR_RETURN(account, LockAccount(transaction, population));
    thawed.left_units = account.left_units();
    thawed.closed = !account.closed_reason.empty();
    return absl::OkStatus();
  }));
  // First, since the mark of `population` then no longer shows what its ledger lacked.
  if (!thawed.closed_end.empty()) {
    DPAR_RETURN_IF_ERROR(MarkClosed(database, marks, thawed.closed_end));
  }
  DPAR_RETURN_IF_ERROR(marks.Write(NextMark(population, comparison, mark, account)));
  DPAR_RETURN_IF_ERROR(
      database.Write([&](Transaction& transaction) { return SetFrozen(transaction, population, ""); }));
  return thawed;
}

}  // namespace dpar
