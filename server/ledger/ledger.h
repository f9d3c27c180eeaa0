// The ledger: what every dataset's data may cost and has cost. Append-only, hash-chained per budget.
//
// Money rules: the full price is reserved before data is touched; it is posted once, in the transaction that makes the
// output visible; it is voided only when no output left the trainer. All functions run inside the caller's transaction,
// so that a reservation and the job that it pays for, or a post and the model that it pays for, stand or fall together.
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
#include "absl/time/time.h"
#include "core/privacy/budget.h"
#include "dpar/v1/budget.pb.h"
#include "dpar/v1/privacy.pb.h"
#include "server/store/database.h"

namespace dpar {

// Who and when, for an entry.
struct EntryContext {
  std::string actor;  // a token's name, "worker" or "server"
  absl::Time time;
};

// A job's price on one budget, worked out before a transaction begins: it may take seconds.
struct Price {
  v1::PrivacyEvent event;
  std::string event_text;  // as the ledger stores it
  double epsilon = 0;      // the job's own guarantee
  double delta = 0;
  int64_t order = 0;  // of the budget
  EventPrice cost;
};
absl::StatusOr<Price> MakePrice(const v1::PrivacyEvent& event, double epsilon, double delta, const BudgetTerms& terms);

// A budget's row: the cap, the cached sums, and where its chain ends.
struct Account {
  BudgetTerms terms;
  int64_t posted_units = 0;
  int64_t reserved_units = 0;
  int64_t live_events = 0;
  int64_t head_sequence = 0;
  std::string head_hash;
  std::string frozen_reason;  // empty unless no job may be admitted
  int64_t max_degree = 0;     // the smallest degree promise declared for the content; 0: none

