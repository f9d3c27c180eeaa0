// Whether a ledger is older than its mark, and what follows. A population whose ledger lacks the marked entry, or whose
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

MarkedTerms MarkTerms(const Account& account);
BudgetTerms TermsOf(const Mark& mark);

struct Comparison {
  Account account;
  // The newest of the mark's checkpoints that the ledger has.
  std::optional<size_t> common;
  bool rolled_back = false;  // it is not the last
};
// The transaction must begin after the mark was read: marks are written
// after what they name was committed.
absl::StatusOr<Comparison> CompareWithMark(Transaction& transaction, const std::string& population, const Mark& mark);

// Reasons for freezing: the ledger lacks the marked entry; the mark is unreadable.
std::string RollbackReason(const Mark& mark);
std::string UnreadableReason(absl::string_view why);

// Freezes a population unless it is frozen, and ends its live jobs.
absl::Status Freeze(Database& database, const std::string& population, const std::string& reason);

struct Rollback {
  std::string population;
  std::string reason;
};
struct WitnessReport {
  int64_t good = 0;
  int64_t unclaimed = 0;  // of populations that the store does not know; their content opens them again, frozen
  std::vector<Rollback> rollbacks;
  std::vector<std::string> unmarked;  // populations that have spent something and have no mark
  std::vector<std::string> merged;    // and what they were merged into; the marks of both must stand at their ends
};
// Compares every mark with the store; changes nothing.
absl::StatusOr<WitnessReport> CompareAll(Database& database, const MarkDirectory& marks);

struct Thawed {
  int64_t debited_units = 0;
  int64_t left_units = 0;
  bool closed = false;
  std::string closed_end;  // of a merged population: what holds its spend, and was closed for what nobody can count
};
// Settles a frozen population: ends live jobs, debits what the mark knows and the ledger lacks, marks it anew and
// admits jobs again. Without a readable mark of the same order nobody knows what was spent: then all that is left is
// debited and the population closed, so that no raised cap brings it back; so it is when the mark is of a closed one.
// A merged population has no budget of its own: where it would be closed, what it was merged into is, and is marked so.
// FAILED_PRECONDITION when it is not frozen. Can be repeated after a crash without a second debit: the debit's reason
// names the mark.
absl::StatusOr<Thawed> Thaw(Database& database, const MarkDirectory& marks, const std::string& population,
                            const std::string& reason, const EntryContext& context);

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_ROLLBACK_H_
