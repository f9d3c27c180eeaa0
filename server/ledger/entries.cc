#include "server/ledger/entries.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

constexpr absl::string_view kEntryColumns =
    "sequence, time, kind, COALESCE(job, ''), actor, units, epsilon, delta, event, reason, attempt, hash";

absl::StatusOr<StoredEntry> ReadEntry(const Row& row) {
  StoredEntry stored;
  v1::LedgerEntry& entry = stored.entry;
  RowReader reader(row);
  entry.set_sequence(reader.Int());
  *entry.mutable_time() = ToTimestamp(reader.Int());
  entry.set_kind(static_cast<v1::LedgerEntry::Kind>(reader.Int()));
  entry.set_job(reader.Text());
  entry.set_actor(reader.Text());
  entry.set_units(reader.Int());
  entry.set_epsilon(reader.Real());
  entry.set_delta(reader.Real());
  stored.event_text = reader.Text();
  entry.set_reason(reader.Text());
  entry.set_attempt(static_cast<int32_t>(reader.Int()));
  entry.set_hash(reader.Text());
  DPAR_RETURN_IF_ERROR(reader.status());
  if (!stored.event_text.empty()) {
    DPAR_RETURN_IF_ERROR(TextToMessage(stored.event_text, *entry.mutable_event()));
  }
  return stored;
}

}  // namespace

absl::Status CorruptBudget(absl::string_view what, const std::string& budget_id) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, what, {{"resource", budget_id}});
}

absl::StatusOr<Account> LoadAccount(Transaction& transaction, const std::string& budget_id) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query("SELECT cap_epsilon, cap_delta, renyi_order, cap_units, posted_units, reserved_units, "
                        "live_events, head_sequence, head_hash FROM budgets WHERE id = $1",
                        {budget_id}));
  if (rows.empty()) {
    return ResourceNotFound(budget_id);
  }
  RowReader reader(rows[0]);
  Account account;
  account.terms.cap_epsilon = reader.Real();
  account.terms.cap_delta = reader.Real();
  account.terms.order = reader.Int();
  account.terms.cap_units = reader.Int();
  account.posted_units = reader.Int();
  account.reserved_units = reader.Int();
  account.live_events = reader.Int();
  account.head_sequence = reader.Int();
  account.head_hash = reader.Text();
  DPAR_RETURN_IF_ERROR(reader.status());
  if (account.posted_units < 0 || account.reserved_units < 0 || account.live_events < 0 || account.terms.order < 2) {
    return CorruptBudget("a budget's sums are impossible", budget_id);
  }
  return account;
}

absl::StatusOr<std::vector<StoredEntry>> LoadEntries(Transaction& transaction, absl::string_view where_and_order,
                                                     const std::vector<Value>& parameters) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(absl::StrCat("SELECT ", kEntryColumns, " FROM ledger_entries WHERE ", where_and_order),
                        parameters));
  std::vector<StoredEntry> entries;
  entries.reserve(rows.size());
  for (const Row& row : rows) {
    DPAR_ASSIGN_OR_RETURN(StoredEntry entry, ReadEntry(row));
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string EntryHash(const std::string& budget_id, const std::string& previous_hash, const v1::LedgerEntry& entry,
                      const std::string& event_text) {
  std::string bytes;
  const auto add = [&bytes](absl::string_view field) { absl::StrAppend(&bytes, field.size(), ":", field, ";"); };
  add("dpar ledger entry 1");
  add(budget_id);
  add(previous_hash);
  add(absl::StrCat(entry.sequence()));
  add(absl::StrCat(ToMicroseconds(entry.time())));
  add(absl::StrCat(static_cast<int64_t>(entry.kind())));
  add(entry.job());
  add(entry.actor());
  add(absl::StrCat(entry.units()));
  add(absl::StrFormat("%.17g", entry.epsilon()));
  add(absl::StrFormat("%.17g", entry.delta()));
  add(event_text);
  add(entry.reason());
  add(absl::StrCat(entry.attempt()));
  return Sha256Hex(bytes);
}

}  // namespace dpar
