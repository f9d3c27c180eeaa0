#include "server/ledger/ledger.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/error.h"
#include "core/plan/plan_event.h"
#include "core/privacy/accountant.h"
#include "core/privacy/event.h"
#include "core/privacy/flat_event.h"
#include "core/status_macros.h"
#include "core/validate.h"
#include "server/ledger/entries.h"
#include "server/resource_name.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

absl::StatusOr<StoredEntry> OpenReservation(Transaction& transaction, const std::string& population,
                                            const std::string& job_name) {
  DPAR_ASSIGN_OR_RETURN(std::vector<StoredEntry> entries, LoadEntriesOfJob(transaction, population, job_name));
  if (entries.size() != 1 || entries[0].entry.kind() != v1::LedgerEntry::RESERVE) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::JOB_ENDED,
                     absl::StrCat(job_name, " has no open reservation"), {{"resource", job_name}});
  }
  return std::move(entries[0]);
}

// `account` is the locked one.
absl::StatusOr<Posted> PostOn(Transaction& transaction, const std::string& population, const Account& account,
                              const std::string& job_name, int attempt, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(StoredEntry stored, OpenReservation(transaction, population, job_name));
  v1::LedgerEntry& entry = stored.entry;
  entry.set_kind(v1::LedgerEntry::POST);
  entry.set_attempt(attempt);
  Posted posted;
  posted.account = account;
  posted.account.reserved_units -= entry.units();
  posted.account.posted_units += entry.units();
  posted.previous_hash = account.head_hash;
  posted.event_text = stored.event_text;
  DPAR_ASSIGN_OR_RETURN(posted.entry, Append(transaction, population, posted.account, std::move(stored), context));
  posted.entry.clear_event();
  return posted;
}

double PercentOf(int64_t units, int64_t cap_units) {
  return 100.0 * static_cast<double>(units) / static_cast<double>(std::max<int64_t>(1, cap_units));
}

absl::Status BudgetExhausted(const Account& account, const Price& price, int64_t asked_units) {
  DPAR_ASSIGN_OR_RETURN(const double largest,
                        LargestAdmissibleEpsilon(account.terms, account.used_units(), account.live_events));
  const auto per_cent = [&](int64_t units) { return PercentOf(units, account.terms.cap_units); };
  return MakeError(
      absl::StatusCode::kFailedPrecondition, v1::PRIVACY_BUDGET_EXHAUSTED,
      absl::StrFormat(
          "the privacy budget cannot pay for this job: epsilon %g asked, which is %.2f%% of the cap; %.2f%% "
          "is spent, %.2f%% reserved, %.2f%% left; the largest epsilon a job could have now is %.3f",
          price.epsilon, per_cent(asked_units), per_cent(account.posted_units), per_cent(account.reserved_units),
          per_cent(account.left_units()), std::floor(1000 * largest) / 1000),
      {{"asked_epsilon", absl::StrCat(price.epsilon)},
       {"delta", absl::StrCat(price.delta)},
       {"asked_units", absl::StrCat(asked_units)},
       {"posted_units", absl::StrCat(account.posted_units)},
       {"reserved_units", absl::StrCat(account.reserved_units)},
       {"left_units", absl::StrCat(account.left_units())},
       {"cap_units", absl::StrCat(account.terms.cap_units)},
       {"order", absl::StrCat(account.terms.order)},
       {"largest_admissible_epsilon", absl::StrFormat("%.17g", largest)}});
}

absl::Status CheckAdmission(const std::string& population, const Account& account, const Price& price) {
  if (!account.frozen_reason.empty()) {
    return BudgetFrozen(population, account.frozen_reason);
  }
  if (!account.closed_reason.empty()) {
    return PopulationClosed(population, account);
  }
  // The cap's delta may have been lowered since, or the dataset merged into another population.
  if (price.order != account.terms.order || price.cap_delta != account.terms.cap_delta) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                     "the population's cap changed while the job was planned; try again");
  }
  DPAR_ASSIGN_OR_RETURN(const bool admitted,
                        Admits(account.terms, account.used_units(), account.live_events, price.cost));
  return admitted ? absl::OkStatus() : BudgetExhausted(account, price, price.cost.units);
}

