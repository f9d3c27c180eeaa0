// The embedded engine: one writing connection, and as many reading ones as there are concurrent readers. In WAL mode
// readers see the last commit and never wait for the writer. One process has the store to itself.
//
// Group commit: transactions that arrive during a commit, which waits for the disk, are committed together. One of
// their threads runs all bodies, each in a savepoint; each sees the effects of those before it, and all are answered
// after the common commit. If it fails, all fail, also refused ones: the reason may never have happened.
#include <sqlite3.h>

#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/mutex.h"
#include "core/status_macros.h"
#include "server/store/busy_names.h"
#include "server/store/database.h"
#include "server/store/unavailable.h"

namespace dpar {
namespace {

constexpr int kBusyTimeoutMilliseconds = 10'000;
// Idle connections kept for reads, and the cache of each: a burst of readers must not leave much behind.
constexpr size_t kMaxIdleReaders = 16;
constexpr int kReaderCacheKibibytes = 2'000;
// Pages in the log before a checkpoint (16 MiB): more changes of a page merge. A reservation writes about ten.
constexpr int kCheckpointPages = 4096;
constexpr int kWriterCacheKibibytes = 65'536;

absl::Status SqliteError(sqlite3* connection, int code) {
  const std::string detail = absl::StrCat("SQLite: ", sqlite3_errmsg(connection));
  switch (code & 0xFF) {
    case SQLITE_CONSTRAINT:
      return MakeError(absl::StatusCode::kAlreadyExists, v1::RESOURCE_EXISTS, detail);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
      return StoreUnavailable(detail);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, detail);
    default:
      return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, detail);
  }
}

int Bind(sqlite3_stmt* statement, int index, const Value& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    return sqlite3_bind_int64(statement, index, *integer);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return sqlite3_bind_double(statement, index, *real);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    // Not copied: bindings are cleared before the call returns.
    return sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  return sqlite3_bind_null(statement, index);
}

Value Column(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return Value(std::in_place_type<int64_t>, sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_NULL:
      return std::monostate{};
    default: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement, column)));
    }
  }
}

struct Prepared {
  std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement{nullptr, &sqlite3_finalize};
  std::vector<int> indexes;
};

