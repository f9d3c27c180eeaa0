// Whether a ledger is older than its mark, and what becomes of its budget then.
//
// A budget whose ledger does not have the entry that its mark names, or whose mark cannot be read, is frozen: nothing
// is admitted and nothing posted, on any server of the fleet, since the reason stands in its row. Its live jobs end: a
// restored reservation may be that of a job whose model was released after the backup, and running it again would
// release twice for one price. What can be read stays readable. Only Thaw ends it, which an operator asks for.
#ifndef DPAR_SERVER_WITNESS_ROLLBACK_H_
#define DPAR_SERVER_WITNESS_ROLLBACK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/ledger/ledger.h"
#include "server/store/database.h"
#include "server/witness/mark.h"
#include "server/witness/mark_directory.h"

namespace dpar {

// What a budget's content is. NOT_FOUND for a budget without one, which no upload makes.
absl::StatusOr<Content> ContentOf(Transaction& transaction, const std::string& budget_id);

// Between a ledger's terms and a mark's.
MarkedTerms MarkTerms(const Account& account);
BudgetTerms TermsOf(const Mark& mark);

// A ledger beside its mark.
struct Comparison {
  Account account;
  // Of the mark's checkpoints, the newest that the ledger has.
  std::optional<size_t> common;
  bool rolled_back = false;  // it is not the last
};
// A mark that names another budget shares no checkpoint with this one. Inside a transaction that began after the mark
// was read: marks are written after what they name was committed.
absl::StatusOr<Comparison> CompareWithMark(Transaction& transaction, const std::string& budget_id, const Mark& mark);

// What is said of a budget whose ledger lacks what its mark names, or whose mark is unreadable for the reason `why`.
std::string RollbackReason(const Mark& mark);
std::string UnreadableReason(absl::string_view why);

// Freezes a budget, unless it is frozen, and ends its live jobs.
absl::Status Freeze(Database& database, const std::string& budget_id, const std::string& reason);

// A mark that its ledger does not bear out.
struct Rollback {
  Content content;
  std::string budget_id;
  std::string reason;
};
struct WitnessReport {
  int64_t good = 0;
  int64_t unclaimed = 0;  // of contents that the store does not know; whoever uploads one gets a frozen budget
  std::vector<Rollback> rollbacks;
  std::vector<std::string> unmarked;  // budgets that have spent something and have no mark
};
// Compares every mark with the store; changes nothing.
absl::StatusOr<WitnessReport> CompareAll(Database& database, const MarkDirectory& marks);

// Names of the datasets that have a budget, deleted or not.
absl::StatusOr<std::vector<std::string>> DatasetsOf(Transaction& transaction, const std::string& budget_id);

// What Thaw did.
struct Thawed {
  int64_t debited_units = 0;
  int64_t left_units = 0;
};
// Settles a frozen budget: ends what is live, debits what the mark knows and the ledger lacks (or all that is left,
// when there is no mark that can be read, or one whose units are of another order), marks it anew, and admits jobs
// again. FAILED_PRECONDITION when it is not frozen. After a crash in between it is asked for again, and debits nothing
// twice: the debit's reason names the mark.
absl::StatusOr<Thawed> Thaw(Database& database, const MarkDirectory& marks, const std::string& budget_id,
                            const std::string& reason, const EntryContext& context);

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_ROLLBACK_H_
