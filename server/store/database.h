// One SQL text for two engines. Statements use $1, $2, ... for parameters, which SQLite and PostgreSQL both take, and
// only what both understand (BIGINT, TEXT, DOUBLE PRECISION, ON CONFLICT, RETURNING).
//
// Why a thin layer over the C libraries and not SOCI, which reaches both: the ledger needs to know exactly which errors
// are worth a retry (SQLITE_BUSY, SQLSTATE 40001), must never lose the low half of a 64-bit sum (SOCI reads an SQLite
// expression as a 32-bit integer) or the tail of a text, and must choose how a transaction begins (BEGIN IMMEDIATE,
// READ COMMITTED). Wrapping SOCI until it does all that is more code than the two engines.
//
// How transactions that write stay apart. SQLite has one writer at a time. On PostgreSQL, two-phase locking: a
// transaction that decides by what it reads first locks the row that guards it (Lock, or for_update where it reads the
// guard itself), every later statement sees what was committed until then, and the lock lasts until the commit. So
// transactions that share a guard run one after the other, and those that share none run side by side. Serialisable
// snapshots would need no locks, but track index pages: reservations on different budgets of a small table then abort
// one another, most of the time with 64 clients. Guards, in the order in which they are taken: tenant (its uploads and
// datasets), dataset (its jobs), job, budget (its ledger).
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

// A result row.
using Row = std::vector<Value>;

// Reads a row's columns from left to right and checks the type of each. The first mismatch sticks: status() is then
// DATA_LOSS / STORE_CORRUPT, and every value read after it is empty.
class RowReader {
 public:
  explicit RowReader(const Row& row) : row_(row) {}

  int64_t Int();
  // For enumerations and small counts: a mismatch also when the value needs more bits.
  int32_t Int32();
  double Real();
  std::string Text();
  std::optional<int64_t> OptionalInt();
  // OK when every column so far had its type.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  const Value* Next();
  void Mismatch();

  const Row& row_;
  size_t next_ = 0;
  absl::Status status_;
};

// The rows that guard what transactions decide by.
enum class Guard { kTenant, kDataset, kJob, kBudget };

// What runs inside a transaction.
class Transaction {
 public:
  Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  virtual ~Transaction() = default;

  // Runs one statement. A violated constraint is ALREADY_EXISTS; a full disk or a lost server UNAVAILABLE; parameters
  // as in CheckParameters.
  virtual absl::StatusOr<std::vector<Row>> Query(absl::string_view sql, const std::vector<Value>& parameters) = 0;
  // The same for a statement whose result is one integer, as a count; DATA_LOSS when it is something else.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql, const std::vector<Value>& parameters);
  // The same for a statement whose result is one column of texts.
  absl::StatusOr<std::vector<std::string>> QueryTexts(absl::string_view sql, const std::vector<Value>& parameters);
  // The same for a statement that ends in a list of names, for which it has "IN ($)". Rows come in any order.
  absl::StatusOr<std::vector<Row>> QueryNames(absl::string_view sql, const std::vector<std::string>& names);
  // Runs one statement and returns how many rows it changed.
  virtual absl::StatusOr<int64_t> Execute(absl::string_view sql, const std::vector<Value>& parameters) = 0;
  // Runs one statement that changes exactly one row; `otherwise` when it changed another number.
  absl::Status ExecuteOne(absl::string_view sql, const std::vector<Value>& parameters, const absl::Status& otherwise);
  // Waits until no other transaction holds the row of that name (a budget's id), and holds it until this one ends. A
  // row that is not there is no error.
  virtual absl::Status Lock(Guard guard, const std::string& name) = 0;
  // What a SELECT of one guard by its name ends with, which then does what Lock does, and reads the row as it is once
  // nobody else holds it.
  [[nodiscard]] virtual absl::string_view for_update() const = 0;
  // What a SELECT ends with that takes only rows which no other transaction holds, and holds them.
  [[nodiscard]] virtual absl::string_view skip_locked() const = 0;
  // Tells whoever listens, in every process that shares the store, once this transaction is committed. A listener may
  // miss a notice: it shortens a wait, and nothing else may depend on it.
  virtual absl::Status Notify(const std::string& notice) = 0;
};

// A name that one caller holds, in all processes that share the store, until this is destroyed or the process ends.
class NameHold {
 public:
  NameHold() = default;
  NameHold(const NameHold&) = delete;
  NameHold& operator=(const NameHold&) = delete;
  virtual ~NameHold() = default;
};

// A store. Safe to use from many threads.
class Database {
 public:
  using Body = std::function<absl::Status(Transaction&)>;
  using Listener = std::function<void(const std::string& notice)>;

  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  virtual ~Database() = default;

  // Runs `body` in a transaction: committed durably when it returns OK, rolled back otherwise. `body` may run again
  // after a deadlock, so it must not have effects of its own. UNAVAILABLE when the outcome of the commit is unknown,
  // too: whoever tries again looks first at what is there.
  virtual absl::Status Write(const Body& body) = 0;
  // The same for reading: one consistent snapshot.
  virtual absl::Status Read(const Body& body) = 0;
  // UNAVAILABLE when the name stays taken for longer than `patience`.
  virtual absl::StatusOr<std::unique_ptr<NameHold>> Hold(const std::string& name, absl::Duration patience) = 0;
  // Calls `listener` with every notice from now on, and with an empty one when some may have been missed; from any
  // thread, one call at a time. Nothing is called once this returns for an empty listener.
  virtual void Listen(Listener listener) = 0;
  // Whether other processes may use the store at the same time.
  [[nodiscard]] virtual bool shared() const = 0;
};

// Opens (or makes) an SQLite database: WAL, synchronous=FULL, foreign keys on.
absl::StatusOr<std::unique_ptr<Database>> OpenSqlite(const std::string& path);

// Opens a PostgreSQL database by its connection URI (postgresql://...). UNAVAILABLE when it cannot be reached.
absl::StatusOr<std::unique_ptr<Database>> OpenPostgres(const std::string& uri);

// INVALID_ARGUMENT for a text with a NUL byte and a number that is not finite: not every engine gives those back.
absl::Status CheckParameters(const std::vector<Value>& parameters);

inline constexpr int64_t kSchemaVersion = 1;

// Brings the schema to the present version; refuses one that is newer than this program.
absl::Status Migrate(Database& database);
// What brings a store from one version to the next: statements for both engines, and those for PostgreSQL alone.
struct SchemaStep {
  absl::string_view both;
  absl::string_view postgres;
};
// Migrate with a list of steps, of which each store runs those that it lacks.
absl::Status MigrateBy(Database& database, absl::Span<const SchemaStep> steps);
// OK when the store has the present version, without changing it; FAILED_PRECONDITION otherwise.
absl::Status CheckSchema(Transaction& transaction);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_DATABASE_H_
