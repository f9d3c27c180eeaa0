// An operator's question to the disk: is every dataset of the store still what was sealed?
#ifndef DPAR_SERVER_UPKEEP_CHECK_DATASETS_H_
#define DPAR_SERVER_UPKEEP_CHECK_DATASETS_H_

#include <cstdint>
#include <ostream>

#include "absl/status/statusor.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"

namespace dpar {

// Verifies the file of every dataset, section by section, and that its sizes are those of the store. Writes a line for
// each as soon as it is done, a line for each file below datasets/ that belongs to no dataset (no fault: a crash or an
// upload that is being sealed leaves it), and a summary. Lines hold names and public sizes only. Returns how many
// datasets are damaged or missing; an error means that the check itself could not go on.
//
// Safe while a server uses both: it writes to neither, and a dataset that is deleted meanwhile is no fault. The store
// is asked in many short transactions, because a long one would keep SQLite from emptying its log as long as it lasts.
// Time grows with the bytes of all files, memory with nothing.
absl::StatusOr<int64_t> CheckDatasets(Database& database, const DataDirectory& directory, std::ostream& out);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_CHECK_DATASETS_H_
