#include "server/page/spend_log.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/status_macros.h"
#include "server/steady_time.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

constexpr absl::Duration kPeriod = absl::Seconds(1);
// Rest after a step, in multiples of its time, up to kMaxRest.
constexpr int64_t kRestForOne = 9;
constexpr absl::Duration kMaxRest = absl::Seconds(5);
constexpr int64_t kPageRows = 1000;
constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kCentury = absl::Hours(24 * 36'525);

int64_t DayOf(absl::Time time) { return absl::ToUnixSeconds(time) / absl::ToInt64Seconds(kDay); }

// Merges points until they are few: the last within a step of time holds.
void Thin(std::vector<SpendPoint>& points, absl::Duration& resolution) {
  if (resolution == absl::ZeroDuration()) {
    resolution = absl::Seconds(1);
  }
  while (points.size() > kMaxSpendPoints) {
    resolution *= 2;
    std::vector<SpendPoint> kept;
    for (const SpendPoint& point : points) {
      // Keeps the first point, where the history begins.
      if (kept.size() > 1 && point.time - kept.back().time < absl::ToInt64Microseconds(resolution)) {
        const int64_t begun = kept.back().time;
        kept.back() = point;
        kept.back().time = begun;
      } else {
        kept.push_back(point);
      }
    }
    points = std::move(kept);
  }
}

}  // namespace

void BudgetSpend::Apply(const SpendStep& step) {
  head_sequence_ = step.sequence;
  commit_time_ = step.time;
  switch (step.kind) {
    case v1::LedgerEntry::OPEN:
      open_time_ = step.time;
      cap_ = step.units;
      break;
    case v1::LedgerEntry::ADJUST:
    case v1::LedgerEntry::MERGE:
      cap_ = step.units;
      break;
    case v1::LedgerEntry::RESERVE:
      reserved_ += step.units;
      last_reserve_ = step;
      break;
    case v1::LedgerEntry::VOID:
      reserved_ -= step.units;
      break;
    case v1::LedgerEntry::POST:
      reserved_ -= step.units;
      posted_ += step.units;
      daily_[DayOf(step.time)] += step.units;
      by_dataset_[step.dataset] += step.units;
      break;
    case v1::LedgerEntry::INHERIT:
      // Posted on days before the merge, which say nothing about the days to come.
      posted_ += step.units;
      by_dataset_[step.dataset] += step.units;
      break;
    case v1::LedgerEntry::DEBIT:
      posted_ += step.units;
      daily_[DayOf(step.time)] += step.units;
      break;
    default:
      break;
  }
  if (step.kind == v1::LedgerEntry::ADJUST || step.kind == v1::LedgerEntry::DEBIT ||
      step.kind == v1::LedgerEntry::MERGE || step.kind == v1::LedgerEntry::CLOSE) {
    adjustments_.Add(step);
  }
  // When the clock is set back, a later entry may belong to an earlier day: keep more days than are shown.
  while (daily_.size() > 2 * kSpendDays) {
    daily_.erase(daily_.begin());
  }
  AddPoint(step.time);
}

void BudgetSpend::AddPoint(absl::Time time) {
  const int64_t at = absl::ToUnixMicros(time);
  const bool merges = points_.size() > 1 && at - points_.back().time < absl::ToInt64Microseconds(resolution_);
  if (!merges) {
    points_.emplace_back().time = at;
  }
  SpendPoint& point = points_.back();
  point.posted_units = posted_;
  point.reserved_units = reserved_;
  point.cap_units = cap_;
  if (points_.size() > kMaxSpendPoints) {
    Thin(points_, resolution_);
  }
}

int64_t BudgetSpend::PostedBy(const std::string& dataset) const {
  const auto found = by_dataset_.find(dataset);
  return found == by_dataset_.end() ? 0 : found->second;
}

std::array<int64_t, kSpendDays> BudgetSpend::DailyUnits(absl::Time now) const {
  std::array<int64_t, kSpendDays> units = {};
  const int64_t first = DayOf(now) - kSpendDays + 1;
  for (const auto& [day, posted] : daily_) {
    if (day >= first && day < first + kSpendDays) {
      units.at(static_cast<size_t>(day - first)) = posted;
    }
  }
  return units;
}

std::optional<absl::Time> BudgetSpend::Exhaustion(int64_t left_units, absl::Time now) const {
  if (left_units <= 0) {
    return now;
  }
  int64_t posted = 0;
  for (const int64_t units : DailyUnits(now)) {
    posted += units;
  }
  if (posted <= 0) {
    return std::nullopt;
  }
  // Today is not over, so fewer than kSpendDays days have passed.
  const absl::Time first_day = absl::UnixEpoch() + (DayOf(now) - kSpendDays + 1) * kDay;
  const absl::Duration span = std::clamp(now - std::max(open_time_, first_day), kDay, kSpendDays * kDay);
  const absl::Duration left = span * (static_cast<double>(left_units) / static_cast<double>(posted));
  return left > kCentury ? std::nullopt : std::optional<absl::Time>(now + left);
}

void SpendLog::Start() {
  following_ = std::make_unique<Periodic>([this] {
    const absl::Time start = SteadyNow();
    const absl::StatusOr<bool> ended = ReadSome();
    if (!ended.ok() && !absl::IsUnavailable(ended.status())) {
      spdlog::error("observe: the ledgers cannot be followed: {}", std::string(ended.status().message()));
    }
    const absl::Duration rest = std::clamp(kRestForOne * (SteadyNow() - start), absl::ZeroDuration(), kMaxRest);
    return ended.ok() && !*ended ? rest : std::max(kPeriod, rest);
  });
}

