#ifndef DPAR_SERVER_UPKEEP_CHECK_LEDGERS_H_
#define DPAR_SERVER_UPKEEP_CHECK_LEDGERS_H_

#include <cstdint>
#include <functional>
#include <ostream>
#include <vector>

#include "absl/status/statusor.h"
#include "core/certificate/key_list.h"
#include "server/store/database.h"

namespace dpar {

// Verifies every budget's chain against its sums and against the entries that this server's certificates were signed
// for, so every released model has its post. Writes a line for each fault and a summary; returns the number of faults.
// Calls `read_keys` (all keys ever) after reading a budget's certificates: a running server may rotate keys.
using KeyReader = std::function<absl::StatusOr<std::vector<KnownKey>>()>;
absl::StatusOr<int64_t> CheckLedgers(Database& database, const KeyReader& read_keys, std::ostream& out);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_CHECK_LEDGERS_H_
