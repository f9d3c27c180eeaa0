// A backup of everything a server keeps, taken while servers run. Copies the store at one moment, then the files of its
// rows. Those are synced before their row is committed and never change, so a missing one belongs to a dataset deleted
// meanwhile: then the store is copied again. Excludes the witness directory: a restored backup is compared with it.
#ifndef DPAR_SERVER_UPKEEP_BACKUP_H_
#define DPAR_SERVER_UPKEEP_BACKUP_H_

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/upkeep/manifest.h"

namespace dpar {

struct StorePlace {
  DataDirectory directory;
  std::string postgres_uri;  // empty for the SQLite file of the directory
};
absl::StatusOr<std::unique_ptr<Database>> OpenStore(const StorePlace& place);

struct NamedFile {
  std::string path;    // below the data directory
  std::string sha256;  // empty where the store does not know it
};
absl::StatusOr<std::vector<NamedFile>> NamedFiles(Transaction& transaction, const DataDirectory& directory);

// Writes a backup to the new directory `destination`, under another name until complete, for its owner only: it holds
// data and keys. FAILED_PRECONDITION when `destination` exists.
absl::StatusOr<Manifest> BackUp(const StorePlace& place, const std::string& destination, absl::Time now,
                                std::ostream& progress);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_BACKUP_H_
