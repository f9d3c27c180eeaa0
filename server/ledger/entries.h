// The ledger's rows, as read by ledger.cc and verify_chain.cc.
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

// No sum exceeds it, so adding an entry never overflows.
inline constexpr int64_t kMaxUnits = (int64_t{1} << 62) - 1;

// An OPEN entry's reason is this and the budget's order, so that the chain covers the order.
inline constexpr absl::string_view kOrderPrefix = "order ";
// The CLOSE entry of a merged population: this, the other's name, ": " and why.
inline constexpr absl::string_view kMergedPrefix = "merged into ";

// NOT_FOUND when there is none; DATA_LOSS when no sequence of entries could give its sums.
absl::StatusOr<Account> LoadAccount(Transaction& transaction, const std::string& population);
// The same, locked against other transactions until this one ends.
absl::StatusOr<Account> LockAccount(Transaction& transaction, const std::string& population);
absl::Status CheckAccount(const Account& account, const std::string& population);

// An entry with its event as stored text, which the hash covers. `entry.event` is that text parsed; unset for writing.
struct StoredEntry {
  v1::LedgerEntry entry;
  std::string event_text;
};

// Appends an entry (sequence, time, actor and hash are set here) and writes `account`, whose sums the caller has set.
// The stored head must be the entry before: even without a lock, no update is lost.
absl::StatusOr<v1::LedgerEntry> Append(Transaction& transaction, const std::string& population, Account& account,
                                       StoredEntry stored, const EntryContext& context);

// An entry that states the account's cap: OPEN, ADJUST or MERGE.
StoredEntry CapEntry(v1::LedgerEntry::Kind kind, const BudgetTerms& terms, const std::string& reason);

// VOID entries that count against kFreeVoids, those of merged populations too.
absl::StatusOr<int64_t> CountOpenedVoids(Transaction& transaction, const std::string& population);

// DATA_LOSS when no verb of the ledger writes such an entry.
absl::Status CheckEntry(const StoredEntry& stored, const std::string& population);

absl::StatusOr<std::vector<StoredEntry>> LoadEntries(Transaction& transaction, absl::string_view where_and_order,
                                                     const std::vector<Value>& parameters);
// The same without `entry.event`.
absl::StatusOr<std::vector<StoredEntry>> LoadUnparsedEntries(Transaction& transaction,
                                                             absl::string_view where_and_order,
                                                             const std::vector<Value>& parameters);
// A job's entries in any order, without `entry.event`, whose parsing takes longer than all the rest. DATA_LOSS when an
// entry's hash does not match its columns and the entry before it: a post or void thus repeats what was reserved.
absl::StatusOr<std::vector<StoredEntry>> LoadEntriesOfJob(Transaction& transaction, const std::string& population,
                                                          const std::string& job_name);
absl::StatusOr<std::vector<Row>> LoadEntryRows(Transaction& transaction, absl::string_view where_and_order,
                                               const std::vector<Value>& parameters);
absl::StatusOr<StoredEntry> ReadEntry(const Row& row);

// Covers the previous hash and every column as stored, each with its length.
std::string EntryHash(const std::string& population, const std::string& previous_hash, const v1::LedgerEntry& entry,
                      const std::string& event_text);

absl::Status CorruptBudget(absl::string_view what, const std::string& population);

}  // namespace dpar

#endif  // DPAR_SERVER_LEDGER_ENTRIES_H_
