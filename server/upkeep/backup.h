// A backup of everything that a server keeps, taken while servers run.
//
// The store is copied first, as it is at one moment, and then every file that its rows name. Those files are written
// and synced before the row that names them is committed, and never change after it; so they are there, or were removed
// since, with a dataset that was deleted meanwhile: then the store is copied again. The witness directory
// (server/witness) is not part of a backup: it is what a restored backup is compared with.
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

// Where a server keeps what it has.
struct StorePlace {
  DataDirectory directory;
  std::string postgres_uri;  // empty for the SQLite file of the directory
};
absl::StatusOr<std::unique_ptr<Database>> OpenStore(const StorePlace& place);

// A file that a row names.
struct NamedFile {
  std::string path;    // below the data directory
  std::string sha256;  // empty where the store does not know it
};
// Of all datasets and all released models, by path.
absl::StatusOr<std::vector<NamedFile>> NamedFiles(Transaction& transaction, const DataDirectory& directory);

// Writes a backup to `destination`, a directory that is not there yet; under another name until it is whole. Readable
// by its owner only: it holds data and keys. FAILED_PRECONDITION when there is something in its place.
absl::StatusOr<Manifest> BackUp(const StorePlace& place, const std::string& destination, absl::Time now,
                                std::ostream& progress);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_BACKUP_H_