// The terms with another version of `node_count` slots.
absl::StatusOr<BudgetTerms> WithVersion(const std::string& population, const Account& account, int64_t node_count) {
  if (!account.merged_into.empty()) {
    return PopulationClosed(population, account);
  }
  BudgetTerms terms = account.terms;
  DPAR_ASSIGN_OR_RETURN(const double most, DefaultDelta(account.node_total + node_count));
  if (terms.cap_delta <= most) {
    return terms;
  }
  terms.cap_delta = most;
  DPAR_ASSIGN_OR_RETURN(terms.cap_units, CapUnits(terms.cap_epsilon, most, terms.order));
  if (account.reserved_units > 0) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, v1::POPULATION_IN_USE,
        absl::StrFormat("with this version, the delta of the cap of %s goes from %g to %g, and jobs of the population "
                        "are queued or running under the larger one. Wait for them or cancel them, then try again",
                        population, account.terms.cap_delta, most),
        {{"resource", population}});
  }
  if (terms.cap_units < account.used_units()) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, v1::PRIVACY_BUDGET_EXHAUSTED,
        absl::StrFormat("with this version, the delta of the cap of %s goes from %g to %g, and what is spent does not "
                        "fit under that: the cap would be %d units, and %d are spent",
                        population, account.terms.cap_delta, most, terms.cap_units, account.used_units()),
        {{"posted_units", absl::StrCat(account.posted_units)},
         {"reserved_units", absl::StrCat(account.reserved_units)},
         {"cap_units", absl::StrCat(terms.cap_units)},
         {"order", absl::StrCat(terms.order)}});
  }
  return terms;
}

absl::Status AddStages(const std::string& population, int64_t order, v1::LedgerEntry& entry) {
  const absl::StatusOr<std::vector<v1::StagePrice>> costs = StageUnits(entry.event(), order);
  if (!costs.ok()) {
    return CorruptBudget("a ledger entry's event has no price", population);
  }
  entry.mutable_stages()->Assign(costs->begin(), costs->end());
  return absl::OkStatus();
}

// Composes everything posted as if planned in advance. Equal events are parsed once. A debit has no event, so beside
// one the posted units are converted, which is not smaller; but a debit that a merge brought from a smaller order was
// converted as a Gaussian's, and of other mechanisms that may say too little.
absl::StatusOr<EquivalentEpsilon> Equivalent(Transaction& transaction, const std::string& population,
                                             const Account& account) {
  EquivalentEpsilon equivalent{0, false, account.head_sequence};
  DPAR_ASSIGN_OR_RETURN(const int64_t debits,
                        transaction.QueryInt("SELECT COUNT(*) FROM ledger_entries WHERE population = $1 AND kind = $2",
                                             {population, int64_t{v1::LedgerEntry::DEBIT}}));
  if (debits > 0) {
    equivalent.from_units = true;
    DPAR_ASSIGN_OR_RETURN(equivalent.epsilon, EpsilonOfUnits(account.terms, account.posted_units));
    return equivalent;
  }
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> posts,
      transaction.Query("SELECT event, COUNT(*) FROM ledger_entries WHERE population = $1 AND "
                        "kind IN ($2, $3) GROUP BY event ORDER BY event",
                        {population, int64_t{v1::LedgerEntry::POST}, int64_t{v1::LedgerEntry::INHERIT}}));
  FlatEvent total;
  for (const Row& post : posts) {
    RowReader reader(post);
    v1::PrivacyEvent event;
    DPAR_RETURN_IF_ERROR(TextToMessage(reader.Text(), event));
    const int64_t count = reader.Int();
    DPAR_RETURN_IF_ERROR(reader.status());
    DPAR_ASSIGN_OR_RETURN(const v1::PrivacyEvent repeated, MakeRepetitionEvent(count, event));
    DPAR_RETURN_IF_ERROR(AddEvent(repeated, total));
  }
  DPAR_ASSIGN_OR_RETURN(equivalent.epsilon, EventEpsilon(total, account.terms.cap_delta));
  return equivalent;
}

absl::StatusOr<std::vector<v1::LedgerEntry>> ShownEntries(Transaction& transaction, const std::string& population,
                                                          absl::string_view where_and_order,
                                                          const std::vector<Value>& parameters) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, population));
  DPAR_ASSIGN_OR_RETURN(std::vector<StoredEntry> stored, LoadEntries(transaction, where_and_order, parameters));
  std::vector<v1::LedgerEntry> entries;
  entries.reserve(stored.size());
  for (StoredEntry& entry : stored) {
    DPAR_RETURN_IF_ERROR(AddStages(population, account.terms.order, entry.entry));
    entries.push_back(std::move(entry.entry));
  }
  return entries;
}

