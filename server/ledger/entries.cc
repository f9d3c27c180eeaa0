#include "server/ledger/entries.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/certificate/ledger_entry.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

constexpr absl::string_view kEntryColumns =
    "sequence, time, kind, COALESCE(job, ''), actor, units, epsilon, delta, event, reason, attempt, hash";

bool IsResolution(v1::LedgerEntry::Kind kind) { return kind == v1::LedgerEntry::POST || kind == v1::LedgerEntry::VOID; }

absl::StatusOr<StoredEntry> ReadColumns(RowReader& reader) {
  StoredEntry stored;
  v1::LedgerEntry& entry = stored.entry;
  entry.set_sequence(reader.Int());
  *entry.mutable_time() = ToTimestamp(reader.Int());
  entry.set_kind(static_cast<v1::LedgerEntry::Kind>(reader.Int32()));
  entry.set_job(reader.Text());
  entry.set_actor(reader.Text());
  entry.set_units(reader.Int());
  entry.set_epsilon(reader.Real());
  entry.set_delta(reader.Real());
  stored.event_text = reader.Text();
  entry.set_reason(reader.Text());
  entry.set_attempt(reader.Int32());
  entry.set_hash(reader.Text());
  DPAR_RETURN_IF_ERROR(reader.status());
  DPAR_RETURN_IF_ERROR(CheckEntry(stored, ""));
  return stored;
}

absl::StatusOr<Account> QueryAccount(Transaction& transaction, const std::string& budget_id, absl::string_view lock) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(
          absl::StrCat("SELECT cap_epsilon, cap_delta, renyi_order, cap_units, posted_units, reserved_units, "
                       "live_events, head_sequence, head_hash, frozen_reason, COALESCE(max_degree, 0) FROM budgets "
                       "WHERE id = $1",
                       lock),
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
  account.frozen_reason = reader.Text();
  account.max_degree = reader.Int();
  DPAR_RETURN_IF_ERROR(reader.status());
  DPAR_RETURN_IF_ERROR(CheckAccount(account, budget_id));
  return account;
}

}  // namespace

absl::StatusOr<StoredEntry> ReadEntry(const Row& row) {
  RowReader reader(row);
  DPAR_ASSIGN_OR_RETURN(StoredEntry stored, ReadColumns(reader));
  if (!stored.event_text.empty()) {
    DPAR_RETURN_IF_ERROR(TextToMessage(stored.event_text, *stored.entry.mutable_event()));
  }
  return stored;
}

absl::Status CheckEntry(const StoredEntry& stored, const std::string& budget_id) {
  const v1::LedgerEntry& entry = stored.entry;
  const v1::LedgerEntry::Kind kind = entry.kind();
  const bool has_job = kind == v1::LedgerEntry::RESERVE || IsResolution(kind);
  const bool has_reason = !entry.reason().empty();
  const bool needs_reason = kind != v1::LedgerEntry::RESERVE && kind != v1::LedgerEntry::POST;
  const bool possible = v1::LedgerEntry::Kind_IsValid(kind) && kind != v1::LedgerEntry::KIND_UNSPECIFIED &&
                        entry.sequence() > 0 && entry.units() >= (kind == v1::LedgerEntry::ADJUST ? 0 : 1) &&
                        entry.units() <= kMaxUnits && std::isfinite(entry.epsilon()) && entry.epsilon() >= 0 &&
                        entry.delta() >= 0 && entry.delta() < 1 && entry.attempt() >= 0 && !entry.actor().empty() &&
                        entry.job().empty() == !has_job && has_reason == needs_reason &&
                        stored.event_text.empty() == !has_job;
  return possible ? absl::OkStatus() : CorruptBudget("a ledger entry is none that could have been written", budget_id);
}

absl::Status CorruptBudget(absl::string_view what, const std::string& budget_id) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, what, {{"resource", budget_id}});
}

absl::StatusOr<Account> LoadAccount(Transaction& transaction, const std::string& budget_id) {
  return QueryAccount(transaction, budget_id, "");
}

absl::StatusOr<Account> LockAccount(Transaction& transaction, const std::string& budget_id) {
  return QueryAccount(transaction, budget_id, transaction.for_update());
}

absl::Status CheckAccount(const Account& account, const std::string& budget_id) {
  const BudgetTerms& terms = account.terms;
  const bool possible = terms.cap_epsilon > 0 && std::isfinite(terms.cap_epsilon) && terms.cap_delta > 0 &&
                        terms.cap_delta < 1 && terms.order >= kMinOrder && terms.order <= kMaxOrder &&
                        terms.cap_units >= 0 && account.posted_units >= 0 && account.posted_units <= kMaxUnits &&
                        account.reserved_units >= 0 && account.reserved_units <= kMaxUnits &&
                        account.live_events >= 0 && (account.live_events > 0 || account.reserved_units == 0) &&
                        account.head_sequence >= 0 && (account.head_sequence == 0) == account.head_hash.empty();
  return possible ? absl::OkStatus() : CorruptBudget("a budget's sums are impossible", budget_id);
}

absl::StatusOr<std::vector<Row>> LoadEntryRows(Transaction& transaction, absl::string_view where_and_order,
                                               const std::vector<Value>& parameters) {
  return transaction.Query(absl::StrCat("SELECT ", kEntryColumns, " FROM ledger_entries WHERE ", where_and_order),
                           parameters);
}

absl::StatusOr<std::vector<StoredEntry>> LoadEntriesOfJob(Transaction& transaction, const std::string& budget_id,
                                                          const std::string& job_name) {
  // No ORDER BY: ordering by sequence makes SQLite read all of the budget's entries. The entry before is found by ORDER
  // BY and LIMIT: by its number, PostgreSQL without statistics reads all of them.
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(
          absl::StrCat("SELECT ", kEntryColumns,
                       ", COALESCE((SELECT before.hash FROM ledger_entries before WHERE before.budget_id = $1 AND "
                       "before.sequence < ledger_entries.sequence ORDER BY before.sequence DESC LIMIT 1), '') "
                       "FROM ledger_entries WHERE budget_id = $1 AND job = $2"),
          {budget_id, job_name}));
  std::vector<StoredEntry> entries;
  for (const Row& row : rows) {
    RowReader reader(row);
    DPAR_ASSIGN_OR_RETURN(StoredEntry stored, ReadColumns(reader));
    const std::string previous_hash = reader.Text();
    DPAR_RETURN_IF_ERROR(reader.status());
    if (EntryHash(budget_id, previous_hash, stored.entry, stored.event_text) != stored.entry.hash()) {
      return CorruptBudget("a ledger entry was altered after it was written", budget_id);
    }
    entries.push_back(std::move(stored));
  }
  return entries;
}

absl::StatusOr<std::vector<StoredEntry>> LoadEntries(Transaction& transaction, absl::string_view where_and_order,
                                                     const std::vector<Value>& parameters) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, LoadEntryRows(transaction, where_and_order, parameters));
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
  return ChainedEntryHash({.budget_id = budget_id,
                           .previous_hash = previous_hash,
                           .sequence = entry.sequence(),
                           .time_microseconds = ToMicroseconds(entry.time()),
                           .kind = entry.kind(),
                           .job = entry.job(),
                           .actor = entry.actor(),
                           .units = entry.units(),
                           .epsilon = entry.epsilon(),
                           .delta = entry.delta(),
                           .event_text = event_text,
                           .reason = entry.reason(),
                           .attempt = entry.attempt()});
}

}  // namespace dpar
