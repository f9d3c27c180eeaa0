// The embedded engine: one connection that writes, and as many that read as there are readers at once. In WAL mode
// readers see the last commit and never wait for the writer.
#include <sqlite3.h>

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/store/database.h"

namespace dpar {
namespace {

constexpr int kBusyTimeoutMilliseconds = 10'000;

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
      return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, detail);
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
    return sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
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

using Connection = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

class SqliteTransaction final : public Transaction {
 public:
  explicit SqliteTransaction(sqlite3* connection) : connection_(connection) {}

  absl::StatusOr<std::vector<Row>> Query(absl::string_view sql, const std::vector<Value>& parameters) override {
    sqlite3_stmt* statement = nullptr;
    int code = sqlite3_prepare_v2(connection_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
    const absl::Cleanup finalize = [statement] { sqlite3_finalize(statement); };
    for (size_t i = 0; code == SQLITE_OK && i < parameters.size(); ++i) {
      const int index = sqlite3_bind_parameter_index(statement, absl::StrCat("$", i + 1).c_str());
      code = index == 0 ? SQLITE_OK : Bind(statement, index, parameters[i]);
    }
    if (code != SQLITE_OK) {
      return SqliteError(connection_, code);
    }
    std::vector<Row> rows;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
      Row& row = rows.emplace_back();
      const int columns = sqlite3_column_count(statement);
      for (int column = 0; column < columns; ++column) {
        row.push_back(Column(statement, column));
      }
    }
    if (code != SQLITE_DONE) {
      return SqliteError(connection_, code);
    }
    return rows;
  }

  absl::StatusOr<int64_t> Execute(absl::string_view sql, const std::vector<Value>& parameters) override {
    DPAR_RETURN_IF_ERROR(Query(sql, parameters).status());
    return sqlite3_changes64(connection_);
  }

 private:
  sqlite3* connection_;
};

absl::Status Run(sqlite3* connection, const char* sql) {
  const int code = sqlite3_exec(connection, sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : SqliteError(connection, code);
}

absl::StatusOr<Connection> Connect(const std::string& path) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Connection connection(raw, &sqlite3_close);
  if (code != SQLITE_OK) {
    return SqliteError(raw, code);
  }
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyTimeoutMilliseconds);
  DPAR_RETURN_IF_ERROR(Run(raw, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON"));
  return connection;
}

// Runs `body` between `begin` and COMMIT, or rolls back.
absl::Status RunTransaction(sqlite3* connection, const char* begin,
                            const std::function<absl::Status(Transaction&)>& body) {
  DPAR_RETURN_IF_ERROR(Run(connection, begin));
  SqliteTransaction transaction(connection);
  absl::Status status = body(transaction);
  if (status.ok()) {
    status = Run(connection, "COMMIT");
  }
  if (!status.ok() && sqlite3_get_autocommit(connection) == 0) {
    // The error that ended the transaction is the one to report; closing it cannot fail in a way that keeps it open.
    Run(connection, "ROLLBACK").IgnoreError();
  }
  return status;
}

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(std::string path, Connection writer) : path_(std::move(path)), writer_(std::move(writer)) {}

  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) override {
    const absl::MutexLock lock(&writer_mutex_);
    return RunTransaction(writer_.get(), "BEGIN IMMEDIATE", body);
  }

  absl::Status Read(const std::function<absl::Status(Transaction&)>& body) override {
    DPAR_ASSIGN_OR_RETURN(Connection reader, TakeReader());
    absl::Status status = RunTransaction(reader.get(), "BEGIN", body);
    const absl::MutexLock lock(&readers_mutex_);
    readers_.push_back(std::move(reader));
    return status;
  }

 private:
  absl::StatusOr<Connection> TakeReader() {
    {
      const absl::MutexLock lock(&readers_mutex_);
      if (!readers_.empty()) {
        Connection reader = std::move(readers_.back());
        readers_.pop_back();
        return reader;
      }
    }
    return Connect(path_);
  }

  const std::string path_;
  absl::Mutex writer_mutex_;
  Connection writer_ ABSL_GUARDED_BY(writer_mutex_);
  absl::Mutex readers_mutex_;
  std::vector<Connection> readers_ ABSL_GUARDED_BY(readers_mutex_);
};

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> OpenSqlite(const std::string& path) {
  DPAR_ASSIGN_OR_RETURN(Connection writer, Connect(path));
  return std::make_unique<SqliteDatabase>(path, std::move(writer));
}

}  // namespace dpar
