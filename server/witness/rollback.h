// Whether a ledger is older than its mark, and what follows. A budget whose ledger lacks the marked entry, or whose
// mark is unreadable, is frozen by a reason in its row: no server of the fleet admits or posts on it. Its live jobs
// end: the model of a restored reservation may have been released after the backup, and a second run would release
// twice for one price. Reading stays possible. Only an operator's Thaw ends it.
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

// NOT_FOUND for a budget without content, which no upload makes.
absl::StatusOr<Content> ContentOf(Transaction& transaction, const std::string& budget_id);

MarkedTerms MarkTerms(const Account& account);
BudgetTerms TermsOf(const Mark& mark);

struct Comparison {
  Account account;
  // The newest of the mark's checkpoints that the ledger has.
  std::optional<size_t> common;
  bool rolled_back = false;  // it is not the last
};
// A mark of another budget shares no checkpoint. The transaction must begin after the mark was read: marks are written
// after what they name was committed.
absl::StatusOr<Comparison> CompareWithMark(Transaction& transaction, const std::string& budget_id, const Mark& mark);

// Reasons for freezing: the ledger lacks the marked entry; the mark is unreadable.
std::string RollbackReason(const Mark& mark);
std::string UnreadableReason(absl::string_view why);

// Freezes a budget unless it is frozen, and ends its live jobs.
absl::Status Freeze(Database& database, const std::string& budget_id, const std::string& reason);

struct Rollback {
  Content content;
  std::string budget_id;
  std::string reason;
};
struct WitnessReport {
  int64_t good = 0;
  int64_t unclaimed = 0;  // of contents that the store does not know; uploading one opens a frozen budget
  std::vector<Rollback> rollbacks;
  std::vector<std::string> unmarked;  // budgets that have spent something and have no mark
};
// Compares every mark with the store; changes nothing.
absl::StatusOr<WitnessReport> CompareAll(Database& database, const MarkDirectory& marks);

// Deleted ones too.
absl::StatusOr<std::vector<std::string>> DatasetsOf(Transaction& transaction, const std::string& budget_id);

struct Thawed {
  int64_t debited_units = 0;
  int64_t left_units = 0;
};
// Settles a frozen budget: ends live jobs, debits what the mark knows and the ledger lacks (all that is left, without a
// readable mark of the same order), marks it anew and admits jobs again. FAILED_PRECONDITION when it is not frozen. Can
// be repeated after a crash without a second debit: the debit's reason names the mark.
absl::StatusOr<Thawed> Thaw(Database& database, const MarkDirectory& marks, const std::string& budget_id,
                            const std::string& reason, const EntryContext& context);

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_ROLLBACK_H_
