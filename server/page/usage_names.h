// Populations by what is left of their budgets. Runs inside the caller's transaction.
#ifndef DPAR_SERVER_PAGE_USAGE_NAMES_H_
#define DPAR_SERVER_PAGE_USAGE_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "dpar/v1/overview.pb.h"
#include "server/store/database.h"

namespace dpar {

// A tenant (tenants/{t}), a text in {tenant}/{population} or in {tenant}/{dataset} of one of its datasets, and above
// which percentage of the cap; empty or negative: any.
struct UsageFilter {
  std::string tenant;
  std::string text;  // of [a-z0-9-/] only
  double above_percent = -1;
};

struct UsageNames {
  std::vector<std::string> populations;
  int64_t total = 0;  // that match
};
// At most `limit` after `skip`: lost records, then the smallest share left; none that was merged. Reads every dataset's
// row and its population's sums, and no ledger.
absl::StatusOr<UsageNames> ListUsageNames(Transaction& transaction, const UsageFilter& filter, int64_t skip,
                                          int64_t limit);

// At most 100 datasets of a population, oldest first, without what their jobs posted.
absl::StatusOr<std::vector<v1::DatasetSpend>> ListUsageDatasets(Transaction& transaction,
                                                                const std::string& population);

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_USAGE_NAMES_H_
