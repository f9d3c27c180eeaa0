// What every dataset's budget has spent and has left, as gauges.
//
// Sums and caps are the ledger's own, and so is the equivalent epsilon. The latter asks the accountant, which takes
// from milliseconds to seconds, so it is computed once for every state of a ledger, one budget at a time.
#ifndef DPAR_SERVER_OBSERVE_BUDGET_METRICS_H_
#define DPAR_SERVER_OBSERVE_BUDGET_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/metric_family.h"
#include "server/ledger/ledger.h"
#include "server/store/database.h"

namespace dpar {

// Collect is for any thread, the rest for one. The database outlives it.
class BudgetMetrics {
 public:
  // Budgets that are shown: the fullest ones. Five series each.
  static constexpr int64_t kMaxBudgets = 1'000;

  explicit BudgetMetrics(Database& database, int64_t max_budgets = kMaxBudgets)
      : database_(database), max_budgets_(max_budgets) {}

  // Reads caps and sums. After an error nothing is shown until the next success.
  absl::Status RefreshAccounts() ABSL_LOCKS_EXCLUDED(mutex_);
  // Computes the equivalent epsilon of one budget whose ledger moved since; false when there is none.
  absl::StatusOr<bool> RefreshOneEpsilon() ABSL_LOCKS_EXCLUDED(mutex_);

  // A budget whose equivalent epsilon is not known yet, or not any more, has no series of it.
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Shown {
    std::string tenant;
    std::string dataset;
    std::string budget_id;
    Account account;
  };
  // Of a ledger up to an entry; nothing when it has none that can be computed.
  struct Epsilon {
    int64_t head_sequence = 0;
    std::optional<double> value;
  };

  // The first budget whose epsilon is not known.
  [[nodiscard]] std::optional<std::string> NextUnknown() const ABSL_LOCKS_EXCLUDED(mutex_);

  Database& database_;
  const int64_t max_budgets_;
  mutable absl::Mutex mutex_;
  std::vector<Shown> shown_ ABSL_GUARDED_BY(mutex_);
  int64_t omitted_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Epsilon> epsilons_ ABSL_GUARDED_BY(mutex_);  // by budget
};

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_BUDGET_METRICS_H_
