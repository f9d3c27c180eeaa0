// One SQL text for two engines. Statements use $1, $2, ... for parameters, which SQLite and PostgreSQL both take, and
// only what both understand (BIGINT, TEXT, DOUBLE PRECISION, ON CONFLICT, RETURNING).
//
// Why a thin layer over the C libraries and not SOCI, which reaches both: the ledger needs to know exactly which errors
// are worth a retry (SQLITE_BUSY, SQLSTATE 40001), must never lose the low half of a 64-bit sum (SOCI reads an SQLite
// expression as a 32-bit integer) or the tail of a text, and must choose how a transaction begins (BEGIN IMMEDIATE,
// SERIALIZABLE). Wrapping SOCI until it does all that is more code than the two engines.
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

// What runs inside a transaction.
class Transaction {
 public:
  Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  virtual ~Transaction() = default;

  // Runs one statement. A violated constraint is ALREADY_EXISTS; a full disk or a lost server UNAVAILABLE.
  virtual absl::StatusOr<std::vector<Row>> Query(absl::string_view sql, const std::vector<Value>& parameters) = 0;
  // Runs one statement and returns how many rows it changed.
  virtual absl::StatusOr<int64_t> Execute(absl::string_view sql, const std::vector<Value>& parameters) = 0;
};

// A store. Safe to use from many threads.
class Database {
 public:
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  virtual ~Database() = default;

  // Runs `body` in a serialisable transaction: committed durably when it returns OK, rolled back otherwise. `body` may
  // run again after a conflict, so it must not have effects of its own.
  virtual absl::Status Write(const std::function<absl::Status(Transaction&)>& body) = 0;
  // The same for reading: one consistent snapshot.
  virtual absl::Status Read(const std::function<absl::Status(Transaction&)>& body) = 0;
};

// Opens (or makes) an SQLite database: WAL, synchronous=FULL, foreign keys on.
absl::StatusOr<std::unique_ptr<Database>> OpenSqlite(const std::string& path);

// Brings the schema to the present version; refuses one that is newer than this program.
absl::Status Migrate(Database& database);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_DATABASE_H_
