#include "server/ledger/ledger.h"

#include <algorithm>
#include <cmath>
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
#include "server/store/datasets.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

// Appends an entry (sequence, time, actor and hash are set here) and writes `account`, whose sums the caller has set.
// The stored head must be the entry before: even without a lock, no update is lost.
absl::StatusOr<v1::LedgerEntry> Append(Transaction& transaction, const std::string& budget_id, Account& account,
                                       StoredEntry stored, const EntryContext& context) {
  v1::LedgerEntry& entry = stored.entry;
  const std::string& event_text = stored.event_text;
  const int64_t time = absl::ToUnixMicros(context.time);
  entry.set_sequence(account.head_sequence + 1);
  *entry.mutable_time() = ToTimestamp(time);
  entry.set_actor(context.actor);
  entry.set_hash(EntryHash(budget_id, account.head_hash, entry, event_text));
  account.head_sequence = entry.sequence();
  account.head_hash = entry.hash();
  DPAR_RETURN_IF_ERROR(CheckEntry(stored, budget_id));
  DPAR_RETURN_IF_ERROR(CheckAccount(account, budget_id));
  DPAR_RETURN_IF_ERROR(transaction.ExecuteOne(
      "INSERT INTO ledger_entries (budget_id, sequence, time, kind, job, actor, units, epsilon, delta, event, reason, "
      "attempt, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
      {budget_id, entry.sequence(), time, int64_t{entry.kind()}, TextOrNull(entry.job()), entry.actor(), entry.units(),
       entry.epsilon(), entry.delta(), event_text, entry.reason(), int64_t{entry.attempt()}, entry.hash()},
      CorruptBudget("a ledger entry was not written", budget_id)));
  DPAR_RETURN_IF_ERROR(transaction.ExecuteOne(
      "UPDATE budgets SET cap_epsilon = $2, cap_units = $3, posted_units = $4, reserved_units = $5, "
      "live_events = $6, head_sequence = $7, head_hash = $8 WHERE id = $1 AND head_sequence + 1 = $7",
      {budget_id, account.terms.cap_epsilon, account.terms.cap_units, account.posted_units, account.reserved_units,
       account.live_events, account.head_sequence, account.head_hash},
      CorruptBudget("a budget changed while it was written", budget_id)));
  return std::move(entry);
}

absl::StatusOr<StoredEntry> OpenReservation(Transaction& transaction, const std::string& budget_id,
                                            const std::string& job_name) {
  DPAR_ASSIGN_OR_RETURN(std::vector<StoredEntry> entries, LoadEntriesOfJob(transaction, budget_id, job_name));
  if (entries.size() != 1 || entries[0].entry.kind() != v1::LedgerEntry::RESERVE) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::JOB_ENDED,
                     absl::StrCat(job_name, " has no open reservation"), {{"resource", job_name}});
  }
  return std::move(entries[0]);
}

// `account` is the locked one.
absl::StatusOr<Posted> PostOn(Transaction& transaction, const std::string& budget_id, const Account& account,
                              const std::string& job_name, int attempt, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(StoredEntry stored, OpenReservation(transaction, budget_id, job_name));
  v1::LedgerEntry& entry = stored.entry;
  entry.set_kind(v1::LedgerEntry::POST);
  entry.set_attempt(attempt);
  Posted posted;
  posted.account = account;
  posted.account.reserved_units -= entry.units();
  posted.account.posted_units += entry.units();
  posted.previous_hash = account.head_hash;
  posted.event_text = stored.event_text;
  DPAR_ASSIGN_OR_RETURN(posted.entry, Append(transaction, budget_id, posted.account, std::move(stored), context));
  posted.entry.clear_event();
  return posted;
}

