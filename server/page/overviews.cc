#include "server/page/overviews.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/status_macros.h"
#include "server/steady_time.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

constexpr int64_t kMaxItems = 20;
constexpr double kNearlySpentPercent = 80;
constexpr absl::Duration kFailureMemory = absl::Hours(24 * 7);
constexpr absl::Duration kAdjustmentMemory = absl::Hours(24 * 30);
constexpr absl::Duration kKeyWarning = absl::Hours(24 * 14);
constexpr absl::Duration kViewLife = absl::Seconds(2);
constexpr size_t kMaxViews = 1'024;
constexpr absl::Duration kAccountantPatience = absl::Milliseconds(300);
constexpr int64_t kMaxHistories = 8;

google::protobuf::Timestamp Stamp(absl::Time time) { return ToTimestamp(absl::ToUnixMicros(time)); }

v1::AttentionItem Item(const std::string& resource, absl::Time time, const std::string& detail) {
  v1::AttentionItem item;
  item.set_resource(resource);
  *item.mutable_time() = Stamp(time);
  item.set_detail(detail);
  return item;
}

void AddAttention(v1::Attention::Kind kind, int64_t count, std::vector<v1::AttentionItem> items,
                  v1::Overview& overview) {
  if (count == 0) {
    return;
  }
  v1::Attention& attention = *overview.add_attention();
  attention.set_kind(kind);
  attention.set_count(count);
  items.resize(std::min(items.size(), static_cast<size_t>(kMaxItems)));
  attention.mutable_items()->Assign(items.begin(), items.end());
}

std::vector<v1::AttentionItem> JobItems(const NotedJobs& noted, const std::string& otherwise) {
  std::vector<v1::AttentionItem> items;
  for (const NotedJob& job : noted.jobs) {
    items.push_back(Item(job.name, job.time, job.failure.empty() ? otherwise : job.failure));
  }
  return items;
}

std::string AdjustmentText(const SpendStep& step) {
  switch (step.kind) {
    case v1::LedgerEntry::DEBIT:
      return absl::StrFormat("%d units debited by hand: %s", step.units, step.reason);
    case v1::LedgerEntry::MERGE:
      return absl::StrFormat("a population was merged into it: %s", step.reason);
    case v1::LedgerEntry::CLOSE:
      return absl::StrFormat("closed: %s", step.reason);
    default:
      return absl::StrFormat("cap set to epsilon %g: %s", step.epsilon, step.reason);
  }
}

bool SeesTokens(const Identity& caller) {
  const bool role = caller.role == v1::OPERATOR || caller.role == v1::OWNER;
  return role && (caller.scopes.empty() ||
                  std::find(caller.scopes.begin(), caller.scopes.end(), v1::ADMINISTER) != caller.scopes.end());
}

absl::StatusOr<v1::AttentionItem> NearlySpent(Transaction& transaction, const std::string& population) {
  v1::AttentionItem item;
  item.set_resource(population);
  const absl::StatusOr<BudgetSums> sums = GetBudgetSums(transaction, population);
  if (IsBudgetFault(sums.status())) {
    item.set_detail(BudgetFaultText(sums.status()));
    return item;
  }
  DPAR_RETURN_IF_ERROR(sums.status());
  const v1::Budget& budget = sums->budget;
  item.set_detail(absl::StrFormat("%.1f%% of the cap of epsilon %g is spent, %.1f%% reserved", budget.posted_percent(),
                                  budget.cap_epsilon(), budget.reserved_percent()));
  return item;
}

std::string FaultText(const ChainChecker::Fault& fault) {
  return fault.sequence == 0 ? absl::StrCat("the ledger cannot be read: ", fault.what)
                             : absl::StrFormat("the ledger is broken at entry %d: %s", fault.sequence, fault.what);
}

void SetHistory(const std::string& population, const std::vector<SpendPoint>& points, v1::BudgetHistory& history) {
  history.set_budget(population);
  history.mutable_points()->Reserve(static_cast<int>(points.size()));
  for (const SpendPoint& point : points) {
    v1::SpendPoint& shown = *history.add_points();
    *shown.mutable_time() = ToTimestamp(point.time);
    shown.set_posted_units(point.posted_units);
    shown.set_reserved_units(point.reserved_units);
    shown.set_cap_units(point.cap_units);
  }
}

}  // namespace

