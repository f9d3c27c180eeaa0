#ifndef DPAR_SERVER_PAGE_CHAIN_CHECKER_H_
#define DPAR_SERVER_PAGE_CHAIN_CHECKER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "server/page/spend_steps.h"
#include "server/periodic.h"
#include "server/store/database.h"

namespace dpar {

// Verifies all ledgers' hash chains in turn, each at most once an hour, in at most a tenth of a core; time grows with
// all entries, so a round may take longer. Thread-safe, but for VerifyNext. The database outlives it.
class ChainChecker {
 public:
  explicit ChainChecker(Database& database) : database_(database) {}
  // Abandons a chain that is being verified.
  ~ChainChecker() { stop_ = true; }
  ChainChecker(const ChainChecker&) = delete;
  ChainChecker& operator=(const ChainChecker&) = delete;

  // Starts its thread. Called once, or never in tests that call VerifyNext.
  void Start();
  // Verifies the chain verified longest ago, if over an hour before `now`; returns how long to rest. An unreadable
  // chain is at fault like a broken one, unless the store itself is away.
  absl::Duration VerifyNext(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  struct Fault {
    std::string population;
    absl::Time time;       // when it was found
    int64_t sequence = 0;  // 0 when the chain could not be read
    std::string what;
  };
  struct Summary {
    int64_t verified = 0;
    std::optional<absl::Time> oldest;  // all of them at this time or later
    std::vector<Fault> faults;
  };
  [[nodiscard]] Summary Summarise(const std::string& tenant) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Verified {
    BudgetHead head;
    absl::Time time;
    int64_t bad_sequence = 0;
    std::string fault;  // empty for an intact chain
  };

  [[nodiscard]] std::optional<BudgetHead> Next(const std::vector<BudgetHead>& heads, absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  Database& database_;
  std::atomic<bool> stop_ = false;
  mutable Mutex mutex_;
  std::map<std::string, Verified> verified_ ABSL_GUARDED_BY(mutex_);  // by budget
  std::vector<BudgetHead> heads_;                                     // of the round; for VerifyNext only
  absl::Time heads_time_ = absl::InfinitePast();
  std::unique_ptr<Periodic> verifying_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_CHAIN_CHECKER_H_
