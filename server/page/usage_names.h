// Private datasets by what is left of their budgets. Runs inside the caller's transaction.
#ifndef DPAR_SERVER_PAGE_USAGE_NAMES_H_
#define DPAR_SERVER_PAGE_USAGE_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/database.h"

namespace dpar {

// A tenant (tenants/{t}), a text in {tenant}/{dataset}, and above which percentage of the cap; empty or negative: any.
struct UsageFilter {
  std::string tenant;
  std::string text;  // of [a-z0-9-/] only
  double above_percent = -1;
};

struct UsageName {
  std::string dataset;
  std::string budget_id;
  bool deleted = false;
};
struct UsageNames {
  std::vector<UsageName> names;
  int64_t total = 0;  // that match
};
// At most `limit` after `skip`: lost budget records, then the smallest share left. Reads every dataset and its sums.
absl::StatusOr<UsageNames> ListUsageNames(Transaction& transaction, const UsageFilter& filter, int64_t skip,
                                          int64_t limit);

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_USAGE_NAMES_H_
