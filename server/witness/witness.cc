#include "server/witness/witness.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "dpar/v1/budget.pb.h"
#include "server/ledger/entries.h"
#include "server/ledger/ledger.h"
#include "server/resource_name.h"
#include "server/seam.h"
#include "server/store/read_from.h"
#include "server/witness/pairing.h"

namespace dpar {
namespace {

// About ten megabytes. When full, all are forgotten and looked up again.
constexpr size_t kMaxCovered = 100'000;
constexpr int64_t kContentsAtOnce = 500;

// For callers: paths go to the log only.
absl::Status CannotMark() {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   "the server cannot record what was spent in its witness directory, and shows no results until it "
                   "can; try again, and tell an operator, whose log says why");
}

// Whether the ledger has all entries. It may have been replaced since, as by a standby without the last commits.
absl::StatusOr<bool> HasAll(Transaction& transaction, const std::vector<Spend>& spends) {
  for (const Spend& spend : spends) {
    DPAR_ASSIGN_OR_RETURN(const std::string hash, HashOfEntry(transaction, spend.population, spend.sequence));
    if (hash.empty() || hash != spend.hash) {
      return false;
    }
  }
  return true;
}

bool AllUpTo(const std::vector<Spend>& spends, int64_t sequence) {
  return std::all_of(spends.begin(), spends.end(), [&](const Spend& spend) { return spend.sequence <= sequence; });
}

}  // namespace

absl::StatusOr<std::vector<Spend>> SpendsOf(Transaction& transaction, const std::vector<std::string>& jobs) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.QueryNames(
          absl::StrCat("SELECT l.job, l.population, l.sequence, l.hash FROM jobs j JOIN ledger_entries l ON "
                       "l.population = j.population AND l.job = j.name AND l.kind = ",
                       static_cast<int>(v1::LedgerEntry::POST), " WHERE j.name IN ($)"),
          jobs));
  std::vector<Spend> spends;
  for (const Row& row : rows) {
    RowReader reader(row);
    Spend& spend = spends.emplace_back();
    spend.job = reader.Text();
    spend.population = reader.Text();
    spend.sequence = reader.Int();
    spend.hash = reader.Text();
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return spends;
}

absl::Status Witness::Begin() {
  DPAR_RETURN_IF_ERROR(marks_.Make());
  DPAR_ASSIGN_OR_RETURN(std::string id, Pair(database_, marks_, absl::Now()));
  marks_.Expect(std::move(id));
  DPAR_ASSIGN_OR_RETURN(const WitnessReport report, CompareAll(database_, marks_));
  DPAR_RETURN_IF_ERROR(FreezeRolledBack(report));
  DPAR_RETURN_IF_ERROR(MarkUnmarked(report.unmarked));
  DPAR_RETURN_IF_ERROR(RememberContents());
  // A server may have died between the commit of a merge and the mark that keeps a backup from undoing it.
  for (const std::string& population : report.merged) {
    const absl::Status covered = CoverAll(population);
    if (!absl::IsFailedPrecondition(covered)) {  // frozen meanwhile
      DPAR_RETURN_IF_ERROR(covered);
    }
  }
  return absl::OkStatus();
}

absl::Status Witness::FreezeRolledBack(const WitnessReport& report) {
  for (const Rollback& rollback : report.rollbacks) {
    DPAR_RETURN_IF_ERROR(Freeze(database_, rollback.population, rollback.reason));
    spdlog::error("witness: {} is frozen: {}", rollback.population, rollback.reason);
  }
  if (report.unclaimed > 0) {
    spdlog::warn(
        "witness: {} marks are of populations that this store does not know; whoever uploads their data again gets "
        "them frozen",
        report.unclaimed);
  }
  return absl::OkStatus();
}

