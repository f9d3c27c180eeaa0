// The ledger: the cap and the spend of every population. Append-only, hash-chained per population. Reserve the full
// price before data is touched; post it once, in the transaction that makes the output visible; void it only when no
// output left the trainer, and after the data was opened only kFreeVoids times for a population. All functions run
// inside the caller's transaction, so entry and job, or post and model, are committed together.
#ifndef DPAR_SERVER_LEDGER_LEDGER_H_
#define DPAR_SERVER_LEDGER_LEDGER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/privacy/budget.h"
#include "dpar/v1/budget.pb.h"
#include "dpar/v1/privacy.pb.h"
#include "server/store/database.h"

namespace dpar {

struct EntryContext {
  std::string actor;  // a token's name, "worker" or "server"
  absl::Time time;
};

// A job's price for one population. Computing it may take seconds, so it is done before a transaction begins.
struct Price {
  v1::PrivacyEvent event;
  std::string event_text;  // as the ledger stores it
  double epsilon = 0;      // the job's own guarantee
  double delta = 0;
  int64_t order = 0;     // of the budget
  double cap_delta = 0;  // at which the cost's own epsilon was taken
  EventPrice cost;
};
absl::StatusOr<Price> MakePrice(const v1::PrivacyEvent& event, double epsilon, double delta, const BudgetTerms& terms);

struct Account {
  BudgetTerms terms;
  int64_t posted_units = 0;
  int64_t reserved_units = 0;
  int64_t live_events = 0;
  int64_t head_sequence = 0;
  std::string head_hash;
  std::string frozen_reason;  // empty unless no job may be admitted
  std::string closed_reason;  // empty unless no job is ever admitted again
  std::string merged_into;    // then the last entry says so
  int64_t max_degree = 0;     // the smallest degree promise declared for the population; 0: none
  int64_t node_total = 0;     // the sum of N over its versions

