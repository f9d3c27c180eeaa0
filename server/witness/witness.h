// The rule that spent budget stays spent, also when the store is rolled back: before anything that was paid for leaves
// the server, a mark outside of the store records it (mark.h).
//
// When. Budget is spent for good when something that it paid for leaves (a model, a certificate, an accuracy, how a job
// ended), or when an operator is told that a debit or a lower cap holds. A mark before the commit could be ahead of a
// ledger that crashed, and freeze a budget for nothing. So it is written after the commit, and every way out calls
// Cover first. Then it does not matter which server posts, answers or crashes: what has no mark was not seen.
// Reservations need none: nothing left for them, and their rollback rolls the job back.
//
// Exempt: budgets and ledger entries are shown without a mark, and so is whether a job posted or voided its price.
// Trusted: the witness directory is not rolled back with the store (who can do that can spend the budget twice), and
// readable rows are durable: SQLite syncs its log before a commit is visible, as does PostgreSQL with
// synchronous_commit. A standby that takes over without the last commits is a rollback, and detected.
#ifndef DPAR_SERVER_WITNESS_WITNESS_H_
#define DPAR_SERVER_WITNESS_WITNESS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "server/store/database.h"
#include "server/witness/mark_directory.h"
#include "server/witness/rollback.h"

namespace dpar {

// An entry that paid for something. Its hash tells its ledger from a rolled back one with other entries there.
struct Spend {
  std::string job;
  std::string population;
  int64_t sequence = 0;
  std::string hash;
};
// The posts of these jobs; jobs that posted nothing have none.
absl::StatusOr<std::vector<Spend>> SpendsOf(Transaction& transaction, const std::vector<std::string>& jobs);

// Thread-safe. The database outlives it.
class Witness {
 public:
  // `on_failure` is called when a mark cannot be written or read.
  Witness(
      Database& database, std::string directory, std::function<void()> on_failure = [] {})
      : database_(database), marks_(std::move(directory)), on_failure_(std::move(on_failure)) {}

  [[nodiscard]] const MarkDirectory& marks() const { return marks_; }

  // At a server's start, before anything else uses the store: makes the directory, checks the pairing, freezes
  // populations behind their marks, marks those with spend and no mark and the ends of both sides of a merge, logs it,
  // and remembers every content that the store has. After an error the server must not serve.
  absl::Status Begin();

  // OK once a mark stands at or past the entry, in a ledger that has it; remembered, so mostly without disk access.
  // Otherwise nothing may leave: FAILED_PRECONDITION / BUDGET_FROZEN when the ledger is not the marked one, UNAVAILABLE
  // when no mark can be written or the ledger lost the entry.
  absl::Status Cover(const Spend& spend) ABSL_LOCKS_EXCLUDED(mutex_);
  // One mark for all entries of a population.
  absl::Status Cover(const std::vector<Spend>& spends) ABSL_LOCKS_EXCLUDED(mutex_);
  // Covers what it can; returns the jobs that BUDGET_FROZEN keeps back. Fails with any other error.
  absl::StatusOr<absl::flat_hash_set<std::string>> CoverEach(const std::vector<Spend>& spends)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // CoverJobs covers what the jobs posted; CoverAll everything in the ledger, after an operator's change.
  absl::Status CoverJobs(const std::vector<std::string>& jobs) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CoverAll(const std::string& population) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether marks can be written, as far as known. Tries again after a failure.
  bool Writes();

 private:
  // All for one population; CoverMerged for those that were merged into it.
  absl::Status CoverSlowly(const std::string& population, const std::vector<Spend>& spends) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Renew(const std::string& population, const std::vector<Spend>& spends) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CoverMerged(const std::string& population) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remember(const std::vector<Spend>& spends) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status FreezeRolledBack(const WitnessReport& report);
  absl::Status MarkUnmarked(const std::vector<std::string>& populations);
  absl::Status RememberContents() const;

  Database& database_;
  MarkDirectory marks_;
  const std::function<void()> on_failure_;
  std::atomic<bool> failing_ = false;
  Mutex mutex_;
  // Hashes of entries that a mark stands at or past, at most kMaxCovered.
  absl::flat_hash_set<std::string> covered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_WITNESS_H_
