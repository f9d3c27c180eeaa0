#include "server/store/store_copy.h"

#include <fcntl.h>
#include <libpq-fe.h>
#include <spawn.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int kPagesAtOnce = 4096;
constexpr int kBusyTimeoutMilliseconds = 10'000;
constexpr int kNoSuchProgram = 127;
constexpr int kKilled = -1;

// psql's exit codes after which its one transaction was rolled back. A broken connection has another code.
constexpr int kPsqlFatal = 1;
constexpr int kPsqlStatementFailed = 3;

// Also tables that the dump does not know, as when an older backup replaces a newer store.
constexpr char kDropAllTables[] =
    "DO $$ DECLARE found record; BEGIN "
    "FOR found IN SELECT schemaname, tablename FROM pg_catalog.pg_tables WHERE schemaname = current_schema() LOOP "
    "EXECUTE format('DROP TABLE %I.%I CASCADE', found.schemaname, found.tablename); END LOOP; END $$";

using SqliteHandle = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;

absl::Status CopyError(sqlite3* connection, absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, ": SQLite: ", sqlite3_errmsg(connection)));
}

absl::StatusOr<SqliteHandle> OpenHandle(const std::string& path, int flags) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  SqliteHandle handle(raw, &sqlite3_close);
  if (code != SQLITE_OK) {
    return CopyError(raw, absl::StrCat("open ", path));
  }
  sqlite3_busy_timeout(raw, kBusyTimeoutMilliseconds);
  return handle;
}

// The URI without its password, which process lists would show, and the password.
struct Connection {
  std::string conninfo;
  std::string password;
};

absl::StatusOr<Connection> SplitUri(const std::string& uri) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(uri.c_str(), nullptr),
                                                                             &PQconninfoFree);
  if (options == nullptr) {
    return absl::InvalidArgumentError("the store's URI cannot be read");
  }
  Connection connection;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) {
      continue;
    }
    if (std::strcmp(option->keyword, "password") == 0) {
      connection.password = option->val;
      continue;
    }
    absl::StrAppend(&connection.conninfo, connection.conninfo.empty() ? "" : " ", option->keyword, "='",
                    absl::StrReplaceAll(option->val, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
  }
  return connection;
}

std::string ReadAll(int descriptor) {
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(descriptor, buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR)) {
    text.append(buffer, static_cast<size_t>(std::max<ssize_t>(0, got)));
  }
  return text;
}

struct ToolEnd {
  int exit_code = 0;  // kKilled when it was ended by a signal
  std::string words;
};

// Runs one of PostgreSQL's programs to its end. FAILED_PRECONDITION when it is not installed.
absl::StatusOr<ToolEnd> RunTool(std::vector<std::string> arguments, const std::string& password) {
  const std::string program = arguments[0];
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!absl::StartsWith(*variable, "PGPASSWORD=") || password.empty()) {
      variables.emplace_back(*variable);
    }
  }
  if (!password.empty()) {
    variables.push_back(absl::StrCat("PGPASSWORD=", password));
  }
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (std::string& text : texts) {
      result.push_back(text.data());
    }
    result.push_back(nullptr);
    return result;
  };
  int said[2];
  if (pipe2(said, O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot run ", program, ": ", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, said[1], STDERR_FILENO);
  pid_t child = 0;
  const int spawned =
      posix_spawnp(&child, program.c_str(), &actions, nullptr, pointers(arguments).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(said[1]);
  const std::string words = spawned == 0 ? ReadAll(said[0]) : "";
  close(said[0]);
  int status = 0;
  while (spawned == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (spawned == ENOENT || (WIFEXITED(status) && WEXITSTATUS(status) == kNoSuchProgram)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "there is no ", program, " here, which comes with PostgreSQL; install it (Debian: postgresql-client)"));
  }
  if (spawned != 0) {
    return absl::UnavailableError(absl::StrCat("cannot run ", program, ": ", std::strerror(spawned)));
  }
  return ToolEnd{WIFEXITED(status) ? WEXITSTATUS(status) : kKilled,
                 WIFEXITED(status) ? std::string(absl::StripAsciiWhitespace(words)) : "it was killed"};
}

absl::StatusOr<std::string> FirstText(Transaction& transaction, absl::string_view sql) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> texts, transaction.QueryTexts(sql, {}));
  return texts.at(0);
}

}  // namespace