absl::StatusOr<v1::Budget> SumsOf(const std::string& population, const Account& account) {
  v1::Budget budget;
  budget.set_name(population);
  budget.set_cap_epsilon(account.terms.cap_epsilon);
  budget.set_cap_delta(account.terms.cap_delta);
  budget.set_order(account.terms.order);
  budget.set_cap_units(account.terms.cap_units);
  budget.set_posted_units(account.posted_units);
  budget.set_reserved_units(account.reserved_units);
  budget.set_left_units(account.left_units());
  budget.set_live_events(account.live_events);
  budget.set_posted_percent(PercentOf(account.posted_units, account.terms.cap_units));
  budget.set_reserved_percent(PercentOf(account.reserved_units, account.terms.cap_units));
  budget.set_frozen_reason(account.frozen_reason);
  if (account.max_degree > 0) {
    budget.set_max_degree(account.max_degree);
  }
  budget.set_closed_reason(account.closed_reason);
  budget.set_merged_into(account.merged_into);
  budget.set_node_total(account.node_total);
  if (account.frozen_reason.empty() && account.closed_reason.empty()) {
    DPAR_ASSIGN_OR_RETURN(const double largest,
                          LargestAdmissibleEpsilon(account.terms, account.used_units(), account.live_events));
    budget.set_largest_admissible_epsilon(largest);
  }
  return budget;
}

}  // namespace

absl::Status OpenBudget(Transaction& transaction, const std::string& population, const BudgetTerms& terms,
                        const EntryContext& context) {
  DPAR_RETURN_IF_ERROR(transaction
                           .Execute("INSERT INTO populations (name, tenant, create_time, cap_epsilon, cap_delta, "
                                    "renyi_order, cap_units, posted_units, reserved_units, live_events, "
                                    "head_sequence, head_hash) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0, 0, 0, '')",
                                    {population, TenantOf(population), absl::ToUnixMicros(context.time),
                                     terms.cap_epsilon, terms.cap_delta, terms.order, terms.cap_units})
                           .status());
  Account account;
  account.terms = terms;
  StoredEntry opening = CapEntry(v1::LedgerEntry::OPEN, terms, absl::StrCat(kOrderPrefix, terms.order));
  return Append(transaction, population, account, std::move(opening), context).status();
}

absl::StatusOr<v1::Budget> GetBudget(Transaction& transaction, const std::string& population) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, population));
  DPAR_ASSIGN_OR_RETURN(v1::Budget budget, SumsOf(population, account));
  DPAR_ASSIGN_OR_RETURN(const EquivalentEpsilon equivalent, Equivalent(transaction, population, account));
  budget.set_equivalent_epsilon(equivalent.epsilon);
  return budget;
}

absl::StatusOr<BudgetSums> GetBudgetSums(Transaction& transaction, const std::string& population) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, population));
  DPAR_ASSIGN_OR_RETURN(v1::Budget budget, SumsOf(population, account));
  return BudgetSums{std::move(budget), account.head_sequence};
}

bool IsBudgetFault(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status) || absl::IsInvalidArgument(status);
}

std::string BudgetFaultText(const absl::Status& status) {
  if (absl::IsNotFound(status)) {
    return "the budget's record is gone from the store";
  }
  return absl::IsDataLoss(status) ? std::string(status.message()) : "the store's record of the budget makes no sense";
}

absl::StatusOr<EquivalentEpsilon> GetEquivalentEpsilon(Transaction& transaction, const std::string& population) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, population));
  return Equivalent(transaction, population, account);
}

absl::StatusOr<BudgetPage> ListBudgets(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                       const std::string& page_token, Equivalents equivalents) {
  const auto get = [&](const std::string& name) -> absl::StatusOr<v1::Budget> {
    if (equivalents == Equivalents::kWith) {
      return GetBudget(transaction, name);
    }
    DPAR_ASSIGN_OR_RETURN(BudgetSums sums, GetBudgetSums(transaction, name));
    return std::move(sums.budget);
  };
  DPAR_ASSIGN_OR_RETURN(const PopulationPage names, ListPopulations(transaction, tenant, page_size, page_token));
  BudgetPage page;
  page.next_page_token = names.next_page_token;
  for (const std::string& name : names.populations) {
    DPAR_ASSIGN_OR_RETURN(v1::Budget budget, get(name));
    page.budgets.push_back(std::move(budget));
  }
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> fullest, FullestPopulations(transaction, tenant, 1));
  if (!fullest.empty()) {
    DPAR_ASSIGN_OR_RETURN(page.fullest, get(fullest[0]));
  }
  return page;
}

absl::StatusOr<Price> MakePrice(const v1::PrivacyEvent& event, double epsilon, double delta, const BudgetTerms& terms) {
  DPAR_ASSIGN_OR_RETURN(const EventPrice cost, PriceOfEvent(event, terms));
  DPAR_ASSIGN_OR_RETURN(std::string event_text, MessageToText(event));
  return Price{event, std::move(event_text), epsilon, delta, terms.order, terms.cap_delta, cost};
}

