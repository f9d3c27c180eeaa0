// Verifies the hash chains of all ledgers, one after the other, again and again.
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
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/page/spend_steps.h"
#include "server/periodic.h"
#include "server/store/database.h"

namespace dpar {

// Thread-safe, but for VerifyNext. The database outlives it. Time grows with all entries, so it has a tenth of a core
// at most, and each chain is verified once in an hour at most; what runs out of the hour takes as long as it takes.
class ChainChecker {
 public:
  explicit ChainChecker(Database& database) : database_(database) {}
  // A chain that is being verified is left.
  ~ChainChecker() { stop_ = true; }
  ChainChecker(const ChainChecker&) = delete;
  ChainChecker& operator=(const ChainChecker&) = delete;

  // On a thread of its own from now on. Called once, or never in tests that call VerifyNext.
  void Start();
  // Verifies the chain that was verified longest ago, unless that was less than an hour before `now`; how long to rest.
  // One that cannot be read is at fault like one that is broken, unless the store itself is not there.
  absl::Duration VerifyNext(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // What holds of one tenant's chains, or of all when it is empty.
  struct Fault {
    std::string dataset;
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

  // The next in turn, when it is due.
  [[nodiscard]] std::optional<BudgetHead> Next(const std::vector<BudgetHead>& heads, absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  Database& database_;
  std::atomic<bool> stop_ = false;
  mutable absl::Mutex mutex_;
  std::map<std::string, Verified> verified_ ABSL_GUARDED_BY(mutex_);  // by budget
  std::vector<BudgetHead> heads_;                                     // of the round; for VerifyNext only
  absl::Time heads_time_ = absl::InfinitePast();
  std::unique_ptr<Periodic> verifying_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_CHAIN_CHECKER_H_
