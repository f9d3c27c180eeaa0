// An operator's question to the store: does every ledger add up, and is it the one that certificates were signed for?
#ifndef DPAR_SERVER_WORKER_CHECK_LEDGERS_H_
#define DPAR_SERVER_WORKER_CHECK_LEDGERS_H_

#include <cstdint>
#include <ostream>

#include "absl/status/statusor.h"
#include "core/certificate/signing_key.h"
#include "server/store/database.h"

namespace dpar {

// Verifies the chain of every budget against its cached sums and against the entries that this server's certificates
// were signed for: so every model that was released has its posted entry. Writes a line for each budget at fault and a
// summary; returns how many there are. Time grows with all entries, memory with the largest page.
absl::StatusOr<int64_t> CheckLedgers(Database& database, const VerifyingKey& key, std::ostream& out);

}  // namespace dpar

#endif  // DPAR_SERVER_WORKER_CHECK_LEDGERS_H_
