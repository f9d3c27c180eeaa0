// Two populations that turn out to hold the same people become one (docs/privacy.md, section 4).
//
// What `from` has spent becomes spend of `into`: its posted events as INHERIT entries, priced at the order of `into`,
// and its debits. The smaller cap holds from then on. Nothing is given back: `from` is closed for good, and its
// datasets and contents belong to `into`. Where the two have different orders and `from` has released something, no
// filter covers which of them was chosen after outputs were seen, so `into` is closed too; so it is where `from` was
// closed before. Nobody wants that by accident, so such a merge must be allowed to close.
#ifndef DPAR_SERVER_LEDGER_MERGE_H_
#define DPAR_SERVER_LEDGER_MERGE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/ledger/ledger.h"
#include "server/store/database.h"

namespace dpar {

// Units of stored event texts at an order. Empty when both populations have the same: then units stay as they are.
struct MergePrices {
  int64_t order = 0;  // of `into`
  std::map<std::string, int64_t> units;
};
// May take seconds, so it is done before a transaction begins.
absl::StatusOr<MergePrices> PriceMerge(Database& database, const std::string& from, const std::string& into);

// What a merge may do to `into`.
enum class Closing { kRefused, kAllowed };

// Both are populations of one tenant. Nothing when it was done before. FAILED_PRECONDITION / POPULATION_CLOSED when
// either was merged into another, / POPULATION_IN_USE while jobs of either are queued or running, / BUDGET_FROZEN;
// / INVALID_FIELD when it would close `into` and may not; INVALID_ARGUMENT for a population and itself; UNAVAILABLE
// when something was posted since PriceMerge.
absl::Status Merge(Transaction& transaction, const std::string& from, const std::string& into,
                   const MergePrices& prices, const std::string& reason, const EntryContext& context,
                   Closing closing = Closing::kRefused);

}  // namespace dpar

#endif  // DPAR_SERVER_LEDGER_MERGE_H_