absl::StatusOr<Overviews::StoreView> Overviews::View(const std::string& tenant, absl::Time now) {
  {
    const MutexLock lock(&mutex_);
    const auto known = views_.find(tenant);
    if (known != views_.end() && absl::AbsDuration(now - known->second.time) < kViewLife) {
      return known->second;
    }
  }
  DPAR_ASSIGN_OR_RETURN(
      StoreView view, ReadFrom(sources_.database, [&](Transaction& transaction) -> absl::StatusOr<StoreView> {
        StoreView read;
        read.time = now;
        DPAR_ASSIGN_OR_RETURN(read.queue, GetQueueState(transaction, tenant));
        DPAR_ASSIGN_OR_RETURN(const UsageNames nearly,
                              ListUsageNames(transaction, {tenant, "", kNearlySpentPercent}, 0, kMaxItems));
        for (const std::string& population : nearly.populations) {
          DPAR_ASSIGN_OR_RETURN(v1::AttentionItem item, NearlySpent(transaction, population));
          read.nearly_spent.push_back(std::move(item));
        }
        read.nearly_spent_count = nearly.total;
        DPAR_ASSIGN_OR_RETURN(read.failed, ListFailedJobs(transaction, tenant, now - kFailureMemory, kMaxItems));
        DPAR_ASSIGN_OR_RETURN(read.expired, ListExpiredLeases(transaction, tenant, now, kMaxItems));
        DPAR_ASSIGN_OR_RETURN(read.tokens, ListExpiringTokens(transaction, tenant, now, now + kKeyWarning, kMaxItems));
        return read;
      }));
  const MutexLock lock(&mutex_);
  if (views_.size() >= kMaxViews) {
    views_.clear();
  }
  views_[tenant] = view;
  return view;
}

v1::Health Overviews::HealthOf(const Identity& caller, const std::string& tenant, const StoreView& view,
                               const SpendLog::Summary& spend) const {
  v1::Health health;
  health.set_serving(!sources_.stopping);
  health.set_version(facts_.version);
  if (caller.role == v1::OPERATOR) {
    *health.mutable_start_time() = Stamp(facts_.start_time);
    health.set_concurrent_jobs(facts_.concurrent_jobs);
  }
  health.set_running_jobs(view.queue.running);
  health.set_queued_jobs(view.queue.queued);
  if (view.queue.oldest_queued.has_value()) {
    *health.mutable_oldest_queued_time() = Stamp(*view.queue.oldest_queued);
  }
  health.set_ledgers_read(spend.complete);
  health.set_ledger_entry_count(spend.entries);
  health.set_budget_count(spend.budgets);
  if (spend.commit_time.has_value()) {
    *health.mutable_ledger_commit_time() = Stamp(*spend.commit_time);
  }
  const ChainChecker::Summary chains = sources_.chains.Summarise(tenant);
  health.set_verified_budget_count(chains.verified);
  health.set_broken_chain_count(static_cast<int64_t>(chains.faults.size()));
  if (chains.oldest.has_value()) {
    *health.mutable_chain_verify_time() = Stamp(*chains.oldest);
  }
  return health;
}

void Overviews::AddKeys(const Identity& caller, const StoreView& view, absl::Time now, v1::Overview& overview) const {
  std::vector<v1::AttentionItem> items;
  int64_t count = 0;
  const absl::Time certificate_expiry = facts_.certificate_expiry();
  if (caller.role == v1::OPERATOR && certificate_expiry < now + kKeyWarning) {
    items.push_back(Item("server certificate", certificate_expiry, "the server's TLS certificate expires"));
    ++count;
  }
  if (SeesTokens(caller)) {
    count += view.tokens.count;
    for (const v1::Token& token : view.tokens.tokens) {
      items.push_back(
          Item(token.name(), absl::FromUnixMicros(ToMicroseconds(token.expire_time())),
               token.purpose().empty() ? "the token expires" : absl::StrCat("the token expires: ", token.purpose())));
    }
  } else if (caller.expire_time.has_value()) {
    const absl::Time expiry = absl::FromUnixMicros(ToMicroseconds(*caller.expire_time));
    if (expiry < now + kKeyWarning) {
      items.push_back(Item(caller.token, expiry, "the token that you use expires"));
      ++count;
    }
  }
  AddAttention(v1::Attention::KEY_EXPIRES, count, std::move(items), overview);
}

