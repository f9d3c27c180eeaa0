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

// Verifies schema, datasets, released models, ledgers, signing keys and marks. Writes a line for each fault and a
// summary for each kind; returns the number of faults. Safe while a server runs: takes no lock, changes nothing.
absl::StatusOr<int64_t> CheckEverything(const StorePlace& place, const std::string& witness_directory,
                                        std::ostream& out);

absl::Status MakeBackup(const StorePlace& place, const std::string& destination, absl::Time now, std::ostream& out,
                        std::ostream& progress);

// Restores, migrates, verifies every ledger and freezes populations behind their marks. Returns the number of broken
// ledgers, plus one when the witness directory is not the store's; frozen ones are reported, not counted.
absl::StatusOr<int64_t> RestoreBackup(const StorePlace& place, const std::string& witness_directory,
                                      const std::string& source, bool replace, absl::Time now, std::ostream& out,
                                      std::ostream& progress);

// Settles a frozen population (tenants/{t}/populations/{p}), also beside servers. The ledger keeps reason and user.
absl::Status ThawPopulation(const StorePlace& place, const std::string& witness_directory,
                            const std::string& population, const std::string& reason, const std::string& user,
                            absl::Time now, std::ostream& out);

// Makes an unowned directory replace a lost witness directory and marks every population. The store keeps reason and
// user.
absl::Status AdoptWitness(const StorePlace& place, const std::string& witness_directory, const std::string& reason,
                          const std::string& user, absl::Time now, std::ostream& out);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_COMMANDS_H_
