// Which witness directory belongs to a store. A server with a wrong or empty directory would not see a rollback, and
// one of a fleet with its own would mark where no other looks. So both hold ids, made at the first start: a store those
// of the directories that served it, a directory its own and those of the directories that it replaced (Adopt). They
// are paired when the store's newest id is among the directory's. So a store restored from before an adoption accepts
// the new directory, and a directory that was given up is refused by the store that went on without it.
//
// A store without ids, which no server has started on, takes the directory's, if that has the content keys of all its
// tenants. The directory is written first: after a crash in between, the store takes its ids at the next start.
#ifndef DPAR_SERVER_WITNESS_PAIRING_H_
#define DPAR_SERVER_WITNESS_PAIRING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/database.h"
#include "server/witness/mark_directory.h"

namespace dpar {

// Checks or makes the pair, and that the directory has every tenant's content key; returns the shared id.
// FAILED_PRECONDITION, with what to do next, when they do not match. Several servers may do so at once.
absl::StatusOr<std::string> Pair(Database& database, const MarkDirectory& marks, absl::Time now);

// Only checks: FAILED_PRECONDITION when Pair would refuse their ids. OK when neither has ids.
absl::Status CheckPaired(Database& database, const MarkDirectory& marks);

// UNAVAILABLE when the store has a newer directory, which another server may use: no one would look at marks here. Call
// in the transaction that reads what is about to be marked.
absl::Status CheckStillPaired(Transaction& transaction, const MarkDirectory& marks);

// Replaces a store's lost directory by this unowned one; `reason` vouches that the store is not older than what was
// released. Completes an interrupted adoption. FAILED_PRECONDITION if the directory is owned or there is none to
// replace.
absl::Status Adopt(Database& database, const MarkDirectory& marks, const std::string& reason, absl::Time now);

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_PAIRING_H_