// Literals, as in the index that holds exactly these entries.
absl::StatusOr<int64_t> CountOpenedVoids(Transaction& transaction, const std::string& budget_id) {
  static_assert(v1::LedgerEntry::VOID == 4);
  return transaction.QueryInt("SELECT COUNT(*) FROM ledger_entries WHERE budget_id = $1 AND kind = 4 AND attempt > 0",
                              {budget_id});
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

absl::Status CheckAdmission(const std::string& budget_id, const Account& account, const Price& price) {
  if (!account.frozen_reason.empty()) {
    return BudgetFrozen(budget_id, account.frozen_reason);
  }
  if (price.order != account.terms.order) {
    return InvalidField("price", "the price was made for a budget of another order");
  }
  DPAR_ASSIGN_OR_RETURN(const bool admitted,
                        Admits(account.terms, account.used_units(), account.live_events, price.cost));
  return admitted ? absl::OkStatus() : BudgetExhausted(account, price, price.cost.units);
}

absl::Status AddStages(const std::string& budget_id, int64_t order, v1::LedgerEntry& entry) {
  const absl::StatusOr<std::vector<v1::StagePrice>> costs = StageUnits(entry.event(), order);
  if (!costs.ok()) {
    return CorruptBudget("a ledger entry's event has no price", budget_id);
  }
  entry.mutable_stages()->Assign(costs->begin(), costs->end());
  return absl::OkStatus();
}

// Composes everything posted as if planned in advance. Equal events are parsed once. A debit has no event, so beside
// one the posted units are converted, which is never smaller.
absl::StatusOr<EquivalentEpsilon> Equivalent(Transaction& transaction, const std::string& budget_id,
                                             const Account& account) {
  EquivalentEpsilon equivalent{0, false, account.head_sequence};
  DPAR_ASSIGN_OR_RETURN(const int64_t debits,
                        transaction.QueryInt("SELECT COUNT(*) FROM ledger_entries WHERE budget_id = $1 AND kind = $2",
                                             {budget_id, int64_t{v1::LedgerEntry::DEBIT}}));
  if (debits > 0) {
    equivalent.from_units = true;
    DPAR_ASSIGN_OR_RETURN(equivalent.epsilon, EpsilonOfUnits(account.terms, account.posted_units));
    return equivalent;
  }
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> posts,
                        transaction.Query("SELECT event, COUNT(*) FROM ledger_entries WHERE budget_id = $1 AND "
                                          "kind = $2 GROUP BY event ORDER BY event",
                                          {budget_id, int64_t{v1::LedgerEntry::POST}}));
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

absl::StatusOr<std::vector<v1::LedgerEntry>> ShownEntries(Transaction& transaction, const std::string& budget_id,
                                                          absl::string_view where_and_order,
                                                          const std::vector<Value>& parameters) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, budget_id));
  DPAR_ASSIGN_OR_RETURN(std::vector<StoredEntry> stored, LoadEntries(transaction, where_and_order, parameters));
  std::vector<v1::LedgerEntry> entries;
  entries.reserve(stored.size());
  for (StoredEntry& entry : stored) {
    DPAR_RETURN_IF_ERROR(AddStages(budget_id, account.terms.order, entry.entry));
    entries.push_back(std::move(entry.entry));
  }
  return entries;
}

absl::StatusOr<v1::Budget> SumsOf(const Account& account) {
  v1::Budget budget;
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
  if (account.frozen_reason.empty()) {
    DPAR_ASSIGN_OR_RETURN(const double largest,
                          LargestAdmissibleEpsilon(account.terms, account.used_units(), account.live_events));
    budget.set_largest_admissible_epsilon(largest);
  }
  return budget;
}

}  // namespace

absl::Status OpenBudget(Transaction& transaction, const std::string& budget_id, const BudgetTerms& terms,
                        const EntryContext& context) {
  DPAR_RETURN_IF_ERROR(transaction
                           .Execute("INSERT INTO budgets (id, cap_epsilon, cap_delta, renyi_order, cap_units, "
                                    "posted_units, reserved_units, live_events, head_sequence, head_hash) "
                                    "VALUES ($1, $2, $3, $4, $5, 0, 0, 0, 0, '')",
                                    {budget_id, terms.cap_epsilon, terms.cap_delta, terms.order, terms.cap_units})
                           .status());
  Account account;
  account.terms = terms;
  v1::LedgerEntry entry;
  entry.set_kind(v1::LedgerEntry::OPEN);
  entry.set_units(terms.cap_units);
  entry.set_epsilon(terms.cap_epsilon);
  entry.set_delta(terms.cap_delta);
  entry.set_reason(absl::StrCat(kOrderPrefix, terms.order));
  return Append(transaction, budget_id, account, {std::move(entry), ""}, context).status();
}