absl::StatusOr<v1::Overview> Overviews::Get(const Identity& caller, const std::string& tenant, absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(const StoreView view, View(tenant, now));
  const SpendLog::Summary spend = sources_.spend.Summarise(tenant, now - kAdjustmentMemory);
  v1::Overview overview;
  *overview.mutable_time() = Stamp(now);
  *overview.mutable_health() = HealthOf(caller, tenant, view, spend);
  std::vector<v1::AttentionItem> items;
  for (const ChainChecker::Fault& fault : sources_.chains.Summarise(tenant).faults) {
    items.push_back(Item(fault.population, fault.time, FaultText(fault)));
  }
  const auto broken = static_cast<int64_t>(items.size());
  AddAttention(v1::Attention::CHAIN_BROKEN, broken, std::move(items), overview);
  AddAttention(v1::Attention::BUDGET_NEARLY_SPENT, view.nearly_spent_count, view.nearly_spent, overview);
  AddAttention(v1::Attention::LEASE_EXPIRED, view.expired.count,
               JobItems(view.expired, "its worker's lease has expired and its reservation stands"), overview);
  const Refusals::Summary refused = sources_.refusals.Summarise(tenant, now - kFailureMemory);
  items.clear();
  for (const Refusals::Refusal& refusal : refused.newest) {
    items.push_back(Item(refusal.dataset, refusal.time, refusal.why));
  }
  AddAttention(v1::Attention::JOB_REFUSED, refused.count, std::move(items), overview);
  AddAttention(v1::Attention::JOB_FAILED, view.failed.count, JobItems(view.failed, "it failed"), overview);
  items.clear();
  for (const SpendLog::Summary::Adjustment& adjustment : spend.newest) {
    items.push_back(Item(adjustment.population, adjustment.step.time, AdjustmentText(adjustment.step)));
  }
  AddAttention(v1::Attention::LEDGER_ADJUSTED, spend.adjustments, std::move(items), overview);
  AddKeys(caller, view, now, overview);
  return overview;
}

bool Overviews::ShowKnown(const BudgetAt& budget, v1::PopulationUsage& usage) const {
  const auto known = equivalents_.find(budget.id);
  if (known == equivalents_.end() || known->second.epsilon.head_sequence != budget.head_sequence) {
    return false;
  }
  const auto& [equivalent, fault] = known->second;
  usage.set_equivalent_pending(false);
  usage.mutable_budget()->set_equivalent_epsilon(equivalent.epsilon);
  if (fault.empty()) {
    usage.set_accountant(equivalent.from_units ? "renyi" : "composition");
  } else {
    usage.set_fault(absl::StrCat("there is no equivalent epsilon: ", fault));
  }
  return true;
}

bool Overviews::Compute(const BudgetAt& budget, v1::PopulationUsage& usage) {
  {
    const MutexLock lock(&mutex_);
    if (ShowKnown(budget, usage) || !computing_.insert(budget.id).second) {
      return false;
    }
  }
  const absl::Cleanup computed = [&] {
    const MutexLock lock(&mutex_);
    computing_.erase(budget.id);
  };
  struct Answer {
    BudgetSums sums;
    Equivalent equivalent;
  };
  const auto answer = ReadFrom(sources_.database, [&](Transaction& transaction) -> absl::StatusOr<Answer> {
    Answer read;
    DPAR_ASSIGN_OR_RETURN(read.sums, GetBudgetSums(transaction, budget.id));
    const absl::StatusOr<EquivalentEpsilon> epsilon = GetEquivalentEpsilon(transaction, budget.id);
    if (IsBudgetFault(epsilon.status())) {
      read.equivalent = {{.head_sequence = read.sums.head_sequence}, BudgetFaultText(epsilon.status())};
      return read;
    }
    DPAR_RETURN_IF_ERROR(epsilon.status());
    read.equivalent.epsilon = *epsilon;
    return read;
  });
  if (answer.ok()) {
    // The ledger may have grown since the row was read: sums and epsilon must be of one state.
    *usage.mutable_budget() = answer->sums.budget;
    const MutexLock lock(&mutex_);
    equivalents_[budget.id] = answer->equivalent;
    ShowKnown({budget.id, answer->sums.head_sequence}, usage);
  }
  return true;
}

void Overviews::AddEquivalents(UsagePage& page) {
  std::vector<size_t> missing;
  {
    const MutexLock lock(&mutex_);
    for (size_t i = 0; i < page.budgets.size(); ++i) {
      v1::PopulationUsage& usage = *page.response.mutable_usage(static_cast<int>(i));
      if (page.budgets[i].head_sequence > 0 && !ShowKnown(page.budgets[i], usage)) {
        usage.set_equivalent_pending(true);
        missing.push_back(i);
      }
    }
  }
  const absl::Time deadline = SteadyNow() + kAccountantPatience;
  bool computed = false;
  for (const size_t i : missing) {
    if (computed && SteadyNow() >= deadline) {
      return;
    }
    computed = Compute(page.budgets[i], *page.response.mutable_usage(static_cast<int>(i))) || computed;
  }
}