absl::Status CopySqlite(const std::string& from, const std::string& to, const StageReport& report) {
  DPAR_ASSIGN_OR_RETURN(const SqliteHandle source, OpenHandle(from, SQLITE_OPEN_READWRITE));
  DPAR_ASSIGN_OR_RETURN(const SqliteHandle copy, OpenHandle(to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  // Pins one snapshot: else every commit would restart the copy.
  if (sqlite3_exec(source.get(), "BEGIN; SELECT COUNT(*) FROM sqlite_master", nullptr, nullptr, nullptr) != SQLITE_OK) {
    return CopyError(source.get(), absl::StrCat("read ", from));
  }
  sqlite3_backup* const backup = sqlite3_backup_init(copy.get(), "main", source.get(), "main");
  if (backup == nullptr) {
    return CopyError(copy.get(), absl::StrCat("copy to ", to));
  }
  int code = SQLITE_OK;
  bool go_on = true;
  while (code == SQLITE_OK && go_on) {
    code = sqlite3_backup_step(backup, kPagesAtOnce);
    const int pages = std::max(1, sqlite3_backup_pagecount(backup));
    go_on = report(1 - static_cast<double>(sqlite3_backup_remaining(backup)) / pages);
  }
  sqlite3_backup_finish(backup);
  if (code == SQLITE_DONE) {
    return absl::OkStatus();
  }
  return go_on ? CopyError(copy.get(), absl::StrCat("copy ", from, " to ", to)) : absl::CancelledError("stopped");
}

absl::Status CheckSqlite(const std::string& path) {
  DPAR_ASSIGN_OR_RETURN(const SqliteHandle handle, OpenHandle(path, SQLITE_OPEN_READWRITE));
  std::string found;
  const auto add = [](void* texts, int /*columns*/, char** values, char** /*names*/) {
    absl::StrAppend(static_cast<std::string*>(texts), values[0] == nullptr ? "" : values[0]);
    return 0;
  };
  const int code = sqlite3_exec(handle.get(), "PRAGMA integrity_check(1)", add, &found, nullptr);
  return code == SQLITE_OK && found == "ok"
             ? absl::OkStatus()
             : absl::DataLossError(absl::StrCat(path, " is no sound store: ",
                                                code == SQLITE_OK ? found : std::string(sqlite3_errmsg(handle.get()))));
}

absl::Status DumpPostgres(const std::string& uri, Transaction& transaction, const std::string& to) {
  DPAR_ASSIGN_OR_RETURN(const Connection connection, SplitUri(uri));
  // pg_dump may take long, and its snapshot lasts as long as this transaction.
  DPAR_RETURN_IF_ERROR(transaction.Execute("SET LOCAL idle_in_transaction_session_timeout = 0", {}).status());
  DPAR_ASSIGN_OR_RETURN(const std::string snapshot, FirstText(transaction, "SELECT pg_export_snapshot()"));
  DPAR_ASSIGN_OR_RETURN(const ToolEnd end,
                        RunTool({"pg_dump", "--no-password", "--format=custom", "--no-owner", "--no-privileges",
                                 absl::StrCat("--snapshot=", snapshot), absl::StrCat("--file=", to),
                                 absl::StrCat("--dbname=", connection.conninfo)},
                                connection.password));
  return end.exit_code == 0 ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("pg_dump failed: ", end.words));
}

absl::StatusOr<std::vector<std::string>> PostgresTables(Transaction& transaction) {
  DPAR_ASSIGN_OR_RETURN(
      const std::vector<Row> rows,
      transaction.Query(
          "SELECT tablename::text FROM pg_catalog.pg_tables WHERE schemaname = current_schema() ORDER BY 1", {}));
  std::vector<std::string> tables;
  for (const Row& row : rows) {
    RowReader reader(row);
    tables.push_back(reader.Text());
    DPAR_RETURN_IF_ERROR(reader.status());
  }
  return tables;
}

absl::StatusOr<int64_t> PostgresSessions(Transaction& transaction) {
  return transaction.QueryInt(
      "SELECT COUNT(*) FROM pg_catalog.pg_stat_activity WHERE datname = current_database() AND "
      "backend_type = 'client backend' AND pid <> pg_backend_pid()",
      {});
}

absl::Status WritePostgresScript(const std::string& dump, const std::string& to) {
  DPAR_ASSIGN_OR_RETURN(
      const ToolEnd end,
      RunTool({"pg_restore", "--no-owner", "--no-privileges", absl::StrCat("--file=", to), dump}, ""));
  return end.exit_code == 0 ? absl::OkStatus() : absl::DataLossError(absl::StrCat("pg_restore failed: ", end.words));
}

absl::Status ReplacePostgres(const std::string& uri, const std::string& script) {
  // Terse, because longer messages quote rows of the script: keys, and hashes of tokens.
  DPAR_ASSIGN_OR_RETURN(const Connection connection, SplitUri(uri));
  DPAR_ASSIGN_OR_RETURN(
      const ToolEnd end,
      RunTool({"psql", "--no-psqlrc", "--no-password", "--quiet", "--set=ON_ERROR_STOP=1", "--set=VERBOSITY=terse",
               "--single-transaction", "--output=/dev/null", absl::StrCat("--command=", kDropAllTables),
               absl::StrCat("--file=", script), absl::StrCat("--dbname=", connection.conninfo)},
              connection.password));
  if (end.exit_code == 0) {
    return absl::OkStatus();
  }
  const std::string message = absl::StrCat("psql failed: ", end.words);
  return end.exit_code == kPsqlFatal || end.exit_code == kPsqlStatementFailed ? absl::DataLossError(message)
                                                                              : absl::UnavailableError(message);
}

}  // namespace dpar