// After a new directory was adopted.
absl::Status Witness::MarkUnmarked(const std::vector<std::string>& populations) {
  for (const std::string& population : populations) {
    DPAR_RETURN_IF_ERROR(CoverAll(population));
  }
  if (!populations.empty()) {
    spdlog::warn(
        "witness: {} populations had spent something and had no mark in {}; they were marked as they are. After `dpard "
        "adopt-witness` this is to be expected; otherwise find out where the marks are gone, since a ledger that was "
        "rolled back would not have been noticed",
        populations.size(), marks_.root());
  }
  return absl::OkStatus();
}

// An adopted directory knows no content, and would not recognise one that a restored store has lost.
absl::Status Witness::RememberContents() const {
  Content last;
  while (true) {
    std::vector<Row> rows;
    DPAR_RETURN_IF_ERROR(database_.Read([&](Transaction& transaction) -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(
          rows, transaction.Query("SELECT tenant, content_digest, population FROM (SELECT tenant, content_digest, "
                                  "population FROM contents UNION ALL SELECT tenant, content_digest, '' FROM "
                                  "public_contents) AS every WHERE (tenant, content_digest) > ($1, $2) "
                                  "ORDER BY tenant, content_digest LIMIT $3",
                                  {last.tenant, last.digest, kContentsAtOnce}));
      return absl::OkStatus();
    }));
    for (const Row& row : rows) {
      RowReader reader(row);
      last.tenant = reader.Text();
      last.digest = reader.Text();
      const std::string population = reader.Text();
      DPAR_RETURN_IF_ERROR(reader.status());
      const absl::Status kept = population.empty() ? marks_.KeepPublic(last) : marks_.KeepPopulation(last, population);
      if (absl::IsDataLoss(kept)) {  // uploads of this content are refused until the file is mended
        spdlog::error("witness: {}", std::string(kept.message()));
        continue;
      }
      DPAR_RETURN_IF_ERROR(kept);
    }
    if (rows.size() < static_cast<size_t>(kContentsAtOnce)) {
      return absl::OkStatus();
    }
  }
}

absl::Status Witness::Cover(const Spend& spend) { return Cover(std::vector<Spend>{spend}); }

absl::Status Witness::Cover(const std::vector<Spend>& spends) {
  std::map<std::string, std::vector<Spend>> unknown;
  {
    const MutexLock lock(&mutex_);
    for (const Spend& spend : spends) {
      if (!covered_.contains(spend.hash)) {
        unknown[spend.population].push_back(spend);
      }
    }
  }
  for (const auto& [population, spent] : unknown) {
    absl::Status status = CoverSlowly(population, spent);
    const bool failed = !status.ok() && !absl::IsFailedPrecondition(status);
    failing_ = failed;
    if (failed) {
      on_failure_();
      spdlog::error("witness: no mark, so nothing is shown: {}", std::string(status.message()));
      return CannotMark();
    }
    DPAR_RETURN_IF_ERROR(status);
    Remember(spent);
  }
  return absl::OkStatus();
}

void Witness::Remember(const std::vector<Spend>& spends) {
  const MutexLock lock(&mutex_);
  if (covered_.size() + spends.size() > kMaxCovered) {
    covered_.clear();
  }
  for (const Spend& spend : spends) {
    covered_.insert(spend.hash);
  }
}

absl::StatusOr<absl::flat_hash_set<std::string>> Witness::CoverEach(const std::vector<Spend>& spends) {
  absl::flat_hash_set<std::string> kept_back;
  const absl::Status all = Cover(spends);
  if (!absl::IsFailedPrecondition(all)) {
    DPAR_RETURN_IF_ERROR(all);
    return kept_back;
  }
  for (const Spend& spend : spends) {
    const absl::Status one = Cover(spend);
    if (absl::IsFailedPrecondition(one)) {
      kept_back.insert(spend.job);
      continue;
    }
    DPAR_RETURN_IF_ERROR(one);
  }
  return kept_back;
}

absl::Status Witness::CoverJobs(const std::vector<std::string>& jobs) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Spend> spends,
                        ReadFrom(database_, [&](Transaction& transaction) { return SpendsOf(transaction, jobs); }));
  return Cover(spends);
}

