#include "tests/crash/snapshot.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/certificate/certificate.h"
#include "core/status_macros.h"
#include "server/ledger/ledger.h"
#include "server/store/message_text.h"

namespace dpar::crash {
namespace {

absl::StatusOr<std::set<std::string>> ReadNames(Transaction& transaction, absl::string_view sql) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, transaction.Query(sql, {}));
  std::set<std::string> names;
  for (const Row& row : rows) {
    RowReader reader(row);
    names.insert(reader.Text());
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return names;
}

absl::StatusOr<BudgetRecord> ReadBudget(Transaction& transaction, const std::string& id, const VerifyingKey& key) {
  BudgetRecord budget;
  budget.id = id;
  DPAR_ASSIGN_OR_RETURN(budget.account, LoadAccount(transaction, id));
  DPAR_ASSIGN_OR_RETURN(const std::vector<StoredEntry> entries,
                        LoadEntries(transaction, "population = $1 ORDER BY sequence", {id}));
  for (const StoredEntry& stored : entries) {
    budget.entries.push_back(stored.entry);
  }
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> envelopes, Envelopes(transaction, id));
  std::vector<EntryPosition> checkpoints;
  for (const std::string& envelope : envelopes) {
    DPAR_ASSIGN_OR_RETURN(const Statement statement, OpenSigned(envelope, {key}));
    checkpoints.push_back({statement.ledger_sequence, statement.ledger_hash});
  }
  DPAR_ASSIGN_OR_RETURN(budget.chain, VerifyChain(transaction, id, checkpoints));
  return budget;
}

}  // namespace

int64_t Snapshot::CountJobs(v1::Job::State state) const {
  return std::count_if(jobs.begin(), jobs.end(),
                       [state](const auto& item) { return item.second.stored.job.state() == state; });
}

int64_t Snapshot::CountRetried() const {
  return std::count_if(jobs.begin(), jobs.end(),
                       [](const auto& item) { return item.second.stored.job.attempts() > 1; });
}

absl::Duration Snapshot::BusyTime() const {
  absl::Duration busy;
  for (const auto& [name, record] : jobs) {
    const v1::Job& job = record.stored.job;
    if (job.has_start_time() && job.has_end_time()) {
      busy += absl::Microseconds(ToMicroseconds(job.end_time()) - ToMicroseconds(job.start_time()));
    }
  }
  return busy;
}

absl::StatusOr<Snapshot> ReadSnapshot(Transaction& transaction, const VerifyingKey& key) {
  Snapshot snapshot;
  DPAR_ASSIGN_OR_RETURN(const std::set<std::string> names, ReadNames(transaction, "SELECT name FROM jobs"));
  for (const std::string& name : names) {
    JobRecord& record = snapshot.jobs[name];
    DPAR_ASSIGN_OR_RETURN(record.stored, GetJob(transaction, name));
    if (record.stored.job.state() == v1::Job::SUCCEEDED) {
      DPAR_ASSIGN_OR_RETURN(record.output, GetOutput(transaction, name));
    }
  }
  DPAR_ASSIGN_OR_RETURN(snapshot.jobs_with_output, ReadNames(transaction, "SELECT job FROM outputs"));
  DPAR_ASSIGN_OR_RETURN(snapshot.datasets, ReadNames(transaction, "SELECT name FROM datasets"));
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> budgets, AllPopulations(transaction));
  for (const std::string& id : budgets) {
    DPAR_ASSIGN_OR_RETURN(BudgetRecord budget, ReadBudget(transaction, id, key));
    for (const v1::LedgerEntry& entry : budget.entries) {
      // What a merge made of another population's posts is that one's.
      if (entry.job().empty() || entry.kind() == v1::LedgerEntry::INHERIT) {
        continue;
      }
      const auto job = snapshot.jobs.find(entry.job());
      if (job == snapshot.jobs.end() || job->second.stored.population != id) {
        return absl::DataLossError(absl::StrCat("entry ", entry.sequence(), " of budget ", id, " is for ", entry.job(),
                                                ", which is not a job of that budget"));
      }
      job->second.entries.push_back(entry);
    }
    snapshot.budgets.push_back(std::move(budget));
  }
  return snapshot;
}

}  // namespace dpar::crash
