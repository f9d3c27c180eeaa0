// How every budget was spent over time, kept in memory and followed as ledgers grow: each entry is read once.
#ifndef DPAR_SERVER_PAGE_SPEND_LOG_H_
#define DPAR_SERVER_PAGE_SPEND_LOG_H_

#include <array>
#include <atomic>
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
#include "server/page/newest.h"
#include "server/page/spend_steps.h"
#include "server/periodic.h"
#include "server/store/database.h"

namespace dpar {

inline constexpr int kSpendDays = 30;
// Points that are kept of a budget's history.
inline constexpr size_t kMaxSpendPoints = 512;

// What held from a time on until the next point.
struct SpendPoint {
  int64_t time = 0;  // in microseconds since 1970
  int64_t posted_units = 0;
  int64_t reserved_units = 0;
  int64_t cap_units = 0;
};

// What one budget's entries add up to, in memory that does not grow with them.
class BudgetSpend {
 public:
  // The entries in their order, each once.
  void Apply(const SpendStep& step);

  // Oldest first.
  [[nodiscard]] const std::vector<SpendPoint>& points() const { return points_; }
  // Units posted on each of the last kSpendDays days up to the day of `now`, in UTC, oldest first.
  [[nodiscard]] std::array<int64_t, kSpendDays> DailyUnits(absl::Time now) const;
  // When nothing is left of `left_units` at the rate of these days; nothing when that is never, or in a century.
  [[nodiscard]] std::optional<absl::Time> Exhaustion(int64_t left_units, absl::Time now) const;
  // By hand, newest first, at most kMaxNewest, and how many there were since a time.
  [[nodiscard]] const std::vector<SpendStep>& adjustments() const { return adjustments_.items(); }
  [[nodiscard]] int64_t AdjustmentsSince(absl::Time since) const { return adjustments_.CountSince(since); }
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
  std::vector<SpendPoint> points_;
  // Points closer than this are one. It doubles whenever there are too many.
  absl::Duration resolution_ = absl::ZeroDuration();
  std::map<int64_t, int64_t> daily_;  // day since 1970 to units
  Newest<SpendStep> adjustments_;
  std::optional<SpendStep> last_reserve_;
};

// Thread-safe. The database outlives it.
class SpendLog {
 public:
  explicit SpendLog(Database& database) : database_(database) {}
  ~SpendLog() { stop_ = true; }
  SpendLog(const SpendLog&) = delete;
  SpendLog& operator=(const SpendLog&) = delete;

  // Follows the ledgers from now on, on a thread of its own: it rests after every thousand entries, for nine times as
  // long as they took, but for seconds at most. Called once, or never in tests that call Refresh.
  void Start();
  // Reads what was committed since the last time. A ledger that cannot be read is left where it is until it grows, and
  // the others are read.
  absl::Status Refresh() ABSL_LOCKS_EXCLUDED(mutex_);

  // What a budget's entries say of the last days.
  struct Recent {
    std::array<int64_t, kSpendDays> daily_units = {};  // as BudgetSpend has them
    std::optional<absl::Time> exhaustion;
    std::string last_job;  // that reserved; empty when none did
    absl::Time last_job_time;
  };
  // Nothing when the budget is not known yet.
  [[nodiscard]] std::optional<Recent> FindRecent(const std::string& budget_id, int64_t left_units, absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // None when the budget is not known yet.
  [[nodiscard]] std::vector<SpendPoint> Points(const std::string& budget_id) const ABSL_LOCKS_EXCLUDED(mutex_);

  // At most `limit` budgets of a tenant, or of all when it is empty: those with the newest entries, newest first.
  [[nodiscard]] std::vector<BudgetHead> NewestBudgets(const std::string& tenant, size_t limit) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What holds of one tenant's ledgers, or of all when it is empty.
  struct Summary {
    bool complete = false;  // whether every ledger that can be read was read to its end once
    int64_t budgets = 0;
    int64_t entries = 0;
    std::optional<absl::Time> commit_time;
    struct Adjustment {
      std::string dataset;
      SpendStep step;
    };
    int64_t adjustments = 0;
    std::vector<Adjustment> newest;  // first, at most kMaxNewest
  };
  // `since` is for the adjustments, which are counted as Newest counts.
  [[nodiscard]] Summary Summarise(const std::string& tenant, absl::Time since) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Known {
    BudgetHead head;
    BudgetSpend spend;
    // Where the ledger ended when it could not be read; 0 while it can.
    int64_t unreadable_head = 0;
  };

  // Reads some more of a round through all ledgers, and begins another when there is none; whether it has ended.
  absl::StatusOr<bool> ReadSome() ABSL_LOCKS_EXCLUDED(mutex_);
  // At most `limit` entries of one ledger; how many there were.
  absl::StatusOr<int64_t> ReadOn(const BudgetHead& head, int64_t limit) ABSL_LOCKS_EXCLUDED(mutex_);

  Database& database_;
  std::atomic<bool> stop_ = false;
  std::vector<BudgetHead> round_;  // for ReadSome only
  size_t next_ = 0;                // in the round; its size once it has ended
  mutable absl::Mutex mutex_;
  std::map<std::string, Known> budgets_ ABSL_GUARDED_BY(mutex_);  // by id
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Periodic> following_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_SPEND_LOG_H_
