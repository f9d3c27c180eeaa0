// Everything that a store says about jobs and ledgers, read in one transaction.
#ifndef DPAR_TESTS_CRASH_SNAPSHOT_H_
#define DPAR_TESTS_CRASH_SNAPSHOT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/certificate/signing_key.h"
#include "dpar/v1/budget.pb.h"
#include "server/ledger/entries.h"
#include "server/queue/queue.h"
#include "server/store/database.h"

namespace dpar::crash {

// A job, what it left in the ledger, and its output.
struct JobRecord {
  StoredJob stored;
  std::vector<v1::LedgerEntry> entries;  // of any budget
  std::optional<JobOutput> output;       // there when the job SUCCEEDED
};

struct BudgetRecord {
  std::string id;
  Account account;
  std::vector<v1::LedgerEntry> entries;
  // Hashes, sequence numbers and sums recomputed from the first entry on, against every certificate of its jobs.
  v1::VerifyChainResponse chain;
};

struct Snapshot {
  std::map<std::string, JobRecord> jobs;  // by name
  std::vector<BudgetRecord> budgets;
  std::set<std::string> jobs_with_output;  // rows, whatever their jobs say
  std::set<std::string> datasets;

  [[nodiscard]] int64_t CountJobs(v1::Job::State state) const;
  // Jobs that were started more than once.
  [[nodiscard]] int64_t CountRetried() const;
  // For how long the last attempts of jobs ran, together.
  [[nodiscard]] absl::Duration BusyTime() const;
};

// Fails on a row that cannot be read, or an entry whose job is not there.
absl::StatusOr<Snapshot> ReadSnapshot(Transaction& transaction, const VerifyingKey& key);

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_SNAPSHOT_H_
