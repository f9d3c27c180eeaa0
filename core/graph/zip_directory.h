#ifndef DPAR_CORE_GRAPH_ZIP_DIRECTORY_H_
#define DPAR_CORE_GRAPH_ZIP_DIRECTORY_H_

#include <cstdint>

#include "absl/status/status.h"

namespace dpar {

// Call before libzip, which allocates a record for every claimed entry: 56 bytes of zip64 trailer can claim 2^64.
// Refuses more than `max_entries` in any trailer that libzip might pick, and a directory too large for so many.
absl::Status CheckZipDirectory(int descriptor, int64_t file_bytes, int64_t max_entries);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_ZIP_DIRECTORY_H_