  [[nodiscard]] int64_t used_units() const { return posted_units + reserved_units; }
  [[nodiscard]] int64_t left_units() const { return std::max<int64_t>(0, terms.cap_units - used_units()); }
};

// Where an entry stands in its chain.
struct EntryPosition {
  int64_t sequence = 0;
  std::string hash;
};

// Opens a budget with its cap and an OPEN entry. `budget_id` is new.
absl::Status OpenBudget(Transaction& transaction, const std::string& budget_id, const BudgetTerms& terms,
                        const EntryContext& context);

// The cap and sums of a budget, without a name. NOT_FOUND when there is none.
absl::StatusOr<v1::Budget> GetBudget(Transaction& transaction, const std::string& budget_id);
// The same without equivalent_epsilon, in time that does not depend on the ledger's length; true of the ledger up to an
// entry.
struct BudgetSums {
  v1::Budget budget;
  int64_t head_sequence = 0;
};
absl::StatusOr<BudgetSums> GetBudgetSums(Transaction& transaction, const std::string& budget_id);

// Whether an error came of what the store says of one budget, so that others can be read all the same.
bool IsBudgetFault(const absl::Status& status);
// What is wrong with a budget that could not be read, in words for whoever may see it.
std::string BudgetFaultText(const absl::Status& status);

// Everything posted as one epsilon. It was true of the ledger up to an entry.
struct EquivalentEpsilon {
  double epsilon = 0;
  // From the posted units at the budget's order, beside a debit, which has no event; else composed of all events.
  bool from_units = false;
  int64_t head_sequence = 0;
};
absl::StatusOr<EquivalentEpsilon> GetEquivalentEpsilon(Transaction& transaction, const std::string& budget_id);

// The budgets of private datasets, deleted ones too, oldest dataset first: of one tenant (tenants/{t}), or of all when
// it is empty. With names, and the fullest of all of them.
struct BudgetPage {
  std::vector<v1::Budget> budgets;
  std::string next_page_token;
  std::optional<v1::Budget> fullest;
};
absl::StatusOr<BudgetPage> ListBudgets(Transaction& transaction, const std::string& tenant, int64_t page_size,
                                       const std::string& page_token);

// OK when the job would be admitted (core/privacy/budget.h) now; FAILED_PRECONDITION / PRIVACY_BUDGET_EXHAUSTED when
// not, / BUDGET_FROZEN when none would be. INVALID_ARGUMENT for a price of another order.
absl::Status CheckAdmission(Transaction& transaction, const std::string& budget_id, const Price& price);

// Admits a job and holds its price; the account after it. FAILED_PRECONDITION / PRIVACY_BUDGET_EXHAUSTED when it does
// not fit, / BUDGET_FROZEN when nothing is admitted. ALREADY_EXISTS when the job has a reservation.
absl::StatusOr<Account> Reserve(Transaction& transaction, const std::string& budget_id, const std::string& job_name,
                                const Price& price, const EntryContext& context);

// A POST entry, with what its hash covers, and the account after it, whose head it is.
struct Posted {
  Account account;
  std::string previous_hash;
  v1::LedgerEntry entry;  // without its event
  std::string event_text;
};

// Turns the job's reservation into spend. FAILED_PRECONDITION unless it is reserved and neither posted nor voided, and
// when the budget is frozen: what it would pay for may have been released before.
absl::StatusOr<Posted> Post(Transaction& transaction, const std::string& budget_id, const std::string& job_name,
                            int attempt, const EntryContext& context);

// Gives the job's reservation back. FAILED_PRECONDITION unless it is reserved and neither posted nor voided.
absl::Status Void(Transaction& transaction, const std::string& budget_id, const std::string& job_name, int attempt,
                  const std::string& reason, const EntryContext& context);

// Sets the cap epsilon with a reason. The order stays. FAILED_PRECONDITION when posted + reserved would not fit.
absl::Status SetCap(Transaction& transaction, const std::string& budget_id, double cap_epsilon,
                    const std::string& reason, const EntryContext& context);

// Debits units by hand, also beyond the cap: what was spent elsewhere is spent. INVALID_ARGUMENT unless units
// are above 0 and everything used stays below 2^62.
absl::StatusOr<v1::LedgerEntry> Debit(Transaction& transaction, const std::string& budget_id, int64_t units,
                                      const std::string& reason, const EntryContext& context);

// FAILED_PRECONDITION / BUDGET_FROZEN with the reason.
absl::Status BudgetFrozen(const std::string& budget_id, const std::string& reason);
// Freezes a budget for a reason, or, when that is empty, thaws it. Its ledger is as it was. NOT_FOUND when there is no
// such budget.
absl::Status SetFrozen(Transaction& transaction, const std::string& budget_id, const std::string& reason);
// Notes that a dataset with this budget has a degree promise: the cap is about graphs that keep the smallest of them.
absl::Status NarrowToDegree(Transaction& transaction, const std::string& budget_id, int64_t max_degree);
// How many budgets are frozen.
absl::StatusOr<int64_t> CountFrozen(Transaction& transaction);

// The hash of one entry; empty when there is none in its place.
absl::StatusOr<std::string> HashOfEntry(Transaction& transaction, const std::string& budget_id, int64_t sequence);

// Entries after `after_sequence`, at most `limit`, oldest first, with the price of each stage of their events.
// NOT_FOUND when there is no such budget.
absl::StatusOr<std::vector<v1::LedgerEntry>> ListEntries(Transaction& transaction, const std::string& budget_id,
                                                         int64_t after_sequence, int64_t limit);

// The same before `before_sequence`, newest first.
absl::StatusOr<std::vector<v1::LedgerEntry>> ListEntriesBefore(Transaction& transaction, const std::string& budget_id,
                                                               int64_t before_sequence, int64_t limit);

// Every budget that the store speaks of: those with a row, with entries, or with content.
absl::StatusOr<std::vector<std::string>> AllBudgets(Transaction& transaction);

// Recomputes hashes, sequence numbers and sums of the whole chain, and checks that the entries which certificates were
// signed for are still in it. A chain at fault is an answer, not an error. CANCELLED soon after `stop` is set, where
// there is one.
absl::StatusOr<v1::VerifyChainResponse> VerifyChain(Transaction& transaction, const std::string& budget_id,
                                                    const std::vector<EntryPosition>& checkpoints,
                                                    const std::atomic<bool>* stop = nullptr);

}  // namespace dpar

#endif  // DPAR_SERVER_LEDGER_LEDGER_H_