absl::Status SpendLog::Refresh() {
  next_ = round_.size();
  bool ended = false;
  while (!ended) {
    DPAR_ASSIGN_OR_RETURN(ended, ReadSome());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SpendLog::ReadSome() {
  if (next_ == round_.size()) {
    DPAR_ASSIGN_OR_RETURN(round_,
                          ReadFrom(database_, [](Transaction& transaction) { return ListBudgetHeads(transaction); }));
    next_ = 0;
  }
  int64_t entries = 0;
  while (next_ < round_.size() && entries < kPageRows && !stop_) {
    DPAR_ASSIGN_OR_RETURN(const int64_t more, ReadOn(round_[next_], kPageRows - entries));
    entries += more;
    if (entries < kPageRows) {
      ++next_;
    }
  }
  if (next_ < round_.size()) {
    return false;
  }
  const MutexLock lock(&mutex_);
  complete_ = true;
  return true;
}

absl::StatusOr<int64_t> SpendLog::ReadOn(const BudgetHead& head, int64_t limit) {
  int64_t known = 0;
  {
    const MutexLock lock(&mutex_);
    Known& budget = budgets_[head.population];
    budget.head = head;
    known = budget.spend.head_sequence();
    if (known >= head.head_sequence || budget.unreadable_head == head.head_sequence) {
      return 0;
    }
  }
  const absl::StatusOr<std::vector<SpendStep>> steps = ReadFrom(
      database_, [&](Transaction& transaction) { return ListSpendSteps(transaction, head.population, known, limit); });
  if (absl::IsUnavailable(steps.status())) {
    return steps.status();
  }
  const MutexLock lock(&mutex_);
  Known& budget = budgets_[head.population];
  if (!steps.ok()) {
    budget.unreadable_head = head.head_sequence;
    spdlog::error("observe: ledger {} cannot be followed after entry {}: {}", head.population, known,
                  std::string(steps.status().message()));
    return 0;
  }
  budget.unreadable_head = 0;
  for (const SpendStep& step : *steps) {
    budget.spend.Apply(step);
  }
  return static_cast<int64_t>(steps->size());
}

std::optional<SpendLog::Recent> SpendLog::FindRecent(const std::string& population, int64_t left_units,
                                                     absl::Time now) const {
  const MutexLock lock(&mutex_);
  const auto found = budgets_.find(population);
  if (found == budgets_.end()) {
    return std::nullopt;
  }
  const BudgetSpend& spend = found->second.spend;
  Recent recent{spend.DailyUnits(now), spend.Exhaustion(left_units, now), "", {}};
  if (spend.last_reserve().has_value()) {
    recent.last_job = spend.last_reserve()->job;
    recent.last_job_time = spend.last_reserve()->time;
  }
  return recent;
}

int64_t SpendLog::PostedBy(const std::string& population, const std::string& dataset) const {
  const MutexLock lock(&mutex_);
  const auto found = budgets_.find(population);
  return found == budgets_.end() ? 0 : found->second.spend.PostedBy(dataset);
}

std::vector<SpendPoint> SpendLog::Points(const std::string& population) const {
  const MutexLock lock(&mutex_);
  const auto found = budgets_.find(population);
  return found == budgets_.end() ? std::vector<SpendPoint>() : found->second.spend.points();
}

std::vector<BudgetHead> SpendLog::NewestBudgets(const std::string& tenant, size_t limit) const {
  std::vector<std::pair<absl::Time, BudgetHead>> newest;
  {
    const MutexLock lock(&mutex_);
    for (const auto& [id, known] : budgets_) {
      if (tenant.empty() || known.head.tenant == tenant) {
        newest.emplace_back(known.spend.commit_time(), known.head);
      }
    }
  }
  std::stable_sort(newest.begin(), newest.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  newest.resize(std::min(newest.size(), limit));
  std::vector<BudgetHead> heads;
  for (auto& [time, head] : newest) {
    heads.push_back(std::move(head));
  }
  return heads;
}

SpendLog::Summary SpendLog::Summarise(const std::string& tenant, absl::Time since) const {
  Summary summary;
  const MutexLock lock(&mutex_);
  summary.complete = complete_;
  for (const auto& [id, known] : budgets_) {
    if (!tenant.empty() && known.head.tenant != tenant) {
      continue;
    }
    summary.budgets += 1;
    summary.entries += known.spend.head_sequence();
    if (known.spend.head_sequence() > 0) {
      summary.commit_time = std::max(summary.commit_time.value_or(absl::InfinitePast()), known.spend.commit_time());
    }
    summary.adjustments += known.spend.AdjustmentsSince(since);
    for (const SpendStep& step : known.spend.adjustments()) {
      if (step.time >= since) {
        summary.newest.push_back({known.head.population, step});
      }
    }
  }
  std::stable_sort(summary.newest.begin(), summary.newest.end(),
                   [](const auto& a, const auto& b) { return a.step.time > b.step.time; });
  summary.newest.resize(std::min(summary.newest.size(), kMaxNewest));
  return summary;
}

}  // namespace dpar
