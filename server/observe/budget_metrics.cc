#include "server/observe/budget_metrics.h"

#include <spdlog/spdlog.h>

#include <set>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/status_macros.h"
#include "server/ledger/entries.h"
#include "server/observe/gauge_family.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"

namespace dpar {

absl::Status BudgetMetrics::RefreshAccounts() {
  std::vector<Shown> shown;
  int64_t total = 0;
  const absl::Status status = database_.Read([&](Transaction& transaction) -> absl::Status {
    shown.clear();
    DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> fullest, FullestPopulations(transaction, "", max_budgets_));
    DPAR_ASSIGN_OR_RETURN(total, CountPopulations(transaction));
    for (const std::string& population : fullest) {
      DPAR_ASSIGN_OR_RETURN(Account account, LoadAccount(transaction, population));
      shown.push_back({population, std::move(account)});
    }
    return absl::OkStatus();
  });
  if (!status.ok()) {
    shown.clear();
    total = 0;
  }
  std::set<std::string> kept;
  for (const Shown& one : shown) {
    kept.insert(one.population);
  }
  const MutexLock lock(&mutex_);
  omitted_ = total - static_cast<int64_t>(shown.size());
  shown_ = std::move(shown);
  if (status.ok()) {
    std::erase_if(epsilons_, [&](const auto& entry) { return !kept.contains(entry.first); });
  }
  return status;
}

std::optional<std::string> BudgetMetrics::NextUnknown() const {
  const MutexLock lock(&mutex_);
  for (const Shown& one : shown_) {
    const auto known = epsilons_.find(one.population);
    if (known == epsilons_.end() || known->second.head_sequence < one.account.head_sequence) {
      return one.population;
    }
  }
  return std::nullopt;
}

absl::StatusOr<bool> BudgetMetrics::RefreshOneEpsilon() {
  const std::optional<std::string> budget = NextUnknown();
  if (!budget.has_value()) {
    return false;
  }
  Epsilon epsilon;
  const absl::Status status = database_.Read([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, *budget));
    epsilon.head_sequence = account.head_sequence;
    const absl::StatusOr<v1::Budget> stored = GetBudget(transaction, *budget);
    if (absl::IsUnavailable(stored.status())) {
      return stored.status();
    }
    if (!stored.ok()) {
      spdlog::error("observe: a budget has no equivalent epsilon: {}", std::string(stored.status().message()));
    }
    epsilon.value = stored.ok() ? std::optional<double>(stored->equivalent_epsilon()) : std::nullopt;
    return absl::OkStatus();
  });
  DPAR_RETURN_IF_ERROR(status);
  const MutexLock lock(&mutex_);
  epsilons_[*budget] = epsilon;
  return true;
}

std::vector<prometheus::MetricFamily> BudgetMetrics::Collect() const {
  prometheus::MetricFamily cap_epsilon =
      GaugeFamily("dpar_budget_cap_epsilon", "Epsilon that all jobs on a population together may cost.");
  prometheus::MetricFamily cap_units = GaugeFamily("dpar_budget_cap_units", "The same cap in the ledger's units.");
  prometheus::MetricFamily posted = GaugeFamily("dpar_budget_posted_units", "Units that are spent.");
  prometheus::MetricFamily reserved =
      GaugeFamily("dpar_budget_reserved_units", "Units that jobs hold which have not ended.");
  prometheus::MetricFamily equivalent =
      GaugeFamily("dpar_budget_equivalent_epsilon", "Epsilon of everything posted, composed as if planned in advance.");
  prometheus::MetricFamily omitted =
      GaugeFamily("dpar_budgets_omitted", "Budgets without series here: only the fullest are shown.");
  const MutexLock lock(&mutex_);
  for (const Shown& one : shown_) {
    // tenants/{t}/populations/{p}
    const std::vector<std::string> parts = absl::StrSplit(one.population, '/');
    const std::vector<prometheus::ClientMetric::Label> labels = {{"tenant", parts.at(1)}, {"population", parts.at(3)}};
    AddGauge(labels, one.account.terms.cap_epsilon, cap_epsilon);
    AddGauge(labels, static_cast<double>(one.account.terms.cap_units), cap_units);
    AddGauge(labels, static_cast<double>(one.account.posted_units), posted);
    AddGauge(labels, static_cast<double>(one.account.reserved_units), reserved);
    const auto known = epsilons_.find(one.population);
    if (known != epsilons_.end() && known->second.value.has_value()) {
      AddGauge(labels, *known->second.value, equivalent);
    }
  }
  AddGauge({}, static_cast<double>(omitted_), omitted);
  return {cap_epsilon, cap_units, posted, reserved, equivalent, omitted};
}

}  // namespace dpar
