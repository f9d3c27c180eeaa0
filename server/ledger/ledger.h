// The ledger: what every dataset's data may cost and has cost. Append-only, hash-chained per budget.
//
// Money rules: the full price is reserved before data is touched; it is posted once, in the transaction that makes the
// output visible; it is voided only when no output left the trainer. All functions run inside the caller's transaction,
// so that a reservation and the job that it pays for, or a post and the model that it pays for, stand or fall together.
#ifndef DPAR_SERVER_LEDGER_LEDGER_H_
#define DPAR_SERVER_LEDGER_LEDGER_H_

#include <cstdint>
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

// A job's price as it stands in the ledger.
struct Price {
  v1::PrivacyEvent event;
  double epsilon = 0;
  double delta = 0;
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

// OK when the job would be admitted (core/privacy/budget.h) now; FAILED_PRECONDITION / PRIVACY_BUDGET_EXHAUSTED when
// not.
absl::Status CheckAdmission(Transaction& transaction, const std::string& budget_id, const Price& price);

// Admits a job and holds its price. FAILED_PRECONDITION / PRIVACY_BUDGET_EXHAUSTED when it does
// not fit. ALREADY_EXISTS when the job has a reservation.
absl::Status Reserve(Transaction& transaction, const std::string& budget_id, const std::string& job_name,
                     const Price& price, const EntryContext& context);

// Turns the job's reservation into spend. FAILED_PRECONDITION unless it is reserved and neither posted nor voided.
absl::StatusOr<EntryPosition> Post(Transaction& transaction, const std::string& budget_id, const std::string& job_name,
                                   int attempt, const EntryContext& context);

// Gives the job's reservation back. FAILED_PRECONDITION unless it is reserved and neither posted nor voided.
absl::Status Void(Transaction& transaction, const std::string& budget_id, const std::string& job_name, int attempt,
                  const std::string& reason, const EntryContext& context);

// Sets the cap epsilon with a reason. The order stays. FAILED_PRECONDITION when posted + reserved would not fit.
absl::Status SetCap(Transaction& transaction, const std::string& budget_id, double cap_epsilon,
                    const std::string& reason, const EntryContext& context);

// Entries after `after_sequence`, at most `limit`, oldest first, with the price of each stage of their events.
// NOT_FOUND when there is no such budget.
absl::StatusOr<std::vector<v1::LedgerEntry>> ListEntries(Transaction& transaction, const std::string& budget_id,
                                                         int64_t after_sequence, int64_t limit);

// Recomputes hashes, sequence numbers and sums of the whole chain.
absl::StatusOr<v1::VerifyChainResponse> VerifyChain(Transaction& transaction, const std::string& budget_id);

}  // namespace dpar

#endif  // DPAR_SERVER_LEDGER_LEDGER_H_
