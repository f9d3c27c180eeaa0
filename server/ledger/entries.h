// The ledger's rows: what the rules of ledger.h and the check of verify_chain.cc both read.
#ifndef DPAR_SERVER_LEDGER_ENTRIES_H_
#define DPAR_SERVER_LEDGER_ENTRIES_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/privacy/budget.h"
#include "dpar/v1/budget.pb.h"
#include "server/store/database.h"

namespace dpar {

// The reason of an OPEN entry is this and the budget's order, so that the chain covers the order too.
inline constexpr absl::string_view kOrderPrefix = "order ";

// A budget's row: the cap, the cached sums, and where its chain ends.
struct Account {
  BudgetTerms terms;
  int64_t posted_units = 0;
  int64_t reserved_units = 0;
  int64_t live_events = 0;
  int64_t head_sequence = 0;
  std::string head_hash;

  [[nodiscard]] int64_t used_units() const { return posted_units + reserved_units; }
  [[nodiscard]] int64_t left_units() const { return std::max<int64_t>(0, terms.cap_units - used_units()); }
};

// NOT_FOUND when there is none; DATA_LOSS when its sums are impossible.
absl::StatusOr<Account> LoadAccount(Transaction& transaction, const std::string& budget_id);

// An entry with its event as it is stored, because the hash covers the stored text.
struct StoredEntry {
  v1::LedgerEntry entry;
  std::string event_text;
};

// Entries under a WHERE condition (with ORDER BY and LIMIT as needed).
absl::StatusOr<std::vector<StoredEntry>> LoadEntries(Transaction& transaction, absl::string_view where_and_order,
                                                     const std::vector<Value>& parameters);

// What an entry's hash covers: every column as it is stored, each with its length, after the hash before it.
std::string EntryHash(const std::string& budget_id, const std::string& previous_hash, const v1::LedgerEntry& entry,
                      const std::string& event_text);

// DATA_LOSS / STORE_CORRUPT for a budget.
absl::Status CorruptBudget(absl::string_view what, const std::string& budget_id);

}  // namespace dpar

#endif  // DPAR_SERVER_LEDGER_ENTRIES_H_
