// A backup put back in the place of a server that does not run.
#ifndef DPAR_SERVER_UPKEEP_RESTORE_H_
#define DPAR_SERVER_UPKEEP_RESTORE_H_

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/upkeep/backup.h"
#include "server/upkeep/manifest.h"

namespace dpar {

// Verifies every file of the backup, gathers it in the data directory, then replaces: PostgreSQL's tables in one
// transaction, files by moving. An error before or while tables are replaced leaves all as it was. FAILED_PRECONDITION
// while a server uses the place, and, without `replace`, when it is not empty. With it, old files move to
// `replaced-TIME`, and the database's old content is lost. DATA_LOSS when the backup is damaged or cannot be loaded.
absl::StatusOr<Manifest> Restore(const StorePlace& place, const std::string& source, bool replace, absl::Time now,
                                 std::ostream& progress);

// FAILED_PRECONDITION when others keep using a PostgreSQL store.
absl::Status AwaitNoSessions(Database& database);

// FAILED_PRECONDITION when a restore was cut off while replacing: the result must not be served.
absl::Status CheckRestored(const DataDirectory& directory);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_RESTORE_H_
