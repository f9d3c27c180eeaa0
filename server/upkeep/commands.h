// What `dpard check`, `backup`, `restore`, `thaw` and `adopt-witness` do and say.
#ifndef DPAR_SERVER_UPKEEP_COMMANDS_H_
#define DPAR_SERVER_UPKEEP_COMMANDS_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/upkeep/backup.h"

namespace dpar {

// Verifies all that can be verified without a server: the schema, every dataset, every released model, every ledger,
// the signing keys, and every mark of the witness directory. A line for each that is wrong and a summary for each kind;
// returns how many are wrong. Also while a server uses the store: it takes no lock and changes nothing, and the store
// is only read and not migrated.
absl::StatusOr<int64_t> CheckEverything(const StorePlace& place, const std::string& witness_directory,
                                        std::ostream& out);

// Also while servers run. How far it is goes to `progress`.
absl::Status MakeBackup(const StorePlace& place, const std::string& destination, absl::Time now, std::ostream& out,
                        std::ostream& progress);

// Restores, brings the store to the present schema, verifies every ledger, and freezes what is behind its mark. Returns
// how many ledgers are broken, and one more when the witness directory is not the store's; frozen budgets are said, and
// are no fault of the restore.
absl::StatusOr<int64_t> RestoreBackup(const StorePlace& place, const std::string& witness_directory,
                                      const std::string& source, bool replace, absl::Time now, std::ostream& out,
                                      std::ostream& progress);

// Settles the frozen budget of a dataset (tenants/{t}/datasets/{d}, also with /budget), with servers running or not.
// The ledger keeps the reason, and which user of the machine asked.
absl::Status ThawBudget(const StorePlace& place, const std::string& witness_directory, const std::string& dataset,
                        const std::string& reason, const std::string& user, absl::Time now, std::ostream& out);

// Makes a directory that belongs to nobody the store's witness directory, in the place of one that is lost, and marks
// every budget as it is. The store keeps the reason, and which user of the machine asked.
absl::Status AdoptWitness(const StorePlace& place, const std::string& witness_directory, const std::string& reason,
                          const std::string& user, absl::Time now, std::ostream& out);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_COMMANDS_H_
