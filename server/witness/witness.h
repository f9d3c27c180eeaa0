// The rule that spent budget stays spent, also when the store is rolled back: before anything that was paid for leaves
// the server, a mark outside of the store says so (mark.h).
//
// When a mark is written. Budget is spent for good when something that it paid for leaves: a model, a certificate, an
// accuracy, or how a job ended; or when an operator was told that a debit or a lower cap holds. A mark that is written
// before the commit could be ahead of a ledger that then crashed, and freeze a budget for nothing. So it is written
// after the commit, and every path by which such a thing leaves asks Cover first. It does not matter then which server
// posted, which one answers, and where either crashed: what has no mark was not seen by anybody. Reservations need
// none: nothing left for them, and whoever rolls one back rolls its job back too.
//
// What the rule leaves out. Budgets and ledger entries are shown as they are, without a mark, and so is that a job
// posted rather than gave its price back.
//
// What is trusted. The witness directory, that it is not rolled back together with the store: who can do that can have
// the budget twice. That rows which can be read are durable: SQLite syncs its log before it shows a commit to anybody
// else, and so does PostgreSQL with synchronous_commit on. A standby that takes over without the last commits is a
// rollback, and found as one.
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
#include "absl/synchronization/mutex.h"
#include "server/store/database.h"
#include "server/witness/mark_directory.h"
#include "server/witness/rollback.h"

namespace dpar {

// An entry that paid for something. Its hash says which ledger it is of: one that was rolled back and went on has other
// entries in the same places.
struct Spend {
  std::string job;
  std::string budget_id;
  int64_t sequence = 0;
  std::string hash;
};
// The entries that the given jobs posted; none for those that have posted nothing.
absl::StatusOr<std::vector<Spend>> SpendsOf(Transaction& transaction, const std::vector<std::string>& jobs);

// Thread-safe. The database outlives it.
class Witness {
 public:
  // `on_failure` is called whenever a mark could not be written or read.
  Witness(
      Database& database, std::string directory, std::function<void()> on_failure = [] {})
      : database_(database), marks_(std::move(directory)), on_failure_(std::move(on_failure)) {}

  [[nodiscard]] const MarkDirectory& marks() const { return marks_; }

  // At the start of a server, before it does anything else with the store: makes the directory, sees that it is the
  // store's own (pairing.h), freezes the budgets whose ledgers are older than their marks, and marks those that have
  // spent something and have no mark. Says what it found in the log. An error ends the start: a server that cannot tell
  // what was spent must not serve.
  absl::Status Begin();

  // OK once a mark stands at or past the entry, in a ledger that has it. Asks the disk once for every entry, and not
  // again as long as that is remembered. FAILED_PRECONDITION / BUDGET_FROZEN when the ledger is not the one that was
  // marked; UNAVAILABLE when no mark can be written, or the ledger has the entry no longer: then nothing may leave.
  absl::Status Cover(const Spend& spend) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for all of them, with one mark for those of one budget.
  absl::Status Cover(const std::vector<Spend>& spends) ABSL_LOCKS_EXCLUDED(mutex_);
  // Covers what can be, and returns the names of the jobs whose entries BUDGET_FROZEN keeps back. Any other error is
  // one.
  absl::StatusOr<absl::flat_hash_set<std::string>> CoverEach(const std::vector<Spend>& spends)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // As Cover, for what the jobs posted, which is looked up.
  absl::Status CoverJobs(const std::vector<std::string>& jobs) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same for everything that the ledger has now: for what an operator changed.
  absl::Status CoverAll(const std::string& budget_id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether marks can be written, as far as is known. Tries again when the last time failed.
  bool Writes();

 private:
  // Of one budget.
  absl::Status CoverSlowly(const std::string& budget, const std::vector<Spend>& spends) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Renew(const std::string& budget, const std::vector<Spend>& spends, const Content& content)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Remember(const std::vector<Spend>& spends) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status FreezeRolledBack(const WitnessReport& report);
  absl::Status MarkUnmarked(const std::vector<std::string>& budgets);

  Database& database_;
  MarkDirectory marks_;
  const std::function<void()> on_failure_;
  std::atomic<bool> failing_ = false;
  absl::Mutex mutex_;
  // Hashes of entries that a mark stands at or past, at most kMaxCovered.
  absl::flat_hash_set<std::string> covered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_WITNESS_H_