// A connection and its prepared statements: a fixed set of texts, so none is dropped.
class Connection {
 public:
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path, int cache_kibibytes) {
    sqlite3* raw = nullptr;
    const int code =
        sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
    auto connection = std::make_unique<Connection>(raw);
    if (code != SQLITE_OK) {
      return SqliteError(raw, code);
    }
    sqlite3_extended_result_codes(raw, 1);
    sqlite3_busy_timeout(raw, kBusyTimeoutMilliseconds);
    DPAR_RETURN_IF_ERROR(connection->Exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON"));
    DPAR_RETURN_IF_ERROR(connection->Exec(absl::StrCat("PRAGMA wal_autocheckpoint=", kCheckpointPages).c_str()));
    DPAR_RETURN_IF_ERROR(connection->Exec(absl::StrCat("PRAGMA cache_size=-", cache_kibibytes).c_str()));
    return connection;
  }

  explicit Connection(sqlite3* raw) : raw_(raw, &sqlite3_close) {}

  [[nodiscard]] sqlite3* raw() const { return raw_.get(); }

  // For a statement without parameters or results, prepared on first use.
  absl::Status Run(absl::string_view sql) {
    DPAR_ASSIGN_OR_RETURN(const Prepared* const prepared, Prepare(sql, 0));
    const int code = sqlite3_step(prepared->statement.get());
    absl::Status status = code == SQLITE_DONE ? absl::OkStatus() : SqliteError(raw_.get(), code);
    sqlite3_reset(prepared->statement.get());
    return status;
  }

  absl::StatusOr<const Prepared*> Prepare(absl::string_view sql, size_t parameters) {
    auto found = statements_.find(sql);
    if (found == statements_.end()) {
      sqlite3_stmt* raw = nullptr;
      const int code = sqlite3_prepare_v3(raw_.get(), sql.data(), static_cast<int>(sql.size()),
                                          SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
      if (code != SQLITE_OK) {
        return SqliteError(raw_.get(), code);
      }
      found = statements_.try_emplace(std::string(sql)).first;
      found->second.statement.reset(raw);
    }
    Prepared& prepared = found->second;
    while (prepared.indexes.size() < parameters) {
      const std::string name = absl::StrCat("$", prepared.indexes.size() + 1);
      prepared.indexes.push_back(sqlite3_bind_parameter_index(prepared.statement.get(), name.c_str()));
    }
    return &prepared;
  }

 private:
  absl::Status Exec(const char* sql) {
    const int code = sqlite3_exec(raw_.get(), sql, nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? absl::OkStatus() : SqliteError(raw_.get(), code);
  }

  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> raw_;
  absl::flat_hash_map<std::string, Prepared> statements_;
};

class SqliteTransaction final : public Transaction {
 public:
  explicit SqliteTransaction(Connection& connection) : connection_(connection) {}

  absl::StatusOr<std::vector<Row>> Query(absl::string_view sql, const std::vector<Value>& parameters) override {
    DPAR_RETURN_IF_ERROR(CheckParameters(parameters));
    DPAR_ASSIGN_OR_RETURN(const Prepared* const prepared, connection_.Prepare(sql, parameters.size()));
    sqlite3_stmt* const statement = prepared->statement.get();
    const absl::Cleanup reset = [statement] {
      sqlite3_reset(statement);
      sqlite3_clear_bindings(statement);
    };
    int code = SQLITE_OK;
    for (size_t i = 0; code == SQLITE_OK && i < parameters.size(); ++i) {
      const int index = prepared->indexes[i];
      code = index == 0 ? SQLITE_OK : Bind(statement, index, parameters[i]);
    }
    if (code != SQLITE_OK) {
      return SqliteError(connection_.raw(), code);
    }
    std::vector<Row> rows;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      Row& row = rows.emplace_back();
      const int columns = sqlite3_column_count(statement);
      row.reserve(static_cast<size_t>(columns));
      for (int column = 0; column < columns; ++column) {
        row.push_back(Column(statement, column));
      }
    }
    if (code != SQLITE_DONE) {
      return SqliteError(connection_.raw(), code);
    }
    return rows;
  }

  absl::StatusOr<int64_t> Execute(absl::string_view sql, const std::vector<Value>& parameters) override {
    DPAR_RETURN_IF_ERROR(Query(sql, parameters).status());
    return sqlite3_changes64(connection_.raw());
  }

  // A writing transaction has the whole store to itself.
  absl::Status Lock(Guard /*guard*/, const std::string& /*name*/) override { return absl::OkStatus(); }
  [[nodiscard]] absl::string_view for_update() const override { return ""; }
  [[nodiscard]] absl::string_view skip_locked() const override { return ""; }

  absl::Status Notify(const std::string& notice) override {
    notices_.push_back(notice);
    return absl::OkStatus();
  }
  [[nodiscard]] std::vector<std::string> TakeNotices() { return std::move(notices_); }

 private:
  Connection& connection_;
  std::vector<std::string> notices_;
};

// Rolls back what is open, also when memory runs out. Ignores errors: the one that ended the transaction is reported.
class RollBackUnlessCommitted {
 public:
  explicit RollBackUnlessCommitted(Connection& connection) : connection_(connection) {}
  RollBackUnlessCommitted(const RollBackUnlessCommitted&) = delete;
  RollBackUnlessCommitted& operator=(const RollBackUnlessCommitted&) = delete;
  ~RollBackUnlessCommitted() {
    if (open()) {
      connection_.Run("ROLLBACK").IgnoreError();
    }
  }

  // False also when SQLite rolled back by itself after an error.
  [[nodiscard]] bool open() const { return sqlite3_get_autocommit(connection_.raw()) == 0; }

 private:
  Connection& connection_;
};

// A transaction that waits to be committed; its caller waits for `done`.
struct WriteTurn {
  explicit WriteTurn(const Database::Body& its_body) : body(its_body) {}

  const Database::Body& body;
  absl::Status status;
  std::exception_ptr thrown;  // by the body; its caller rethrows it
  std::vector<std::string> notices;
  bool done = false;
};

// Runs one body in a savepoint. An error is the savepoint's own, and ends the group.
absl::Status RunTurn(Connection& connection, const RollBackUnlessCommitted& whole, WriteTurn& turn) {
  DPAR_RETURN_IF_ERROR(connection.Run("SAVEPOINT turn"));
  SqliteTransaction transaction(connection);
  try {
    turn.status = turn.body(transaction);
  } catch (...) {
    turn.thrown = std::current_exception();
  }
  if (!whole.open()) {
    // One body's error rolled all back; the others did nothing wrong and may try again.
    return StoreUnavailable(absl::StrCat("SQLite rolled a group of transactions back: ", turn.status.message()));
  }
  if (turn.thrown != nullptr || !turn.status.ok()) {
    DPAR_RETURN_IF_ERROR(connection.Run("ROLLBACK TO turn"));
  } else {
    turn.notices = transaction.TakeNotices();
  }
  return connection.Run("RELEASE turn");
}

absl::Status RunRead(Connection& connection, const Database::Body& body) {
  DPAR_RETURN_IF_ERROR(connection.Run("BEGIN"));
  const RollBackUnlessCommitted roll_back(connection);
  SqliteTransaction transaction(connection);
  DPAR_RETURN_IF_ERROR(body(transaction));
  return connection.Run("COMMIT");
}

absl::Status RunGroup(Connection& connection, const std::vector<WriteTurn*>& group) {
  DPAR_RETURN_IF_ERROR(connection.Run("BEGIN IMMEDIATE"));
  const RollBackUnlessCommitted whole(connection);
  bool any = false;
  for (WriteTurn* const turn : group) {
    DPAR_RETURN_IF_ERROR(RunTurn(connection, whole, *turn));
    any = any || (turn->thrown == nullptr && turn->status.ok());
  }
  // Even an empty commit would wait for the disk.
  return any ? connection.Run("COMMIT") : absl::OkStatus();
}

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(std::string path, std::unique_ptr<Connection> writer)
      : path_(std::move(path)), writer_(std::move(writer)) {}

  absl::Status Write(const Body& body) override {
    WriteTurn turn(body);
    if (const std::vector<WriteTurn*> group = AwaitTurn(turn); !group.empty()) {
      Lead(group);
    }
    if (turn.thrown != nullptr) {
      std::rethrow_exception(turn.thrown);
    }
    DPAR_RETURN_IF_ERROR(turn.status);
    if (!turn.notices.empty()) {
      const MutexLock lock(&listener_mutex_);
      for (const std::string& notice : turn.notices) {
        if (listener_) {
          listener_(notice);
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Read(const Body& body) override {
    DPAR_ASSIGN_OR_RETURN(std::unique_ptr<Connection> reader, TakeReader());
    absl::Status status = RunRead(*reader, body);
    const MutexLock lock(&readers_mutex_);
    if (readers_.size() < kMaxIdleReaders) {
      readers_.push_back(std::move(reader));
    }
    return status;
  }

  absl::StatusOr<std::unique_ptr<NameHold>> Hold(const std::string& name, absl::Duration patience) override {
    return names_.Take(name, patience);
  }

  void Listen(Listener listener) override {
    const MutexLock lock(&listener_mutex_);
    listener_ = std::move(listener);
  }

  [[nodiscard]] bool shared() const override { return false; }

 private:
  // Waits until another thread has run this turn (empty), or this one must run all waiting turns, its own included.
  std::vector<WriteTurn*> AwaitTurn(WriteTurn& turn) ABSL_LOCKS_EXCLUDED(turns_mutex_) {
    const MutexLock lock(&turns_mutex_);
    waiting_.push_back(&turn);
    const auto called = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turns_mutex_) { return turn.done || !writing_; };
    turns_mutex_.Await(Condition(&called));
    if (turn.done) {
      return {};
    }
    writing_ = true;
    return std::exchange(waiting_, {});
  }

  void Lead(const std::vector<WriteTurn*>& group) ABSL_LOCKS_EXCLUDED(turns_mutex_) {
    absl::Status status;
    try {
      status = RunGroup(*writer_, group);
    } catch (const std::bad_alloc&) {
      status = out_of_memory_;
    }
    const MutexLock lock(&turns_mutex_);
    for (WriteTurn* const turn : group) {
      if (!status.ok()) {
        turn->status = status;
      }
      turn->done = true;
    }
    writing_ = false;
  }

  absl::StatusOr<std::unique_ptr<Connection>> TakeReader() {
    {
      const MutexLock lock(&readers_mutex_);
      if (!readers_.empty()) {
        std::unique_ptr<Connection> reader = std::move(readers_.back());
        readers_.pop_back();
        return reader;
      }
    }
    return Connection::Open(path_, kReaderCacheKibibytes);
  }

  const std::string path_;
  BusyNames names_;
  const std::unique_ptr<Connection> writer_;                               // of the thread that leads a group
  const absl::Status out_of_memory_ = StoreUnavailable("memory ran out");  // made while there is some
  Mutex turns_mutex_;
  std::vector<WriteTurn*> waiting_ ABSL_GUARDED_BY(turns_mutex_);
  bool writing_ ABSL_GUARDED_BY(turns_mutex_) = false;  // a thread leads a group
  Mutex readers_mutex_;
  std::vector<std::unique_ptr<Connection>> readers_ ABSL_GUARDED_BY(readers_mutex_);
  Mutex listener_mutex_;
  Listener listener_ ABSL_GUARDED_BY(listener_mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> OpenSqlite(const std::string& path) {
  DPAR_ASSIGN_OR_RETURN(std::unique_ptr<Connection> writer, Connection::Open(path, kWriterCacheKibibytes));
  return std::make_unique<SqliteDatabase>(path, std::move(writer));
}

}  // namespace dpar
