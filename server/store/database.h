// One SQL text for two engines. Queries use $1, $2, ... and only what SQLite and PostgreSQL both understand (BIGINT,
// TEXT, DOUBLE PRECISION, ON CONFLICT, RETURNING).
//
// Why not SOCI: the ledger must know which errors to retry (SQLITE_BUSY, SQLSTATE 40001), must not lose the low half of
// a 64-bit sum (SOCI reads SQLite expressions as 32-bit integers) or the tail of a text, and must choose how a
// transaction begins (BEGIN IMMEDIATE, READ COMMITTED).
//
// Isolation. SQLite has one writer at a time. On PostgreSQL, two-phase locking: a transaction that decides by what it
// reads first locks the guard row (Lock, or for_update), later queries see what was committed until then, and the lock
// lasts until the commit. Transactions run in parallel unless they share a guard. Serialisable snapshots need no locks
// but track index pages: with 64 clients, reservations on different populations mostly abort each other. Lock order:
// tenant (uploads, datasets), dataset (jobs), job, population (ledger), two of these by name (merges).
#ifndef DPAR_SERVER_STORE_DATABASE_H_
#define DPAR_SERVER_STORE_DATABASE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace dpar {

using Value = std::variant<std::monostate, int64_t, double, std::string>;

using Row = std::vector<Value>;

// Reads columns from left to right. After a type mismatch, status() is DATA_LOSS / STORE_CORRUPT and values are empty.
class RowReader {
 public:
  explicit RowReader(const Row& row) : row_(row) {}

  int64_t Int();
  // A mismatch also when the value needs more bits.
  int32_t Int32();
  double Real();
  std::string Text();
  std::optional<int64_t> OptionalInt();
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  const Value* Next();
  void Mismatch();

  const Row& row_;
  size_t next_ = 0;
  absl::Status status_;
};

enum class Guard { kTenant, kDataset, kJob, kPopulation };

class Transaction {
 public:
  Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  virtual ~Transaction() = default;

  // ALREADY_EXISTS for a violated constraint, UNAVAILABLE for a full disk or a lost server; CheckParameters' errors.
  virtual absl::StatusOr<std::vector<Row>> Query(absl::string_view sql, const std::vector<Value>& parameters) = 0;
  // For one integer, such as a count; DATA_LOSS for any other result.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql, const std::vector<Value>& parameters);
  absl::StatusOr<std::vector<std::string>> QueryTexts(absl::string_view sql, const std::vector<Value>& parameters);
  // For a query that ends in "IN ($)", which stands for the names. Rows come in any order.
  absl::StatusOr<std::vector<Row>> QueryNames(absl::string_view sql, const std::vector<std::string>& names);
  virtual absl::StatusOr<int64_t> Execute(absl::string_view sql, const std::vector<Value>& parameters) = 0;
  // For a change of exactly one row; `otherwise` when it changed another number.
  absl::Status ExecuteOne(absl::string_view sql, const std::vector<Value>& parameters, const absl::Status& otherwise);
  // Waits for the row of that name (a population's, say) and holds it until this transaction ends. OK without such a
  // row.
  virtual absl::Status Lock(Guard guard, const std::string& name) = 0;
  // Suffix of a SELECT of one guard by name: locks the row as Lock does, then reads it.
  [[nodiscard]] virtual absl::string_view for_update() const = 0;
  // Suffix of a SELECT that takes, and locks, only rows that no other transaction holds.
  [[nodiscard]] virtual absl::string_view skip_locked() const = 0;
  // Tells listeners in all processes of the store after the commit. Notices can be lost: they only shorten waits.
  virtual absl::Status Notify(const std::string& notice) = 0;
};

// A name held among all processes that share the store, until destroyed or the process ends.
class NameHold {
 public:
  NameHold() = default;
  NameHold(const NameHold&) = delete;
  NameHold& operator=(const NameHold&) = delete;
  virtual ~NameHold() = default;
};

// Thread-safe.
class Database {
 public:
  using Body = std::function<absl::Status(Transaction&)>;
  using Listener = std::function<void(const std::string& notice)>;

  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  virtual ~Database() = default;

  // Commits durably when `body` returns OK, else rolls back. `body` may run again after a deadlock, so it must have no
  // other effects. UNAVAILABLE also when the commit's outcome is unknown: check before a retry.
  virtual absl::Status Write(const Body& body) = 0;
  // One consistent snapshot.
  virtual absl::Status Read(const Body& body) = 0;
  // UNAVAILABLE when the name stays taken for longer than `patience`.
  virtual absl::StatusOr<std::unique_ptr<NameHold>> Hold(const std::string& name, absl::Duration patience) = 0;
  // Calls `listener` with every notice, and with an empty one when some may have been missed; from any thread, one call
  // at a time. After Listen with an empty listener returns, nothing is called.
  virtual void Listen(Listener listener) = 0;
  [[nodiscard]] virtual bool shared() const = 0;
};

// Opens or makes it: WAL, synchronous=FULL, foreign keys on.
absl::StatusOr<std::unique_ptr<Database>> OpenSqlite(const std::string& path);

// By URI (postgresql://...). UNAVAILABLE when it cannot be reached.
absl::StatusOr<std::unique_ptr<Database>> OpenPostgres(const std::string& uri);

// INVALID_ARGUMENT for a NUL byte in a text or a number that is not finite: not every engine returns those.
absl::Status CheckParameters(const std::vector<Value>& parameters);

inline constexpr int64_t kSchemaVersion = 1;

// Brings the schema to this program's version; refuses a newer one.
absl::Status Migrate(Database& database);
// From one version to the next: statements for both engines, and for PostgreSQL alone.
struct SchemaStep {
  absl::string_view both;
  absl::string_view postgres;
};
// Runs the steps that the store lacks.
absl::Status MigrateBy(Database& database, absl::Span<const SchemaStep> steps);
// Changes nothing. FAILED_PRECONDITION unless the store has the present version.
absl::Status CheckSchema(Transaction& transaction);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_DATABASE_H_
