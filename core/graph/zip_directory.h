// A look at a zip archive's directory before libzip sees it.
#ifndef DPAR_CORE_GRAPH_ZIP_DIRECTORY_H_
#define DPAR_CORE_GRAPH_ZIP_DIRECTORY_H_

#include <cstdint>

#include "absl/status/status.h"

namespace dpar {

// libzip allocates one record for every entry that the archive claims to have, and a zip64 trailer of 56 bytes can
// claim 2^64 of them. This refuses an archive whose trailer, any that libzip might pick, claims more than
// `max_entries`, or a directory too large for so many.
absl::Status CheckZipDirectory(int descriptor, int64_t file_bytes, int64_t max_entries);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_ZIP_DIRECTORY_H_