void Overviews::AddSpend(const std::string& population, absl::Time now, v1::PopulationUsage& usage) const {
  const std::optional<SpendLog::Recent> recent =
      sources_.spend.FindRecent(population, usage.budget().left_units(), now);
  if (!recent.has_value()) {
    return;
  }
  usage.mutable_daily_posted_units()->Assign(recent->daily_units.begin(), recent->daily_units.end());
  if (recent->exhaustion.has_value()) {
    *usage.mutable_exhaustion_time() = Stamp(*recent->exhaustion);
  }
  if (!recent->last_job.empty()) {
    usage.mutable_last_job()->set_name(recent->last_job);
    *usage.mutable_last_job()->mutable_time() = Stamp(recent->last_job_time);
  }
}

absl::StatusOr<Overviews::UsagePage> Overviews::ReadUsage(Transaction& transaction, const UsageFilter& filter,
                                                          int64_t skip, int64_t page_size, absl::Time now) const {
  UsagePage page;
  v1::ListUsageResponse& response = page.response;
  DPAR_ASSIGN_OR_RETURN(const UsageNames found, ListUsageNames(transaction, filter, skip, page_size));
  std::vector<std::string> jobs;
  for (const std::string& population : found.populations) {
    v1::PopulationUsage& usage = *response.add_usage();
    const absl::StatusOr<BudgetSums> sums = GetBudgetSums(transaction, population);
    if (sums.ok()) {
      *usage.mutable_budget() = sums->budget;
      AddSpend(population, now, usage);
    } else if (IsBudgetFault(sums.status())) {
      usage.set_fault(BudgetFaultText(sums.status()));
    } else {
      return sums.status();
    }
    page.budgets.push_back({population, sums.ok() ? sums->head_sequence : 0});
    usage.mutable_budget()->set_name(population);
    DPAR_ASSIGN_OR_RETURN(const std::vector<v1::DatasetSpend> datasets, ListUsageDatasets(transaction, population));
    for (const v1::DatasetSpend& dataset : datasets) {
      v1::DatasetSpend& shown = *usage.add_datasets();
      shown = dataset;
      shown.set_posted_units(sources_.spend.PostedBy(population, dataset.dataset()));
    }
    if (usage.has_last_job()) {
      jobs.push_back(usage.last_job().name());
    }
  }
  if (!jobs.empty()) {
    DPAR_ASSIGN_OR_RETURN(const JobStandings standings, GetStandings(transaction, jobs));
    for (v1::PopulationUsage& usage : *response.mutable_usage()) {
      const auto standing = standings.find(usage.last_job().name());
      if (usage.has_last_job() && standing != standings.end() && standing->second.ok()) {
        usage.mutable_last_job()->set_state(standing->second->state());
      }
    }
  }
  response.set_total_size(found.total);
  const int64_t next = skip + static_cast<int64_t>(found.populations.size());
  if (next < found.total && !found.populations.empty()) {
    response.set_next_page_token(absl::StrCat(next));
  }
  return page;
}

absl::StatusOr<v1::ListUsageResponse> Overviews::ListUsage(const UsageFilter& filter, int64_t skip, int64_t page_size,
                                                           absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(UsagePage page, ReadFrom(sources_.database, [&](Transaction& transaction) {
                          return ReadUsage(transaction, filter, skip, page_size, now);
                        }));
  // Outside of the transaction, which a long computation would hold up.
  AddEquivalents(page);
  return std::move(page.response);
}

absl::StatusOr<v1::SpendHistory> Overviews::History(const std::string& tenant) const {
  DPAR_ASSIGN_OR_RETURN(const UsageNames fullest, ReadFrom(sources_.database, [&](Transaction& transaction) {
                          return ListUsageNames(transaction, {.tenant = tenant, .text = ""}, 0, kMaxHistories);
                        }));
  v1::SpendHistory history;
  for (const std::string& population : fullest.populations) {
    const std::vector<SpendPoint> points = sources_.spend.Points(population);
    if (!points.empty()) {
      SetHistory(population, points, *history.add_budgets());
    }
  }
  history.set_omitted_count(fullest.total - static_cast<int64_t>(fullest.populations.size()));
  return history;
}

absl::StatusOr<v1::SpendHistory> Overviews::HistoryOf(const std::string& population) const {
  DPAR_RETURN_IF_ERROR(ReadFrom(sources_.database, [&](Transaction& transaction) {
                         return GetBudgetSums(transaction, population);
                       }).status());
  v1::SpendHistory history;
  SetHistory(population, sources_.spend.Points(population), *history.add_budgets());
  return history;
}

}  // namespace dpar
