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
absl::Status DropPostgresTables(Transaction& transaction);

// Fills an empty database from such a dump, whole or not at all.
absl::Status LoadPostgres(const std::string& uri, const std::string& from);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_STORE_COPY_H_
