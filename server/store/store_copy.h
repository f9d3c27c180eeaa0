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

// Copies an SQLite store as it is at one moment to a new file, also while a server writes to it, which does not wait.
// CANCELLED once `report` says no.
absl::Status CopySqlite(const std::string& from, const std::string& to, const StageReport& report);

// Whether a file is a sound SQLite store; DATA_LOSS when not.
absl::Status CheckSqlite(const std::string& path);

// Dumps what `transaction`, a read transaction of the same database, sees: pg_dump's custom format. FAILED_PRECONDITION
// when there is no pg_dump; otherwise its own words.
absl::Status DumpPostgres(const std::string& uri, Transaction& transaction, const std::string& to);

// Tables in the database that the URI names, in the schema that is searched first.
absl::StatusOr<std::vector<std::string>> PostgresTables(Transaction& transaction);
// Other sessions that are connected to it.
absl::StatusOr<int64_t> PostgresSessions(Transaction& transaction);

// Writes what such a dump does as statements to a file. DATA_LOSS when the dump cannot be read to its end;
// FAILED_PRECONDITION when there is no pg_restore.
absl::Status WritePostgresScript(const std::string& dump, const std::string& to);
// Drops every table that the database has and runs those statements, in one transaction. DATA_LOSS when one of them
// fails: then the database is as it was. UNAVAILABLE when nobody knows whether the transaction was committed;
// FAILED_PRECONDITION when there is no psql, and nothing was done.
absl::Status ReplacePostgres(const std::string& uri, const std::string& script);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_STORE_COPY_H_
