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
constexpr size_t kShownHash = 16;

// The start of a thaw's debit reason, by which the debit is found again.
std::string DebitTag(const std::optional<Mark>& mark) {
  return mark.has_value() ? absl::StrCat("thawed past entry ", mark->last().sequence, " (",
                                         mark->last().hash.substr(0, kShownHash), "): ")
                          : "thawed without a mark: ";
}

bool IsLive(const v1::Job& job) { return job.state() == v1::Job::QUEUED || job.state() == v1::Job::RUNNING; }

// Each job in its own transaction, job locked before budget. Nothing new can be reserved meanwhile.
absl::Status EndLiveJobs(Database& database, const std::string& budget_id) {
  using Names = std::vector<std::string>;
  DPAR_ASSIGN_OR_RETURN(const Names names, ReadFrom(database, [&](Transaction& transaction) {
                          return transaction.QueryTexts(
                              "SELECT name FROM jobs WHERE state IN ($2, $3) AND budget_id = $1 ORDER BY name",
                              {budget_id, int64_t{v1::Job::QUEUED}, int64_t{v1::Job::RUNNING}});
                        }));
  for (const std::string& name : names) {
    const absl::Status ended = database.Write([&](Transaction& transaction) -> absl::Status {
      const EntryContext context{"server", absl::Now()};
      DPAR_ASSIGN_OR_RETURN(const StoredJob stored, LockJob(transaction, name));
      if (!IsLive(stored.job)) {
        return absl::OkStatus();
      }
      DPAR_ASSIGN_OR_RETURN(const Settlement settlement, VoidOrPost(transaction, budget_id, name, stored.openings,
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

// What to debit so that this ledger covers everything that the mark knows.
int64_t MissingUnits(const Comparison& comparison, const std::optional<Mark>& mark) {
  const Account& account = comparison.account;
  if (!mark.has_value()) {
    return account.left_units();
  }
  if (!comparison.rolled_back) {
    return 0;
  }
  if (mark->terms.order != account.terms.order) {
    return account.left_units();
  }
  const int64_t common = comparison.common.has_value() ? mark->checkpoints[*comparison.common].spent_units : 0;
  // A lowered cap was lost with the rollback, so its reduction is debited instead.
  const int64_t lost_cap = std::max<int64_t>(0, account.terms.cap_units - mark->terms.cap_units);
  return std::min(mark->last().spent_units - common + lost_cap, kMaxUnits - account.used_units());
}

absl::StatusOr<bool> WasDebited(Transaction& transaction, const std::string& budget_id, const std::string& tag) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> reasons,
                        transaction.QueryTexts("SELECT reason FROM ledger_entries WHERE budget_id = $1 AND kind = $2",
                                               {budget_id, int64_t{v1::LedgerEntry::DEBIT}}));
  return std::any_of(reasons.begin(), reasons.end(),
                     [&](const std::string& reason) { return reason.rfind(tag, 0) == 0; });
}

// The mark of the ledger as it is now, keeping the checkpoints shared with the mark before.
Mark NextMark(const Content& content, const std::string& budget_id, const Comparison& comparison,
              const std::optional<Mark>& before, const Account& account) {
  Mark mark{content, budget_id, MarkTerms(account), {}};
  if (before.has_value() && comparison.common.has_value()) {
    mark.checkpoints.assign(before->checkpoints.begin(),
                            before->checkpoints.begin() + static_cast<std::ptrdiff_t>(*comparison.common) + 1);
  }
  if (mark.checkpoints.empty() || mark.last().sequence < account.head_sequence) {
    AddCheckpoint(mark, {account.head_sequence, account.head_hash, account.posted_units});
  }
  return mark;
}

absl::StatusOr<std::optional<Rollback>> Judge(Database& database, const MarkDirectory& marks, const Content& content,
                                              WitnessReport& report) {
  const absl::StatusOr<std::optional<Mark>> mark = marks.Read(content);
  if (!mark.ok() && !absl::IsDataLoss(mark.status())) {
    return mark.status();
  }
  std::optional<Rollback> found;
  DPAR_RETURN_IF_ERROR(database.Read([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const std::optional<std::string> budget,
                          FindBudgetByContent(transaction, content.tenant, content.digest));
    if (!budget.has_value()) {
      ++report.unclaimed;
    } else if (!mark.ok()) {
      found = Rollback{content, *budget, UnreadableReason(mark.status().message())};
    } else if (mark->has_value()) {
      DPAR_ASSIGN_OR_RETURN(const Comparison comparison, CompareWithMark(transaction, *budget, **mark));
      if (comparison.rolled_back) {
        found = Rollback{content, *budget, RollbackReason(**mark)};
      } else {
        ++report.good;
      }
    }
    return absl::OkStatus();
  }));
  return found;
}

// Budgets, not frozen, with spend but without a mark.
absl::StatusOr<std::vector<std::string>> Unmarked(Transaction& transaction, const std::vector<Content>& marked) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                        transaction.Query("SELECT b.id, c.tenant, c.content_digest FROM budgets b JOIN contents c ON "
                                          "c.budget_id = b.id WHERE b.posted_units > 0 AND b.frozen_reason = '' "
                                          "ORDER BY b.id",
                                          {}));
  std::vector<std::string> budgets;
  for (const Row& row : rows) {
    RowReader reader(row);
    const std::string budget = reader.Text();
    const std::string tenant = reader.Text();
    const std::string digest = reader.Text();
    DPAR_RETURN_IF_ERROR(reader.status());
    if (!std::binary_search(marked.begin(), marked.end(), Content{tenant, digest})) {
      budgets.push_back(budget);
    }
  }
  return budgets;
}

}  // namespace