absl::Status Witness::CoverAll(const std::string& population) {
  DPAR_ASSIGN_OR_RETURN(const Account account, ReadFrom(database_, [&](Transaction& transaction) {
                          return LoadAccount(transaction, population);
                        }));
  return Cover(Spend{"", population, account.head_sequence, account.head_hash});
}

absl::Status Witness::CoverSlowly(const std::string& population, const std::vector<Spend>& spends) {
  DPAR_RETURN_IF_ERROR(CoverMerged(population));
  DPAR_ASSIGN_OR_RETURN(const DirectoryLock lock, marks_.Lock(TenantOf(population)));
  return Renew(population, spends);
}

// Nothing that this population paid for leaves while a backup could give a population back that was merged into it.
absl::Status Witness::CoverMerged(const std::string& population) {
  using Names = std::vector<std::string>;
  DPAR_ASSIGN_OR_RETURN(const Names merged, ReadFrom(database_, [&](Transaction& transaction) {
                          return transaction.QueryTexts("SELECT name FROM populations WHERE merged_into = $1",
                                                        {population});
                        }));
  for (const std::string& name : merged) {
    DPAR_RETURN_IF_ERROR(CoverAll(name));
  }
  return absl::OkStatus();
}

// The mark is read before the ledger, and no other writes it meanwhile.
absl::Status Witness::Renew(const std::string& population, const std::vector<Spend>& spends) {
  const absl::StatusOr<std::optional<Mark>> read = marks_.Read(population);
  if (absl::IsDataLoss(read.status())) {
    const std::string reason = UnreadableReason(read.status().message());
    DPAR_RETURN_IF_ERROR(Freeze(database_, population, reason));
    return BudgetFrozen(population, reason);
  }
  DPAR_RETURN_IF_ERROR(read.status());
  Mark mark = read->value_or(Mark{population, {}, {}});
  Comparison found;
  bool has_all = false;
  DPAR_RETURN_IF_ERROR(database_.Read([&](Transaction& transaction) -> absl::Status {
    DPAR_RETURN_IF_ERROR(CheckStillPaired(transaction, marks_));
    DPAR_ASSIGN_OR_RETURN(has_all, HasAll(transaction, spends));
    if (mark.checkpoints.empty()) {
      DPAR_ASSIGN_OR_RETURN(found.account, LoadAccount(transaction, population));
      return absl::OkStatus();
    }
    DPAR_ASSIGN_OR_RETURN(found, CompareWithMark(transaction, population, mark));
    return absl::OkStatus();
  }));
  const Account& account = found.account;
  if (found.rolled_back) {
    DPAR_RETURN_IF_ERROR(Freeze(database_, population, RollbackReason(mark)));
  }
  if (found.rolled_back || !account.frozen_reason.empty()) {
    // What mark and ledger share was released before, and its release is known.
    const bool known = has_all && found.common.has_value() && AllUpTo(spends, mark.checkpoints[*found.common].sequence);
    return known ? absl::OkStatus()
                 : BudgetFrozen(population, found.rolled_back ? RollbackReason(mark) : account.frozen_reason);
  }
  if (!has_all || !AllUpTo(spends, account.head_sequence)) {
    return absl::UnavailableError("the ledger does not have an entry that was just read from it");
  }
  if (mark.checkpoints.empty() || mark.last().sequence < account.head_sequence) {
    mark.terms = MarkTerms(account);
    AddCheckpoint(mark, {account.head_sequence, account.head_hash, account.posted_units});
    DPAR_RETURN_IF_ERROR(marks_.Write(mark));
  } else {
    DPAR_RETURN_IF_ERROR(marks_.Sync(population));
  }
  DPAR_SEAM("marked");
  return absl::OkStatus();
}

bool Witness::Writes() {
  if (failing_) {
    failing_ = !marks_.TryWriting().ok();
  }
  return !failing_;
}

}  // namespace dpar
