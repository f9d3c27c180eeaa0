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

// Verifies the backup, every file of it, and then puts it into the data directory and the store. Nothing is touched
// before all of it was verified. FAILED_PRECONDITION while a server uses the place; and, without `replace`, when there
// is something in it. With it, what the directory held is moved to `replaced-TIME` below it, and what the database held
// is gone. DATA_LOSS when the backup is not as it was made.
absl::StatusOr<Manifest> Restore(const StorePlace& place, const std::string& source, bool replace, absl::Time now,
                                 std::ostream& progress);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_RESTORE_H_
