#ifndef DPAR_SERVER_UPKEEP_CHECK_DATASETS_H_
#define DPAR_SERVER_UPKEEP_CHECK_DATASETS_H_

#include <cstdint>
#include <ostream>

#include "absl/status/statusor.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"

namespace dpar {

// Verifies every dataset's file by section and its sizes against the store. Writes a line for each, for each file that
// belongs to no dataset (no fault: a crash or a running upload leaves it), and a summary; names and public sizes only.
// Returns the number of damaged or missing datasets.
// Puts datasets back into service whose files are whole again; writes nothing else.
// Safe while a server runs; datasets deleted meanwhile are no fault. Uses short transactions, since
// a long one keeps SQLite from emptying its log. Time grows with all bytes; memory is constant.
absl::StatusOr<int64_t> CheckDatasets(Database& database, const DataDirectory& directory, std::ostream& out);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_CHECK_DATASETS_H_
