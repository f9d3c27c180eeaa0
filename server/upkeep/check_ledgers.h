// An operator's question to the store: does every ledger add up, and is it the one that certificates were signed for?
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

// Verifies the chain of every budget against its cached sums and against the entries that this server's certificates
// were signed for: so every model that was released has its posted entry. Writes a line for each budget at fault and a
// summary; returns how many there are. `read_keys` reads all that this server ever signed with; it is asked after each
// budget's certificates were read, since a server that runs meanwhile may have begun to sign with another. Time grows
// with all entries, memory with the largest page.
using KeyReader = std::function<absl::StatusOr<std::vector<KnownKey>>()>;
absl::StatusOr<int64_t> CheckLedgers(Database& database, const KeyReader& read_keys, std::ostream& out);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_CHECK_LEDGERS_H_
