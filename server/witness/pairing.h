// Which witness directory belongs to a store.
//
// Marks help only a server that looks at them. One that is pointed at another directory, or at an empty one, would find
// nothing amiss in a store that was rolled back, and one of a fleet that has a directory of its own would mark where
// nobody else looks. So both hold ids, made together at the first start: a store those of the directories that it was
// served with, a directory its own and those of the directories that it replaced (Adopt). They belong together when the
// newest id of the store is among the directory's. A store that was restored from before a directory was replaced so
// finds the one that replaced it; and a directory that was given up is not good any more for the store that went on
// without it.
//
// A store without ids, which no server has started on yet, takes those of the directory, if that knows the content keys
// of all of its tenants. The directory is always written first: a crash in between leaves a
// store that takes the directory's ids at the next start.
#ifndef DPAR_SERVER_WITNESS_PAIRING_H_
#define DPAR_SERVER_WITNESS_PAIRING_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/database.h"
#include "server/witness/mark_directory.h"

namespace dpar {

// Sees that both belong together, or makes them, and that the directory has the content key of every tenant. Returns
// the id that they share. FAILED_PRECONDITION, with what to do next, when they do not. Several servers may do so at
// once.
absl::StatusOr<std::string> Pair(Database& database, const MarkDirectory& marks, absl::Time now);

// The same judgement, and nothing is changed: FAILED_PRECONDITION when Pair would refuse for their ids. Both without
// ids are OK.
absl::Status CheckPaired(Database& database, const MarkDirectory& marks);

// UNAVAILABLE when the store has a newer directory than this one, which another server may have been given meanwhile:
// whoever marked here would mark where nobody looks any more. In the transaction that reads what is about to be marked.
absl::Status CheckStillPaired(Transaction& transaction, const MarkDirectory& marks);

// Replaces the directory of a store, which is lost, by this one, which belongs to nobody; an operator vouches with
// `reason` that the store is not older than what was released. One that was cut off is completed. FAILED_PRECONDITION
// when the directory belongs to somebody else, or the store has none to replace.
absl::Status Adopt(Database& database, const MarkDirectory& marks, const std::string& reason, absl::Time now);

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_PAIRING_H_