  [[nodiscard]] int64_t used_units() const { return posted_units + reserved_units; }
  [[nodiscard]] int64_t left_units() const {
    return closed_reason.empty() ? std::max<int64_t>(0, terms.cap_units - used_units()) : 0;
  }
};

struct EntryPosition {
  int64_t sequence = 0;
  std::string hash;
};

// Opens a new population (tenants/{t}/populations/{p}) with its cap and an OPEN entry.
absl::Status OpenBudget(Transaction& transaction, const std::string& population, const BudgetTerms& terms,
                        const EntryContext& context);

absl::StatusOr<v1::Budget> GetBudget(Transaction& transaction, const std::string& population);
// A budget without equivalent_epsilon, in constant time, as of an entry. NOT_FOUND, as GetBudget, for an unknown id.
struct BudgetSums {
  v1::Budget budget;
  int64_t head_sequence = 0;
};
absl::StatusOr<BudgetSums> GetBudgetSums(Transaction& transaction, const std::string& population);

// Whether the error concerns one budget's rows only, so that others can still be read.
bool IsBudgetFault(const absl::Status& status);
// The fault in words that callers with access to the budget may read.
std::string BudgetFaultText(const absl::Status& status);

// Everything posted as one epsilon, as of an entry.
struct EquivalentEpsilon {
  double epsilon = 0;
  // True beside a debit: converted from posted units at the budget's order. Else composed of all events.
  bool from_units = false;
  int64_t head_sequence = 0;
};
absl::StatusOr<EquivalentEpsilon> GetEquivalentEpsilon(Transaction& transaction, const std::string& population);

// Budgets of populations, oldest first, of a tenant or, when empty, of all; and the fullest.
struct BudgetPage {
  std::vector<v1::Budget> budgets;
  std::string next_page_token;
  std::optional<v1::Budget> fullest;
};
// Without equivalents the accountant, which takes its time, has nothing to do.
enum class Equivalents { kWith, kWithout };
absl::StatusOr<BudgetPage> ListBudgets(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                       const std::string& page_token, Equivalents equivalents = Equivalents::kWith);

// OK when the job would be admitted now (core/privacy/budget.h); else FAILED_PRECONDITION / PRIVACY_BUDGET_EXHAUSTED or
// / BUDGET_FROZEN or / POPULATION_CLOSED. UNAVAILABLE for a price of another order or cap delta: plan again.
absl::Status CheckAdmission(Transaction& transaction, const std::string& population, const Price& price);

// Holds the price; returns the account after it. Errors as CheckAdmission; ALREADY_EXISTS for a second reservation.
absl::StatusOr<Account> Reserve(Transaction& transaction, const std::string& population, const std::string& job_name,
                                const Price& price, const EntryContext& context);

// A POST entry, its stored event text, and the account whose head it is.
struct Posted {
  Account account;
  std::string previous_hash;
  v1::LedgerEntry entry;  // without its event
  std::string event_text;
};

// Turns the reservation into spend. FAILED_PRECONDITION unless it is open, and when the budget is frozen: its output
// may have been released before the rollback.
absl::StatusOr<Posted> Post(Transaction& transaction, const std::string& population, const std::string& job_name,
                            int attempt, const EntryContext& context);

// How often a population gives a price back after the job's data was opened. No output left such a job, but its
// progress and its duration were seen, which are not priced; so they may not be had for free any number of times.
inline constexpr int64_t kFreeVoids = 3;

enum class Settlement { kVoided, kPosted };
// What a cancelled job says that was posted.
inline constexpr absl::string_view kPostedAtCancel =
    "it was cancelled after its data was opened; the times that this budget gives a price back then (3) are used up, "
    "so "
    "its price was posted in full";

// Gives the reservation back, or posts it when the data was opened and kFreeVoids are used. `openings` is how often it
// may have been opened; a VOID entry has it as its attempt, by which the chain itself counts. Also for a frozen budget.
// FAILED_PRECONDITION unless the reservation is open.
absl::StatusOr<Settlement> VoidOrPost(Transaction& transaction, const std::string& population,
                                      const std::string& job_name, int openings, const std::string& reason,
                                      const EntryContext& context);

// Sets the cap epsilon; the order stays. FAILED_PRECONDITION when posted + reserved would not fit, and when closed.
absl::Status SetCap(Transaction& transaction, const std::string& population, double cap_epsilon,
                    const std::string& reason, const EntryContext& context);

// Counts another version of `node_count` slots, and lowers the cap's delta to what the sum of N allows (DefaultDelta of
// it), as an ADJUST entry. FAILED_PRECONDITION / POPULATION_IN_USE when it must be lowered under open reservations,
// whose jobs' delta would exceed it; / PRIVACY_BUDGET_EXHAUSTED when what is spent would not fit; / POPULATION_CLOSED
// when the population was merged. CheckVersion only checks.
absl::Status CheckVersion(Transaction& transaction, const std::string& population, int64_t node_count);
absl::Status AddVersion(Transaction& transaction, const std::string& population, int64_t node_count,
                        const EntryContext& context);

// Makes the sum of N at least this, for versions that a rollback lost: the next ones are added to it.
absl::Status RaiseNodeTotal(Transaction& transaction, const std::string& population, int64_t node_total);

// From now on no job is admitted, whatever the cap; the chain says so. Nothing for a closed population.
absl::Status Close(Transaction& transaction, const std::string& population, const std::string& reason,
                   const EntryContext& context);
absl::Status PopulationClosed(const std::string& population, const Account& account);

// Lowers the cap's delta, as after a rollback that lost its lowering. Nothing if it is not above `cap_delta`.
absl::Status LowerDelta(Transaction& transaction, const std::string& population, double cap_delta,
                        const std::string& reason, const EntryContext& context);

// Debits by hand, also beyond the cap. INVALID_ARGUMENT unless units are above 0 and all used units stay below 2^62.
absl::StatusOr<v1::LedgerEntry> Debit(Transaction& transaction, const std::string& population, int64_t units,
                                      const std::string& reason, const EntryContext& context);

// FAILED_PRECONDITION / BUDGET_FROZEN with the reason.
absl::Status BudgetFrozen(const std::string& population, const std::string& reason);
// Freezes a budget, or thaws it when `reason` is empty; adds no entry. NOT_FOUND for an unknown budget.
absl::Status SetFrozen(Transaction& transaction, const std::string& population, const std::string& reason);
// Records a degree promise: the cap concerns graphs that keep the smallest one of this population's datasets.
absl::Status NarrowToDegree(Transaction& transaction, const std::string& population, int64_t max_degree);
absl::StatusOr<int64_t> CountFrozen(Transaction& transaction);

// Empty when there is no such entry.
absl::StatusOr<std::string> HashOfEntry(Transaction& transaction, const std::string& population, int64_t sequence);

// At most `limit` entries after `after_sequence`, oldest first, with stage prices. NOT_FOUND for an unknown budget.
absl::StatusOr<std::vector<v1::LedgerEntry>> ListEntries(Transaction& transaction, const std::string& population,
                                                         int64_t after_sequence, int64_t limit);

// The same before `before_sequence`, newest first.
absl::StatusOr<std::vector<v1::LedgerEntry>> ListEntriesBefore(Transaction& transaction, const std::string& population,
                                                               int64_t before_sequence, int64_t limit);

// Every population with a row, entries or content.
absl::StatusOr<std::vector<std::string>> AllPopulations(Transaction& transaction);

// Recomputes hashes, sequence numbers and sums of the whole chain and checks that it has the entries that certificates
// were signed for. A broken chain is an answer, not an error. CANCELLED soon after `stop` is set (may be null).
absl::StatusOr<v1::VerifyChainResponse> VerifyChain(Transaction& transaction, const std::string& population,
                                                    const std::vector<EntryPosition>& checkpoints,
                                                    const std::atomic<bool>* stop = nullptr);

}  // namespace dpar

#endif  // DPAR_SERVER_LEDGER_LEDGER_H_