absl::StatusOr<Content> ContentOf(Transaction& transaction, const std::string& budget_id) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT tenant, content_digest FROM contents WHERE budget_id = $1", {budget_id}));
  if (rows.empty()) {
    return ResourceNotFound(budget_id);
  }
  RowReader reader(rows[0]);
  Content content;
  content.tenant = reader.Text();
  content.digest = reader.Text();
  DPAR_RETURN_IF_ERROR(reader.status());
  return content;
}

MarkedTerms MarkTerms(const Account& account) {
  const BudgetTerms& terms = account.terms;
  return {terms.cap_epsilon, terms.cap_delta, terms.order, terms.cap_units, account.max_degree};
}

BudgetTerms TermsOf(const Mark& mark) {
  return {mark.terms.cap_epsilon, mark.terms.cap_delta, mark.terms.order, mark.terms.cap_units};
}

absl::StatusOr<std::vector<std::string>> DatasetsOf(Transaction& transaction, const std::string& budget_id) {
  return transaction.QueryTexts("SELECT name FROM datasets WHERE budget_id = $1 ORDER BY create_time, name",
                                {budget_id});
}

absl::StatusOr<Comparison> CompareWithMark(Transaction& transaction, const std::string& budget_id, const Mark& mark) {
  Comparison comparison;
  DPAR_ASSIGN_OR_RETURN(comparison.account, LoadAccount(transaction, budget_id));
  for (size_t i = mark.checkpoints.size(); mark.budget_id == budget_id && i-- > 0;) {
    DPAR_ASSIGN_OR_RETURN(const std::string hash, HashOfEntry(transaction, budget_id, mark.checkpoints[i].sequence));
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

absl::Status Freeze(Database& database, const std::string& budget_id, const std::string& reason) {
  DPAR_RETURN_IF_ERROR(database.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Account account, LockAccount(transaction, budget_id));
    return account.frozen_reason.empty() ? SetFrozen(transaction, budget_id, reason) : absl::OkStatus();
  }));
  return EndLiveJobs(database, budget_id);
}

absl::StatusOr<WitnessReport> CompareAll(Database& database, const MarkDirectory& marks) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Content> contents, marks.List());
  WitnessReport report;
  for (const Content& content : contents) {
    DPAR_ASSIGN_OR_RETURN(std::optional<Rollback> found, Judge(database, marks, content, report));
    if (found.has_value()) {
      report.rollbacks.push_back(*std::move(found));
    }
  }
  DPAR_ASSIGN_OR_RETURN(report.unmarked,
                        ReadFrom(database, [&](Transaction& transaction) { return Unmarked(transaction, contents); }));
  return report;
}

absl::StatusOr<Thawed> Thaw(Database& database, const MarkDirectory& marks, const std::string& budget_id,
                            const std::string& reason, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(const Content content, ReadFrom(database, [&](Transaction& transaction) {
                          return ContentOf(transaction, budget_id);
                        }));
  DPAR_ASSIGN_OR_RETURN(const DirectoryLock lock, marks.Lock(content.tenant));
  const absl::StatusOr<std::optional<Mark>> read = marks.Read(content);
  if (!read.ok() && !absl::IsDataLoss(read.status())) {
    return read.status();
  }
  const std::optional<Mark> mark = read.ok() ? *read : std::nullopt;
  // Checked before anything is ended, and again below under the lock.
  DPAR_RETURN_IF_ERROR(database.Read([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, budget_id));
    return RequireFrozen(account);
  }));
  DPAR_RETURN_IF_ERROR(EndLiveJobs(database, budget_id));
  Thawed thawed;
  Comparison comparison;
  Account account;
  DPAR_RETURN_IF_ERROR(database.Write([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(account, LockAccount(transaction, budget_id));
    DPAR_RETURN_IF_ERROR(RequireFrozen(account));
    // The debit may have been priced under a degree promise that this store lacks.
    if (mark.has_value() && mark->terms.max_degree > 0) {
      DPAR_RETURN_IF_ERROR(NarrowToDegree(transaction, budget_id, mark->terms.max_degree));
      DPAR_ASSIGN_OR_RETURN(account, LockAccount(transaction, budget_id));
    }
    comparison = {account, std::nullopt, false};
    if (mark.has_value()) {
      DPAR_ASSIGN_OR_RETURN(comparison, CompareWithMark(transaction, budget_id, *mark));
    }
    const std::string tag = DebitTag(mark);
    DPAR_ASSIGN_OR_RETURN(const bool debited, WasDebited(transaction, budget_id, tag));
    thawed.debited_units = debited && mark.has_value() ? 0 : MissingUnits(comparison, mark);
    if (thawed.debited_units > 0) {
      DPAR_RETURN_IF_ERROR(
          Debit(transaction, budget_id, thawed.debited_units, absl::StrCat(tag, reason), context).status());
      DPAR_ASSIGN_OR_RETURN(account, LockAccount(transaction, budget_id));
    }
    thawed.left_units = account.left_units();
    return absl::OkStatus();
  }));
  DPAR_RETURN_IF_ERROR(marks.Write(NextMark(content, budget_id, comparison, mark, account)));
  DPAR_RETURN_IF_ERROR(database.Write([&](Transaction& transaction) { return SetFrozen(transaction, budget_id, ""); }));
  return thawed;
}

}  // namespace dpar
