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

// Verifies the backup, every file of it, gathers it in the data directory beside what is there, and then replaces that:
// PostgreSQL's tables in one transaction, files by moving them. An error before the tables are replaced, or while they
// are, leaves everything as it was. FAILED_PRECONDITION while a server uses the place; and, without `replace`, when
// there is something in it. With it, what the directory held is moved to `replaced-TIME` below it, and what the
// database held is gone. DATA_LOSS when the backup is not as it was made, or cannot be loaded.
absl::StatusOr<Manifest> Restore(const StorePlace& place, const std::string& source, bool replace, absl::Time now,
                                 std::ostream& progress);

// Waits until nobody else uses a PostgreSQL store; FAILED_PRECONDITION when somebody does for long.
absl::Status AwaitNoSessions(Database& database);

// FAILED_PRECONDITION when a restore was cut off while it replaced what was there; nobody should serve that.
absl::Status CheckRestored(const DataDirectory& directory);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_RESTORE_H_
