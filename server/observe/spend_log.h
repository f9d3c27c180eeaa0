// How every budget was spent over time, kept in memory and followed as ledgers grow: each entry is read once.
#ifndef DPAR_SERVER_OBSERVE_SPEND_LOG_H_
#define DPAR_SERVER_OBSERVE_SPEND_LOG_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "dpar/v1/overview.pb.h"
#include "server/ledger/spend_steps.h"
#include "server/observe/periodic.h"
#include "server/store/database.h"

namespace dpar {

inline constexpr int kSpendDays = 30;
// Points that are kept of a budget's history.
inline constexpr size_t kMaxSpendPoints = 512;

// What one budget's entries add up to, in memory that does not grow with them.
class BudgetSpend {
 public:
  // The entries in their order, each once.
  void Apply(const SpendStep& step);

  // Points as the API has them.
  [[nodiscard]] const std::vector<v1::SpendPoint>& points() const { return points_; }
  // Units posted on each of the last kSpendDays days up to the day of `now`, in UTC, oldest first.
  [[nodiscard]] std::array<int64_t, kSpendDays> DailyUnits(absl::Time now) const;
  // When nothing is left of `left_units` at the rate of these days; nothing when that is never, or in a century.
  [[nodiscard]] std::optional<absl::Time> Exhaustion(int64_t left_units, absl::Time now) const;
  // By hand, newest first, at most 20.
  [[nodiscard]] const std::vector<SpendStep>& adjustments() const { return adjustments_; }
  // The newest RESERVE.
  [[nodiscard]] const std::optional<SpendStep>& last_reserve() const { return last_reserve_; }
  [[nodiscard]] int64_t head_sequence() const { return head_sequence_; }
  [[nodiscard]] absl::Time commit_time() const { return commit_time_; }

 private:
  void AddPoint(absl::Time time);

  int64_t head_sequence_ = 0;
  absl::Time open_time_ = absl::InfinitePast();
  absl::Time commit_time_ = absl::InfinitePast();
  int64_t posted_ = 0;
  int64_t reserved_ = 0;
  int64_t cap_ = 0;
  std::vector<v1::SpendPoint> points_;
  // Points closer than this are one. It doubles whenever there are too many.
  absl::Duration resolution_ = absl::ZeroDuration();
  std::map<int64_t, int64_t> daily_;  // day since 1970 to units
  std::vector<SpendStep> adjustments_;
  std::optional<SpendStep> last_reserve_;
};

// Thread-safe. The database outlives it.
class SpendLog {
 public:
  explicit SpendLog(Database& database) : database_(database) {}

  // Follows the ledgers from now on, on a thread of its own, with a tenth of a core at most. Called once, or never in
  // tests that call Refresh.
  void Start();
  // Reads what was committed since the last time.
  absl::Status Refresh() ABSL_LOCKS_EXCLUDED(mutex_);

  // A copy; nothing when the budget is not known yet.
  [[nodiscard]] std::optional<BudgetSpend> Find(const std::string& budget_id) const ABSL_LOCKS_EXCLUDED(mutex_);

  // At most `limit` budgets of a tenant, or of all when it is empty: those with the newest entries, newest first.
  [[nodiscard]] std::vector<BudgetHead> NewestBudgets(const std::string& tenant, size_t limit) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What holds of one tenant's ledgers, or of all when it is empty.
  struct Summary {
    bool complete = false;  // whether every ledger was read to its end once
    int64_t budgets = 0;
    int64_t entries = 0;
    std::optional<absl::Time> commit_time;
    struct Adjustment {
      std::string dataset;
      SpendStep step;
    };
    int64_t adjustments = 0;
    std::vector<Adjustment> newest;  // first, at most 20
  };
  // `since` is for the adjustments; of each budget the newest 20 count.
  [[nodiscard]] Summary Summarise(const std::string& tenant, absl::Time since) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Known {
    BudgetHead head;
    BudgetSpend spend;
  };

  absl::Status ReadOn(const BudgetHead& head) ABSL_LOCKS_EXCLUDED(mutex_);

  Database& database_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Known> budgets_ ABSL_GUARDED_BY(mutex_);  // by id
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Periodic> following_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_SPEND_LOG_H_