absl::Status CheckAdmission(Transaction& transaction, const std::string& population, const Price& price) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, population));
  return CheckAdmission(population, account, price);
}

absl::StatusOr<Account> Reserve(Transaction& transaction, const std::string& population, const std::string& job_name,
                                const Price& price, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(Account account, LockAccount(transaction, population));
  DPAR_RETURN_IF_ERROR(CheckAdmission(population, account, price));
  const int64_t units = price.cost.units;
  StoredEntry stored;
  stored.event_text = price.event_text;
  v1::LedgerEntry& entry = stored.entry;
  entry.set_kind(v1::LedgerEntry::RESERVE);
  entry.set_job(job_name);
  entry.set_units(units);
  entry.set_epsilon(price.epsilon);
  entry.set_delta(price.delta);
  account.reserved_units += units;
  account.live_events += 1;
  DPAR_RETURN_IF_ERROR(Append(transaction, population, account, std::move(stored), context).status());
  return account;
}

absl::StatusOr<Posted> Post(Transaction& transaction, const std::string& population, const std::string& job_name,
                            int attempt, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LockAccount(transaction, population));
  if (!account.frozen_reason.empty()) {
    return BudgetFrozen(population, account.frozen_reason);
  }
  return PostOn(transaction, population, account, job_name, attempt, context);
}

absl::StatusOr<Settlement> VoidOrPost(Transaction& transaction, const std::string& population,
                                      const std::string& job_name, int openings, const std::string& reason,
                                      const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(Account account, LockAccount(transaction, population));
  if (openings > 0) {
    DPAR_ASSIGN_OR_RETURN(const int64_t used, CountOpenedVoids(transaction, population));
    if (used >= kFreeVoids) {
      DPAR_RETURN_IF_ERROR(PostOn(transaction, population, account, job_name, openings, context).status());
      return Settlement::kPosted;
    }
  }
  DPAR_ASSIGN_OR_RETURN(StoredEntry stored, OpenReservation(transaction, population, job_name));
  v1::LedgerEntry& entry = stored.entry;
  entry.set_kind(v1::LedgerEntry::VOID);
  entry.set_attempt(openings);
  entry.set_reason(reason);
  account.reserved_units -= entry.units();
  account.live_events -= 1;
  DPAR_RETURN_IF_ERROR(Append(transaction, population, account, std::move(stored), context).status());
  return Settlement::kVoided;
}

absl::Status SetCap(Transaction& transaction, const std::string& population, double cap_epsilon,
                    const std::string& reason, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(Account account, LockAccount(transaction, population));
  if (!account.closed_reason.empty()) {
    return PopulationClosed(population, account);
  }
  DPAR_ASSIGN_OR_RETURN(const int64_t cap_units, CapUnits(cap_epsilon, account.terms.cap_delta, account.terms.order));
  if (cap_units < account.used_units()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::PRIVACY_BUDGET_EXHAUSTED,
                     absl::StrFormat("a cap of epsilon %g is %d units, below the %d that are spent or reserved",
                                     cap_epsilon, cap_units, account.used_units()),
                     {{"asked_epsilon", absl::StrCat(cap_epsilon)},
                      {"asked_units", absl::StrCat(cap_units)},
                      {"posted_units", absl::StrCat(account.posted_units)},
                      {"reserved_units", absl::StrCat(account.reserved_units)},
                      {"cap_units", absl::StrCat(account.terms.cap_units)}});
  }
  account.terms.cap_epsilon = cap_epsilon;
  account.terms.cap_units = cap_units;
  return Append(transaction, population, account, CapEntry(v1::LedgerEntry::ADJUST, account.terms, reason), context)
      .status();
}

absl::Status PopulationClosed(const std::string& population, const Account& account) {
  std::map<std::string, std::string> metadata = {{"resource", population}};
  if (!account.merged_into.empty()) {
    metadata["merged_into"] = account.merged_into;
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::POPULATION_CLOSED,
                   absl::StrCat(population, " is closed: ", account.closed_reason), metadata);
}

absl::Status CheckVersion(Transaction& transaction, const std::string& population, int64_t node_count) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, population));
  return WithVersion(population, account, node_count).status();
}

