// Gauges of every population's spend and rest. The equivalent epsilon takes the accountant milliseconds to seconds, so
// it is computed once for every state of a ledger, one budget at a time.
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
#include "core/mutex.h"
#include "prometheus/metric_family.h"
#include "server/ledger/ledger.h"
#include "server/store/database.h"

namespace dpar {

// Collect is for any thread, the rest for one thread. The database outlives it.
class BudgetMetrics {
 public:
  // The fullest budgets are shown, five series each.
  static constexpr int64_t kMaxBudgets = 1'000;

  explicit BudgetMetrics(Database& database, int64_t max_budgets = kMaxBudgets)
      : database_(database), max_budgets_(max_budgets) {}

  // Reads caps and sums. After an error nothing is shown until the next success.
  absl::Status RefreshAccounts() ABSL_LOCKS_EXCLUDED(mutex_);
  // Computes one budget's equivalent epsilon whose ledger has grown; false when none has.
  absl::StatusOr<bool> RefreshOneEpsilon() ABSL_LOCKS_EXCLUDED(mutex_);

  // A budget whose equivalent epsilon is unknown or outdated has no series of it.
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Shown {
    std::string population;
    Account account;
  };
  // As of an entry; nothing when it cannot be computed.
  struct Epsilon {
    int64_t head_sequence = 0;
    std::optional<double> value;
  };

  [[nodiscard]] std::optional<std::string> NextUnknown() const ABSL_LOCKS_EXCLUDED(mutex_);

  Database& database_;
  const int64_t max_budgets_;
  mutable Mutex mutex_;
  std::vector<Shown> shown_ ABSL_GUARDED_BY(mutex_);
  int64_t omitted_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Epsilon> epsilons_ ABSL_GUARDED_BY(mutex_);  // by budget
};

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_BUDGET_METRICS_H_
