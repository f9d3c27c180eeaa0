// An operator's question to the store: does every ledger add up, and is it the one that certificates were signed for?
#ifndef DPAR_SERVER_WORKER_CHECK_LEDGERS_H_
#define DPAR_SERVER_WORKER_CHECK_LEDGERS_H_

#include <cstdint>
#include <ostream>
#include <vector>

#include "absl/status/statusor.h"
#include "core/certificate/key_list.h"
#include "server/store/database.h"

namespace dpar {

// Verifies the chain of every budget against its cached sums and against the entries that this server's certificates
// were signed for: so every model that was released has its posted entry. Writes a line for each budget at fault and a
// summary; returns how many there are. `keys` are all that this server ever signed with. Time grows with all entries,
// memory with the largest page.
absl::StatusOr<int64_t> CheckLedgers(Database& database, const std::vector<KnownKey>& keys, std::ostream& out);

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_CHECK_LEDGERS_H_
