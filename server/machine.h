#ifndef DPAR_SERVER_MACHINE_H_
#define DPAR_SERVER_MACHINE_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"

namespace dpar {

// UNAVAILABLE, with the cause, while this process cannot open a few files more or `directory` has no room for a few
// megabytes: work begun now would fail, and by no fault of its own.
absl::Status CheckMachine(const std::string& directory);

// How many this process may have open.
size_t MaxDescriptors();

}  // namespace dpar

#endif  // DPAR_SERVER_MACHINE_H_