absl::StatusOr<v1::Budget> GetBudget(Transaction& transaction, const std::string& budget_id) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, budget_id));
  DPAR_ASSIGN_OR_RETURN(v1::Budget budget, SumsOf(account));
  DPAR_ASSIGN_OR_RETURN(const EquivalentEpsilon equivalent, Equivalent(transaction, budget_id, account));
  budget.set_equivalent_epsilon(equivalent.epsilon);
  return budget;
}

absl::StatusOr<BudgetSums> GetBudgetSums(Transaction& transaction, const std::string& budget_id) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, budget_id));
  DPAR_ASSIGN_OR_RETURN(v1::Budget budget, SumsOf(account));
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

absl::StatusOr<EquivalentEpsilon> GetEquivalentEpsilon(Transaction& transaction, const std::string& budget_id) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, budget_id));
  return Equivalent(transaction, budget_id, account);
}

absl::StatusOr<BudgetPage> ListBudgets(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                       const std::string& page_token) {
  DPAR_ASSIGN_OR_RETURN(const BudgetNamePage names, ListBudgetNames(transaction, tenant, page_size, page_token));
  const auto load = [&](const BudgetOfDataset& of) -> absl::StatusOr<v1::Budget> {
    DPAR_ASSIGN_OR_RETURN(v1::Budget budget, GetBudget(transaction, of.budget_id));
    budget.set_name(absl::StrCat(of.dataset, "/budget"));
    return budget;
  };
  BudgetPage page;
  page.next_page_token = names.next_page_token;
  for (const BudgetOfDataset& of : names.budgets) {
    DPAR_ASSIGN_OR_RETURN(v1::Budget budget, load(of));
    page.budgets.push_back(std::move(budget));
  }
  DPAR_ASSIGN_OR_RETURN(const std::optional<BudgetOfDataset> fullest, FullestBudget(transaction, tenant));
  if (fullest.has_value()) {
    DPAR_ASSIGN_OR_RETURN(page.fullest, load(*fullest));
  }
  return page;
}

absl::StatusOr<Price> MakePrice(const v1::PrivacyEvent& event, double epsilon, double delta, const BudgetTerms& terms) {
  DPAR_ASSIGN_OR_RETURN(const EventPrice cost, PriceOfEvent(event, terms));
  DPAR_ASSIGN_OR_RETURN(std::string event_text, MessageToText(event));
  return Price{event, std::move(event_text), epsilon, delta, terms.order, cost};
}

absl::Status CheckAdmission(Transaction& transaction, const std::string& budget_id, const Price& price) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, budget_id));
  return CheckAdmission(budget_id, account, price);
}

absl::StatusOr<Account> Reserve(Transaction& transaction, const std::string& budget_id, const std::string& job_name,
                                const Price& price, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(Account account, LockAccount(transaction, budget_id));
  DPAR_RETURN_IF_ERROR(CheckAdmission(budget_id, account, price));
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
  DPAR_RETURN_IF_ERROR(Append(transaction, budget_id, account, std::move(stored), context).status());
  return account;
}

absl::StatusOr<Posted> Post(Transaction& transaction, const std::string& budget_id, const std::string& job_name,
                            int attempt, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(const Account account, LockAccount(transaction, budget_id));
  if (!account.frozen_reason.empty()) {
    return BudgetFrozen(budget_id, account.frozen_reason);
  }
  return PostOn(transaction, budget_id, account, job_name, attempt, context);
}

absl::StatusOr<Settlement> VoidOrPost(Transaction& transaction, const std::string& budget_id,
                                      const std::string& job_name, int openings, const std::string& reason,
                                      const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(Account account, LockAccount(transaction, budget_id));
  if (openings > 0) {
    DPAR_ASSIGN_OR_RETURN(const int64_t used, CountOpenedVoids(transaction, budget_id));
    if (used >= kFreeVoids) {
      DPAR_RETURN_IF_ERROR(PostOn(transaction, budget_id, account, job_name, openings, context).status());
      return Settlement::kPosted;
    }
  }
  DPAR_ASSIGN_OR_RETURN(StoredEntry stored, OpenReservation(transaction, budget_id, job_name));
  v1::LedgerEntry& entry = stored.entry;
  entry.set_kind(v1::LedgerEntry::VOID);
  entry.set_attempt(openings);
  entry.set_reason(reason);
  account.reserved_units -= entry.units();
  account.live_events -= 1;
  DPAR_RETURN_IF_ERROR(Append(transaction, budget_id, account, std::move(stored), context).status());
  return Settlement::kVoided;
}

