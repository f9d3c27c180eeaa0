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

// A lowered cap, and that of a merge, may be 0; a CLOSE entry has no units.
int64_t LeastUnits(v1::LedgerEntry::Kind kind) {
  return kind == v1::LedgerEntry::ADJUST || kind == v1::LedgerEntry::MERGE || kind == v1::LedgerEntry::CLOSE ? 0 : 1;
}

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

absl::StatusOr<Account> QueryAccount(Transaction& transaction, const std::string& population, absl::string_view lock) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(
          absl::StrCat("SELECT cap_epsilon, cap_delta, renyi_order, cap_units, posted_units, reserved_units, "
                       "live_events, head_sequence, head_hash, frozen_reason, closed_reason, merged_into, "
                       "COALESCE(max_degree, 0), node_total FROM populations WHERE name = $1",
                       lock),
          {population}));
  if (rows.empty()) {
    return ResourceNotFound(population);
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
  account.closed_reason = reader.Text();
  account.merged_into = reader.Text();
  account.max_degree = reader.Int();
  account.node_total = reader.Int();
  DPAR_RETURN_IF_ERROR(reader.status());
  DPAR_RETURN_IF_ERROR(CheckAccount(account, population));
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

absl::Status CheckEntry(const StoredEntry& stored, const std::string& population) {
  const v1::LedgerEntry& entry = stored.entry;
  const v1::LedgerEntry::Kind kind = entry.kind();
  const bool has_job = kind == v1::LedgerEntry::RESERVE || kind == v1::LedgerEntry::INHERIT || IsResolution(kind);
  const bool has_reason = !entry.reason().empty();
  const bool needs_reason = kind != v1::LedgerEntry::RESERVE && kind != v1::LedgerEntry::POST;
  const bool possible = v1::LedgerEntry::Kind_IsValid(kind) && kind != v1::LedgerEntry::KIND_UNSPECIFIED &&
                        entry.sequence() > 0 && entry.units() >= LeastUnits(kind) && entry.units() <= kMaxUnits &&
                        std::isfinite(entry.epsilon()) && entry.epsilon() >= 0 && entry.delta() >= 0 &&
                        entry.delta() < 1 && entry.attempt() >= 0 && !entry.actor().empty() &&
                        entry.job().empty() == !has_job && has_reason == needs_reason &&
                        stored.event_text.empty() == !has_job;
  return possible ? absl::OkStatus() : CorruptBudget("a ledger entry is none that could have been written", population);
}

absl::Status CorruptBudget(absl::string_view what, const std::string& population) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, what, {{"resource", population}});
}

absl::StatusOr<Account> LoadAccount(Transaction& transaction, const std::string& population) {
  return QueryAccount(transaction, population, "");
}

absl::StatusOr<Account> LockAccount(Transaction& transaction, const std::string& population) {
  return QueryAccount(transaction, population, transaction.for_update());
}

absl::Status CheckAccount(const Account& account, const std::string& population) {
  const BudgetTerms& terms = account.terms;
  const bool possible = terms.cap_epsilon > 0 && std::isfinite(terms.cap_epsilon) && terms.cap_delta > 0 &&
                        terms.cap_delta < 1 && terms.order >= kMinOrder && terms.order <= kMaxOrder &&
                        terms.cap_units >= 0 && account.posted_units >= 0 && account.posted_units <= kMaxUnits &&
                        account.reserved_units >= 0 && account.reserved_units <= kMaxUnits &&
                        account.live_events >= 0 && (account.live_events > 0 || account.reserved_units == 0) &&
                        account.head_sequence >= 0 && (account.head_sequence == 0) == account.head_hash.empty() &&
                        (account.merged_into.empty() || !account.closed_reason.empty());
  return possible ? absl::OkStatus() : CorruptBudget("a budget's sums are impossible", population);
}

absl::StatusOr<std::vector<Row>> LoadEntryRows(Transaction& transaction, absl::string_view where_and_order,
                                               const std::vector<Value>& parameters) {
  return transaction.Query(absl::StrCat("SELECT ", kEntryColumns, " FROM ledger_entries WHERE ", where_and_order),
                           parameters);
}

