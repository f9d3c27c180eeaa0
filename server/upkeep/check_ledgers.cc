#include "server/upkeep/check_ledgers.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/certificate.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/ledger/ledger.h"
#include "server/queue/queue.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

absl::StatusOr<std::string> FaultOf(Transaction& transaction, const std::string& population,
                                    const KeyReader& read_keys) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> envelopes, Envelopes(transaction, population));
  DPAR_ASSIGN_OR_RETURN(const std::vector<KnownKey> keys, read_keys());
  std::vector<EntryPosition> checkpoints;
  for (const std::string& envelope : envelopes) {
    const absl::StatusOr<Statement> statement = OpenSigned(envelope, keys);
    if (!statement.ok()) {
      return absl::StrCat("a stored certificate cannot be read: ", statement.status().message());
    }
    checkpoints.push_back({statement->ledger_sequence, statement->ledger_hash});
  }
  const absl::StatusOr<v1::VerifyChainResponse> chain = VerifyChain(transaction, population, checkpoints);
  if (absl::IsNotFound(chain.status())) {
    return std::string("its row is missing");
  }
  DPAR_RETURN_IF_ERROR(chain.status());
  return chain->intact() ? std::string() : absl::StrCat("entry ", chain->first_bad_sequence(), ": ", chain->fault());
}

}  // namespace

absl::StatusOr<int64_t> CheckLedgers(Database& database, const KeyReader& read_keys, std::ostream& out) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> populations,
                        ReadFrom(database, [](Transaction& transaction) { return AllPopulations(transaction); }));
  int64_t faults = 0;
  for (const std::string& population : populations) {
    DPAR_ASSIGN_OR_RETURN(const std::string fault, ReadFrom(database, [&](Transaction& transaction) {
                            return FaultOf(transaction, population, read_keys);
                          }));
    if (!fault.empty()) {
      ++faults;
      out << "ledger " << population << ": BROKEN, " << fault << std::endl;
    }
  }
  out << "ledgers: " << static_cast<int64_t>(populations.size()) - faults << " ok, " << faults << " broken"
      << std::endl;
  return faults;
}

}  // namespace dpar
