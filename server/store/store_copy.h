// A whole store as one file, and back: SQLite's online backup, PostgreSQL's own dump.
#ifndef DPAR_SERVER_STORE_STORE_COPY_H_
#define DPAR_SERVER_STORE_STORE_COPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/stage.h"
#include "server/store/database.h"

namespace dpar {

// Copies one snapshot to a new file while a server may write, without delaying it. CANCELLED once `report` says no.
absl::Status CopySqlite(const std::string& from, const std::string& to, const StageReport& report);

// DATA_LOSS unless the file is a sound SQLite store.
absl::Status CheckSqlite(const std::string& path);

// Dumps what a read transaction of that database sees, in pg_dump's custom format. FAILED_PRECONDITION without pg_dump.
absl::Status DumpPostgres(const std::string& uri, Transaction& transaction, const std::string& to);

// Tables in the schema that is searched first; the number of other sessions.
absl::StatusOr<std::vector<std::string>> PostgresTables(Transaction& transaction);
absl::StatusOr<int64_t> PostgresSessions(Transaction& transaction);

// Writes a dump as SQL. DATA_LOSS when it cannot be read to its end; FAILED_PRECONDITION without pg_restore.
absl::Status WritePostgresScript(const std::string& dump, const std::string& to);
// Drops every table and runs the script, in one transaction. DATA_LOSS when a statement fails: the database is
// unchanged. UNAVAILABLE when the commit's outcome is unknown; FAILED_PRECONDITION without psql: nothing was done.
absl::Status ReplacePostgres(const std::string& uri, const std::string& script);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_STORE_COPY_H_