absl::Status SetCap(Transaction& transaction, const std::string& budget_id, double cap_epsilon,
                    const std::string& reason, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(Account account, LockAccount(transaction, budget_id));
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
  v1::LedgerEntry entry;
  entry.set_kind(v1::LedgerEntry::ADJUST);
  entry.set_units(cap_units);
  entry.set_epsilon(cap_epsilon);
  entry.set_delta(account.terms.cap_delta);
  entry.set_reason(reason);
  return Append(transaction, budget_id, account, {std::move(entry), ""}, context).status();
}

absl::StatusOr<v1::LedgerEntry> Debit(Transaction& transaction, const std::string& budget_id, int64_t units,
                                      const std::string& reason, const EntryContext& context) {
  DPAR_ASSIGN_OR_RETURN(Account account, LockAccount(transaction, budget_id));
  DPAR_RETURN_IF_ERROR(ValidateRange("debit_units", units, int64_t{1}, kMaxUnits - account.used_units()));
  v1::LedgerEntry entry;
  entry.set_kind(v1::LedgerEntry::DEBIT);
  entry.set_units(units);
  entry.set_reason(reason);
  account.posted_units += units;
  return Append(transaction, budget_id, account, {std::move(entry), ""}, context);
}

absl::Status BudgetFrozen(const std::string& budget_id, const std::string& reason) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::BUDGET_FROZEN, reason, {{"resource", budget_id}});
}

absl::Status SetFrozen(Transaction& transaction, const std::string& budget_id, const std::string& reason) {
  return transaction.ExecuteOne("UPDATE budgets SET frozen_reason = $2 WHERE id = $1", {budget_id, reason},
                                ResourceNotFound(budget_id));
}

absl::Status NarrowToDegree(Transaction& transaction, const std::string& budget_id, int64_t max_degree) {
  return transaction
      .Execute("UPDATE budgets SET max_degree = $2 WHERE id = $1 AND (max_degree IS NULL OR max_degree > $2)",
               {budget_id, max_degree})
      .status();
}

absl::StatusOr<int64_t> CountFrozen(Transaction& transaction) {
  return transaction.QueryInt("SELECT COUNT(*) FROM budgets WHERE frozen_reason <> ''", {});
}

absl::StatusOr<std::string> HashOfEntry(Transaction& transaction, const std::string& budget_id, int64_t sequence) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> hashes,
                        transaction.QueryTexts("SELECT hash FROM ledger_entries WHERE budget_id = $1 AND sequence = $2",
                                               {budget_id, sequence}));
  return hashes.empty() ? "" : hashes[0];
}

absl::StatusOr<std::vector<v1::LedgerEntry>> ListEntries(Transaction& transaction, const std::string& budget_id,
                                                         int64_t after_sequence, int64_t limit) {
  return ShownEntries(transaction, budget_id, "budget_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
                      {budget_id, after_sequence, limit});
}

absl::StatusOr<std::vector<v1::LedgerEntry>> ListEntriesBefore(Transaction& transaction, const std::string& budget_id,
                                                               int64_t before_sequence, int64_t limit) {
  return ShownEntries(transaction, budget_id, "budget_id = $1 AND sequence < $2 ORDER BY sequence DESC LIMIT $3",
                      {budget_id, before_sequence, limit});
}

absl::StatusOr<std::vector<std::string>> AllBudgets(Transaction& transaction) {
  return transaction.QueryTexts(
      "SELECT id FROM budgets UNION SELECT budget_id FROM ledger_entries UNION SELECT budget_id FROM contents "
      "ORDER BY 1",
      {});
}

}  // namespace dpar
