// What goes on, put together from the store and from what this server has seen. overview.proto says what it means.
#ifndef DPAR_SERVER_PAGE_OVERVIEWS_H_
#define DPAR_SERVER_PAGE_OVERVIEWS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
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

// What there is to know of the server itself.
struct ServerFacts {
  std::string version;
  absl::Time start_time;
  int64_t concurrent_jobs = 0;
  absl::Time certificate_expiry;  // of TLS
};

// Where an overview comes from. Everything outlives it.
struct OverviewSources {
  Database& database;
  const SpendLog& spend;
  const ChainChecker& chains;
  const Refusals& refusals;
  const std::atomic<bool>& stopping;
};

// Thread-safe. Tenants are tenants/{t}, or empty for all; who may ask for which is for the caller to judge.
class Overviews {
 public:
  Overviews(const OverviewSources& sources, ServerFacts facts) : sources_(sources), facts_(std::move(facts)) {}

  // However many ask, the store is asked once in two seconds for each tenant.
  absl::StatusOr<v1::Overview> Get(const Identity& caller, const std::string& tenant, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `filter` is checked, `skip` is where the page begins.
  absl::StatusOr<v1::ListUsageResponse> ListUsage(const UsageFilter& filter, int64_t skip, int64_t page_size,
                                                  absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::SpendHistory> History(const std::string& tenant) const;
  // Of one dataset (tenants/{t}/datasets/{d}).
  absl::StatusOr<v1::SpendHistory> HistoryOf(const std::string& dataset) const;
  absl::StatusOr<v1::ListLedgerTailResponse> Tail(const std::string& tenant, int64_t page_size) const;
  // Of one dataset, entries before one.
  absl::StatusOr<v1::ListLedgerTailResponse> TailOf(const std::string& dataset, int64_t before_sequence,
                                                    int64_t page_size) const;

 private:
  // What the store says of a tenant.
  struct StoreView {
    absl::Time time;
    QueueState queue;
    int64_t nearly_spent_count = 0;
    std::vector<v1::AttentionItem> nearly_spent;
    NotedJobs failed;
    NotedJobs expired;
    ExpiringTokens tokens;
  };

  // A page of usage, and where the ledgers of its rows ended.
  struct BudgetAt {
    std::string id;
    int64_t head_sequence = 0;  // 0 when the budget could not be read
  };
  struct UsagePage {
    v1::ListUsageResponse response;
    std::vector<BudgetAt> budgets;
  };
  // What the accountant said of a budget; a fault instead where it could say nothing.
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
  // The equivalent epsilons that are known, and of the others as many as can be had in time, but one at least: whoever
  // asks again and again gets them all.
  void AddEquivalents(UsagePage& page) ABSL_LOCKS_EXCLUDED(mutex_);
  bool ShowKnown(const BudgetAt& budget, v1::DatasetUsage& usage) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks the accountant, unless another call does so already; whether it did.
  bool Compute(const BudgetAt& budget, v1::DatasetUsage& usage) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddSpend(const std::string& budget_id, absl::Time now, v1::DatasetUsage& usage) const;

  const OverviewSources sources_;
  const ServerFacts facts_;
  absl::Mutex mutex_;
  std::map<std::string, StoreView> views_ ABSL_GUARDED_BY(mutex_);         // by tenant
  std::map<std::string, Equivalent> equivalents_ ABSL_GUARDED_BY(mutex_);  // by budget
  // Budgets that some call asks the accountant for: others do not wait for it, nor do its work again.
  std::set<std::string> computing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_OVERVIEWS_H_
