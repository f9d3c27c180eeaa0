// Overviews from the store and from this server's memory; overview.proto has their meaning.
#ifndef DPAR_SERVER_PAGE_OVERVIEWS_H_
#define DPAR_SERVER_PAGE_OVERVIEWS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "dpar/v1/overview.pb.h"
#include "server/auth/identity.h"
#include "server/ledger/ledger.h"
#include "server/page/chain_checker.h"
#include "server/page/recent_jobs.h"
#include "server/page/refusals.h"
#include "server/page/spend_log.h"
#include "server/page/usage_names.h"
#include "server/store/database.h"
#include "server/store/tokens.h"

namespace dpar {

struct ServerFacts {
  std::string version;
  absl::Time start_time;
  int64_t concurrent_jobs = 0;
  std::function<absl::Time()> certificate_expiry;  // of TLS
};

struct OverviewSources {
  Database& database;
  const SpendLog& spend;
  const ChainChecker& chains;
  const Refusals& refusals;
  const std::atomic<bool>& stopping;
};

// Thread-safe. Tenants are tenants/{t}, or empty for all; the caller checks access.
class Overviews {
 public:
  Overviews(const OverviewSources& sources, ServerFacts facts) : sources_(sources), facts_(std::move(facts)) {}

  // Asks the store at most once in two seconds for each tenant.
  absl::StatusOr<v1::Overview> Get(const Identity& caller, const std::string& tenant, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `filter` is checked.
  absl::StatusOr<v1::ListUsageResponse> ListUsage(const UsageFilter& filter, int64_t skip, int64_t page_size,
                                                  absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::SpendHistory> History(const std::string& tenant) const;
  absl::StatusOr<v1::SpendHistory> HistoryOf(const std::string& population) const;
  absl::StatusOr<v1::ListLedgerTailResponse> Tail(const std::string& tenant, int64_t page_size) const;
  // Of one population, entries before `before_sequence`.
  absl::StatusOr<v1::ListLedgerTailResponse> TailOf(const std::string& population, int64_t before_sequence,
                                                    int64_t page_size) const;

 private:
  struct StoreView {
    absl::Time time;
    QueueState queue;
    int64_t nearly_spent_count = 0;
    std::vector<v1::AttentionItem> nearly_spent;
    NotedJobs failed;
    NotedJobs expired;
    ExpiringTokens tokens;
  };

  struct BudgetAt {
    std::string id;
    int64_t head_sequence = 0;  // 0 when the budget could not be read
  };
  struct UsagePage {
    v1::ListUsageResponse response;
    std::vector<BudgetAt> budgets;
  };
  // The accountant's answer for a budget, or its fault.
  struct Equivalent {
    EquivalentEpsilon epsilon;
    std::string fault;
  };

  absl::StatusOr<StoreView> View(const std::string& tenant, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] v1::Health HealthOf(const Identity& caller, const std::string& tenant, const StoreView& view,
                                    const SpendLog::Summary& spend) const;
  void AddKeys(const Identity& caller, const StoreView& view, absl::Time now, v1::Overview& overview) const;
  absl::StatusOr<UsagePage> ReadUsage(Transaction& transaction, const UsageFilter& filter, int64_t skip,
                                      int64_t page_size, absl::Time now) const;
  // Adds the known equivalent epsilons, and computes at least one more, others as time permits: repeated calls get all.
  void AddEquivalents(UsagePage& page) ABSL_LOCKS_EXCLUDED(mutex_);
  bool ShowKnown(const BudgetAt& budget, v1::PopulationUsage& usage) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False when it is known or another call computes it.
  bool Compute(const BudgetAt& budget, v1::PopulationUsage& usage) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddSpend(const std::string& population, absl::Time now, v1::PopulationUsage& usage) const;

  const OverviewSources sources_;
  const ServerFacts facts_;
  Mutex mutex_;
  std::map<std::string, StoreView> views_ ABSL_GUARDED_BY(mutex_);         // by tenant
  std::map<std::string, Equivalent> equivalents_ ABSL_GUARDED_BY(mutex_);  // by budget
  // Budgets in computation by some call; others neither wait nor repeat it.
  std::set<std::string> computing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_OVERVIEWS_H_
