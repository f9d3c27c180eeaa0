// The ledger's rows: what the rules of ledger.h and the check of verify_chain.cc both read.
#ifndef DPAR_SERVER_LEDGER_ENTRIES_H_
#define DPAR_SERVER_LEDGER_ENTRIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "dpar/v1/budget.pb.h"
#include "server/ledger/ledger.h"
#include "server/store/database.h"

namespace dpar {

// No sum exceeds it, so that adding an entry to one never overflows.
inline constexpr int64_t kMaxUnits = (int64_t{1} << 62) - 1;

// The reason of an OPEN entry is this and the budget's order, so that the chain covers the order too.
inline constexpr absl::string_view kOrderPrefix = "order ";

// NOT_FOUND when there is none; DATA_LOSS when its sums are impossible.
absl::StatusOr<Account> LoadAccount(Transaction& transaction, const std::string& budget_id);
// The same for whoever changes it: no other transaction does until this one ends.
absl::StatusOr<Account> LockAccount(Transaction& transaction, const std::string& budget_id);
// DATA_LOSS when no sequence of entries could give these sums.
absl::Status CheckAccount(const Account& account, const std::string& budget_id);

// An entry with its event as it is stored, because the hash covers the stored text. `entry.event` is that text read,
// and left out where an entry is written.
struct StoredEntry {
  v1::LedgerEntry entry;
  std::string event_text;
};

// DATA_LOSS when no verb of the ledger writes such an entry.
absl::Status CheckEntry(const StoredEntry& stored, const std::string& budget_id);

// Entries under a WHERE condition (with ORDER BY and LIMIT as needed).
absl::StatusOr<std::vector<StoredEntry>> LoadEntries(Transaction& transaction, absl::string_view where_and_order,
                                                     const std::vector<Value>& parameters);
// The entries of one job, in any order. `entry.event` is left out: reading it takes longer than all the rest, and its
// text is passed on as it is. DATA_LOSS when an entry's hash is not that of its columns after the entry before it: what
// is posted or voided is what was reserved.
absl::StatusOr<std::vector<StoredEntry>> LoadEntriesOfJob(Transaction& transaction, const std::string& budget_id,
                                                          const std::string& job_name);
// Their rows, and what one of them says.
absl::StatusOr<std::vector<Row>> LoadEntryRows(Transaction& transaction, absl::string_view where_and_order,
                                               const std::vector<Value>& parameters);
absl::StatusOr<StoredEntry> ReadEntry(const Row& row);

// What an entry's hash covers: every column as it is stored, each with its length, after the hash before it.
std::string EntryHash(const std::string& budget_id, const std::string& previous_hash, const v1::LedgerEntry& entry,
                      const std::string& event_text);

// DATA_LOSS / STORE_CORRUPT for a budget.
absl::Status CorruptBudget(absl::string_view what, const std::string& budget_id);

}  // namespace dpar

#endif  // DPAR_SERVER_LEDGER_ENTRIES_H_
