// Every population's spend over time, in memory; follows the ledgers and reads each entry once.
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
#include "absl/time/time.h"
#include "core/mutex.h"
#include "server/page/newest.h"
#include "server/page/spend_steps.h"
#include "server/periodic.h"
#include "server/store/database.h"

namespace dpar {

inline constexpr int kSpendDays = 30;
inline constexpr size_t kMaxSpendPoints = 512;

// Holds from its time until the next point.
struct SpendPoint {
  int64_t time = 0;  // in microseconds since 1970
  int64_t posted_units = 0;
  int64_t reserved_units = 0;
  int64_t cap_units = 0;
};

// One population's spend, in memory that grows with its datasets only.
class BudgetSpend {
 public:
  // Entries in order, each once.
  void Apply(const SpendStep& step);

  [[nodiscard]] const std::vector<SpendPoint>& points() const { return points_; }
  // Units posted on each of the last kSpendDays UTC days up to `now`, oldest first.
  [[nodiscard]] std::array<int64_t, kSpendDays> DailyUnits(absl::Time now) const;
  // When `left_units` run out at the rate of these days; nothing for never or beyond a century.
  [[nodiscard]] std::optional<absl::Time> Exhaustion(int64_t left_units, absl::Time now) const;
  // Manual adjustments, newest first, at most kMaxNewest; and how many since a time.
  [[nodiscard]] const std::vector<SpendStep>& adjustments() const { return adjustments_.items(); }
  [[nodiscard]] int64_t AdjustmentsSince(absl::Time since) const { return adjustments_.CountSince(since); }
  // What a dataset's jobs have posted.
  [[nodiscard]] int64_t PostedBy(const std::string& dataset) const;
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
  // Points closer than this are merged. Doubles when there are too many.
  absl::Duration resolution_ = absl::ZeroDuration();
  std::map<int64_t, int64_t> daily_;  // day since 1970 to units
  std::map<std::string, int64_t> by_dataset_;
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

  // Follows the ledgers on its own thread; rests after every thousand entries for nine times as long as they took, at
  // most seconds. Called once, or never in tests that call Refresh.
  void Start();
  // Reads new entries. An unreadable ledger is skipped until it grows.
  absl::Status Refresh() ABSL_LOCKS_EXCLUDED(mutex_);

  struct Recent {
    std::array<int64_t, kSpendDays> daily_units = {};  // as BudgetSpend has them
    std::optional<absl::Time> exhaustion;
    std::string last_job;  // that reserved; empty when none did
    absl::Time last_job_time;
  };
  // FindRecent and Points are empty for a budget that is not known yet.
  [[nodiscard]] std::optional<Recent> FindRecent(const std::string& population, int64_t left_units,
                                                 absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);
  // 0 for an unknown one.
  [[nodiscard]] int64_t PostedBy(const std::string& population, const std::string& dataset) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] std::vector<SpendPoint> Points(const std::string& population) const ABSL_LOCKS_EXCLUDED(mutex_);

  // At most `limit` budgets of a tenant, or of all when empty, with the newest entries, newest first.
  [[nodiscard]] std::vector<BudgetHead> NewestBudgets(const std::string& tenant, size_t limit) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  struct Summary {
    bool complete = false;  // whether every ledger that can be read was read to its end once
    int64_t budgets = 0;
    int64_t entries = 0;
    std::optional<absl::Time> commit_time;
    struct Adjustment {
      std::string population;
      SpendStep step;
    };
    int64_t adjustments = 0;
    std::vector<Adjustment> newest;  // first, at most kMaxNewest
  };
  // Of all ledgers when `tenant` is empty. `since` is for adjustments, counted as Newest does.
  [[nodiscard]] Summary Summarise(const std::string& tenant, absl::Time since) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Known {
    BudgetHead head;
    BudgetSpend spend;
    // The head at which the ledger was unreadable; 0 while it is readable.
    int64_t unreadable_head = 0;
  };

  // Reads more of a round through all ledgers, or begins one; true when the round has ended.
  absl::StatusOr<bool> ReadSome() ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads at most `limit` entries of one ledger; returns how many.
  absl::StatusOr<int64_t> ReadOn(const BudgetHead& head, int64_t limit) ABSL_LOCKS_EXCLUDED(mutex_);

  Database& database_;
  std::atomic<bool> stop_ = false;
  std::vector<BudgetHead> round_;  // for ReadSome only
  size_t next_ = 0;                // in the round; its size once it has ended
  mutable Mutex mutex_;
  std::map<std::string, Known> budgets_ ABSL_GUARDED_BY(mutex_);  // by id
  bool complete_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Periodic> following_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_SPEND_LOG_H_
