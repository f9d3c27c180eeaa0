#include "server/observe/spend_log.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/status_macros.h"
#include "server/store/message_text.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

constexpr absl::Duration kPeriod = absl::Seconds(1);
// Rest, in multiples of what a look took.
constexpr int64_t kRestForOne = 9;
constexpr int64_t kPageRows = 1000;
constexpr size_t kMaxAdjustments = 20;
constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kCentury = absl::Hours(24 * 36'525);

int64_t DayOf(absl::Time time) { return absl::ToUnixSeconds(time) / absl::ToInt64Seconds(kDay); }

// Merges points until they are few again: of those within one step of time the last holds.
void Thin(std::vector<v1::SpendPoint>& points, absl::Duration& resolution) {
  const auto time_of = [](const v1::SpendPoint& point) { return absl::FromUnixMicros(ToMicroseconds(point.time())); };
  if (resolution == absl::ZeroDuration()) {
    resolution = absl::Seconds(1);
  }
  while (points.size() > kMaxSpendPoints) {
    resolution *= 2;
    std::vector<v1::SpendPoint> kept;
    for (v1::SpendPoint& point : points) {
      // The first stays, so that the history begins where it did.
      if (kept.size() > 1 && time_of(point) - time_of(kept.back()) < resolution) {
        const google::protobuf::Timestamp begun = kept.back().time();
        kept.back() = std::move(point);
        *kept.back().mutable_time() = begun;
      } else {
        kept.push_back(std::move(point));
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
      break;
    case v1::LedgerEntry::DEBIT:
      posted_ += step.units;
      daily_[DayOf(step.time)] += step.units;
      break;
    default:
      break;
  }
  if (step.kind == v1::LedgerEntry::ADJUST || step.kind == v1::LedgerEntry::DEBIT) {
    adjustments_.insert(adjustments_.begin(), step);
    adjustments_.resize(std::min(adjustments_.size(), kMaxAdjustments));
  }
  // A clock that was set back may give a day that is over to a later entry: some more than are shown stay.
  while (daily_.size() > 2 * kSpendDays) {
    daily_.erase(daily_.begin());
  }
  AddPoint(step.time);
}

void BudgetSpend::AddPoint(absl::Time time) {
  const bool merges =
      points_.size() > 1 && time - absl::FromUnixMicros(ToMicroseconds(points_.back().time())) < resolution_;
  if (!merges) {
    *points_.emplace_back().mutable_time() = ToTimestamp(absl::ToUnixMicros(time));
  }
  v1::SpendPoint& point = points_.back();
  point.set_posted_units(posted_);
  point.set_reserved_units(reserved_);
  point.set_cap_units(cap_);
  if (points_.size() > kMaxSpendPoints) {
    Thin(points_, resolution_);
  }
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
  const absl::Duration span = std::clamp(now - open_time_, kDay, kSpendDays * kDay);
  const absl::Duration left = span * (static_cast<double>(left_units) / static_cast<double>(posted));
  return left > kCentury ? std::nullopt : std::optional<absl::Time>(now + left);
}

void SpendLog::Start() {
  following_ = std::make_unique<Periodic>([this] {
    const absl::Time start = absl::Now();
    const absl::Status status = Refresh();
    if (!status.ok() && !absl::IsUnavailable(status)) {
      spdlog::error("observe: the ledgers cannot be followed: {}", std::string(status.message()));
    }
    return std::max(kPeriod, kRestForOne * (absl::Now() - start));
  });
}

absl::Status SpendLog::Refresh() {
  DPAR_ASSIGN_OR_RETURN(const std::vector<BudgetHead> heads,
                        ReadFrom(database_, [](Transaction& transaction) { return ListBudgetHeads(transaction); }));
  for (const BudgetHead& head : heads) {
    DPAR_RETURN_IF_ERROR(ReadOn(head));
  }
  const absl::MutexLock lock(&mutex_);
  complete_ = true;
  return absl::OkStatus();
}

absl::Status SpendLog::ReadOn(const BudgetHead& head) {
  int64_t known = 0;
  {
    const absl::MutexLock lock(&mutex_);
    Known& budget = budgets_[head.budget_id];
    budget.head = head;
    known = budget.spend.head_sequence();
  }
  while (known < head.head_sequence) {
    DPAR_ASSIGN_OR_RETURN(const std::vector<SpendStep> steps, ReadFrom(database_, [&](Transaction& transaction) {
                            return ListSpendSteps(transaction, head.budget_id, known, kPageRows);
                          }));
    if (steps.empty()) {
      break;
    }
    const absl::MutexLock lock(&mutex_);
    BudgetSpend& spend = budgets_[head.budget_id].spend;
    for (const SpendStep& step : steps) {
      spend.Apply(step);
    }
    known = spend.head_sequence();
  }
  return absl::OkStatus();
}

std::optional<BudgetSpend> SpendLog::Find(const std::string& budget_id) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = budgets_.find(budget_id);
  return found == budgets_.end() ? std::nullopt : std::optional<BudgetSpend>(found->second.spend);
}

std::vector<BudgetHead> SpendLog::NewestBudgets(const std::string& tenant, size_t limit) const {
  std::vector<std::pair<absl::Time, BudgetHead>> newest;
  {
    const absl::MutexLock lock(&mutex_);
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
  const absl::MutexLock lock(&mutex_);
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
    for (const SpendStep& step : known.spend.adjustments()) {
      if (step.time >= since) {
        summary.adjustments += 1;
        summary.newest.push_back({known.head.dataset, step});
      }
    }
  }
  std::stable_sort(summary.newest.begin(), summary.newest.end(),
                   [](const auto& a, const auto& b) { return a.step.time > b.step.time; });
  summary.newest.resize(std::min(summary.newest.size(), kMaxAdjustments));
  return summary;
}

}  // namespace dpar