absl::StatusOr<std::vector<StoredEntry>> LoadEntriesOfJob(Transaction& transaction, const std::string& population,
                                                          const std::string& job_name) {
  // No ORDER BY: ordering by sequence makes SQLite read all of the budget's entries. The entry before is found by ORDER
  // BY and LIMIT: by its number, PostgreSQL without statistics reads all of them.
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(
          absl::StrCat("SELECT ", kEntryColumns,
                       ", COALESCE((SELECT before.hash FROM ledger_entries before WHERE before.population = $1 AND "
                       "before.sequence < ledger_entries.sequence ORDER BY before.sequence DESC LIMIT 1), '') "
                       "FROM ledger_entries WHERE population = $1 AND job = $2"),
          {population, job_name}));
  std::vector<StoredEntry> entries;
  for (const Row& row : rows) {
    RowReader reader(row);
    DPAR_ASSIGN_OR_RETURN(StoredEntry stored, ReadColumns(reader));
    const std::string previous_hash = reader.Text();
    DPAR_RETURN_IF_ERROR(reader.status());
    if (EntryHash(population, previous_hash, stored.entry, stored.event_text) != stored.entry.hash()) {
      return CorruptBudget("a ledger entry was altered after it was written", population);
    }
    entries.push_back(std::move(stored));
  }
  return entries;
}

absl::StatusOr<std::vector<StoredEntry>> LoadUnparsedEntries(Transaction& transaction,
                                                             absl::string_view where_and_order,
                                                             const std::vector<Value>& parameters) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows, LoadEntryRows(transaction, where_and_order, parameters));
  std::vector<StoredEntry> entries;
  entries.reserve(rows.size());
  for (const Row& row : rows) {
    RowReader reader(row);
    DPAR_ASSIGN_OR_RETURN(StoredEntry entry, ReadColumns(reader));
    entries.push_back(std::move(entry));
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

absl::StatusOr<v1::LedgerEntry> Append(Transaction& transaction, const std::string& population, Account& account,
                                       StoredEntry stored, const EntryContext& context) {
  v1::LedgerEntry& entry = stored.entry;
  const std::string& event_text = stored.event_text;
  const int64_t time = absl::ToUnixMicros(context.time);
  entry.set_sequence(account.head_sequence + 1);
  *entry.mutable_time() = ToTimestamp(time);
  entry.set_actor(context.actor);
  entry.set_hash(EntryHash(population, account.head_hash, entry, event_text));
  account.head_sequence = entry.sequence();
  account.head_hash = entry.hash();
  DPAR_RETURN_IF_ERROR(CheckEntry(stored, population));
  DPAR_RETURN_IF_ERROR(CheckAccount(account, population));
  DPAR_RETURN_IF_ERROR(transaction.ExecuteOne(
      "INSERT INTO ledger_entries (population, sequence, time, kind, job, actor, units, epsilon, delta, event, reason, "
      "attempt, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
      {population, entry.sequence(), time, int64_t{entry.kind()}, TextOrNull(entry.job()), entry.actor(), entry.units(),
       entry.epsilon(), entry.delta(), event_text, entry.reason(), int64_t{entry.attempt()}, entry.hash()},
      CorruptBudget("a ledger entry was not written", population)));
  DPAR_RETURN_IF_ERROR(transaction.ExecuteOne(
      "UPDATE populations SET cap_epsilon = $2, cap_delta = $3, cap_units = $4, posted_units = $5, "
      "reserved_units = $6, live_events = $7, head_sequence = $8, head_hash = $9, closed_reason = $10, "
      "merged_into = $11 WHERE name = $1 AND head_sequence + 1 = $8 AND merged_into = ''",
      {population, account.terms.cap_epsilon, account.terms.cap_delta, account.terms.cap_units, account.posted_units,
       account.reserved_units, account.live_events, account.head_sequence, account.head_hash, account.closed_reason,
       account.merged_into},
      CorruptBudget("a budget changed while it was written", population)));
  return std::move(entry);
}

StoredEntry CapEntry(v1::LedgerEntry::Kind kind, const BudgetTerms& terms, const std::string& reason) {
  StoredEntry stored;
  stored.entry.set_kind(kind);
  stored.entry.set_units(terms.cap_units);
  stored.entry.set_epsilon(terms.cap_epsilon);
  stored.entry.set_delta(terms.cap_delta);
  stored.entry.set_reason(reason);
  return stored;
}

// Literals, as in the index that holds exactly these entries.
absl::StatusOr<int64_t> CountOpenedVoids(Transaction& transaction, const std::string& population) {
  static_assert(v1::LedgerEntry::VOID == 4 && v1::LedgerEntry::MERGE == 7);
  return transaction.QueryInt(
      "SELECT CAST(COALESCE(SUM(CASE WHEN kind = 4 THEN 1 ELSE attempt END), 0) AS BIGINT) FROM ledger_entries WHERE "
      "population = $1 AND kind IN (4, 7) AND attempt > 0",
      {population});
}

std::string EntryHash(const std::string& population, const std::string& previous_hash, const v1::LedgerEntry& entry,
                      const std::string& event_text) {
  return ChainedEntryHash({.population = population,
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