absl::Status AddVersion(Transaction& transaction, const std::string& population, int64_t node_count,
                        const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(Account account, LockAccount(transaction, population));
  DPAR_ASSIGN_OR_RETURN(const BudgetTerms terms, WithVersion(population, account, node_count));
  DPAR_RETURN_IF_ERROR(transaction.ExecuteOne("UPDATE populations SET node_total = node_total + $2 WHERE name = $1",
                                              {population, node_count}, ResourceNotFound(population)));
  if (terms.cap_delta >= account.terms.cap_delta) {
    return absl::OkStatus();
  }
  account.terms = terms;
  const std::string reason = absl::StrCat(
      "delta lowered to 1/(10 N), rounded down, for N = ", account.node_total + node_count, " slots of all versions");
  return Append(transaction, population, account, CapEntry(v1::LedgerEntry::ADJUST, terms, reason), context).status();
}

absl::Status RaiseNodeTotal(Transaction& transaction, const std::string& population, int64_t node_total) {
  return transaction
      .Execute("UPDATE populations SET node_total = $2 WHERE name = $1 AND node_total < $2", {population, node_total})
      .status();
}

absl::Status LowerDelta(Transaction& transaction, const std::string& population, double cap_delta,
                        const std::string& reason, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(Account account, LockAccount(transaction, population));
  if (account.terms.cap_delta <= cap_delta) {
    return absl::OkStatus();
  }
  account.terms.cap_delta = cap_delta;
  DPAR_ASSIGN_OR_RETURN(account.terms.cap_units, CapUnits(account.terms.cap_epsilon, cap_delta, account.terms.order));
  return Append(transaction, population, account, CapEntry(v1::LedgerEntry::ADJUST, account.terms, reason), context)
      .status();
}

absl::Status Close(Transaction& transaction, const std::string& population, const std::string& reason,
                   const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(Account account, LockAccount(transaction, population));
  if (!account.closed_reason.empty()) {
    return absl::OkStatus();
  }
  account.closed_reason = reason;
  StoredEntry stored;
  stored.entry.set_kind(v1::LedgerEntry::CLOSE);
  stored.entry.set_reason(reason);
  return Append(transaction, population, account, std::move(stored), context).status();
}

absl::StatusOr<v1::LedgerEntry> Debit(Transaction& transaction, const std::string& population, int64_t units,
                                      const std::string& reason, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(Account account, LockAccount(transaction, population));
  DPAR_RETURN_IF_ERROR(ValidateRange("debit_units", units, int64_t{1}, kMaxUnits - account.used_units()));
  v1::LedgerEntry entry;
  entry.set_kind(v1::LedgerEntry::DEBIT);
  entry.set_units(units);
  entry.set_reason(reason);
  account.posted_units += units;
  return Append(transaction, population, account, {std::move(entry), ""}, context);
}

absl::Status BudgetFrozen(const std::string& population, const std::string& reason) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::BUDGET_FROZEN, reason, {{"resource", population}});
}

absl::Status SetFrozen(Transaction& transaction, const std::string& population, const std::string& reason) {
  return transaction.ExecuteOne("UPDATE populations SET frozen_reason = $2 WHERE name = $1", {population, reason},
                                ResourceNotFound(population));
}

absl::Status NarrowToDegree(Transaction& transaction, const std::string& population, int64_t max_degree) {
  return transaction
      .Execute("UPDATE populations SET max_degree = $2 WHERE name = $1 AND (max_degree IS NULL OR max_degree > $2)",
               {population, max_degree})
      .status();
}

absl::StatusOr<int64_t> CountFrozen(Transaction& transaction) {
  return transaction.QueryInt("SELECT COUNT(*) FROM populations WHERE frozen_reason <> ''", {});
}

absl::StatusOr<std::string> HashOfEntry(Transaction& transaction, const std::string& population, int64_t sequence) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<std::string> hashes,
      transaction.QueryTexts("SELECT hash FROM ledger_entries WHERE population = $1 AND sequence = $2",
                             {population, sequence}));
  return hashes.empty() ? "" : hashes[0];
}

absl::StatusOr<std::vector<v1::LedgerEntry>> ListEntries(Transaction& transaction, const std::string& population,
                                                         int64_t after_sequence, int64_t limit) {
  return ShownEntries(transaction, population, "population = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
                      {population, after_sequence, limit});
}

absl::StatusOr<std::vector<v1::LedgerEntry>> ListEntriesBefore(Transaction& transaction, const std::string& population,
                                                               int64_t before_sequence, int64_t limit) {
  return ShownEntries(transaction, population, "population = $1 AND sequence < $2 ORDER BY sequence DESC LIMIT $3",
                      {population, before_sequence, limit});
}

absl::StatusOr<std::vector<std::string>> AllPopulations(Transaction& transaction) {
  return transaction.QueryTexts(
      "SELECT name FROM populations UNION SELECT population FROM ledger_entries UNION SELECT population FROM contents "
      "ORDER BY 1",
      {});
}

}  // namespace dpar
