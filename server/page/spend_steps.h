// Ledger entries as steps of spend, without events.
#ifndef DPAR_SERVER_PAGE_SPEND_STEPS_H_
#define DPAR_SERVER_PAGE_SPEND_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dpar/v1/budget.pb.h"
#include "server/store/database.h"

namespace dpar {

struct BudgetHead {
  std::string population;
  std::string tenant;         // tenants/{t}
  int64_t head_sequence = 0;  // 0 also when the population's record is lost
};
// Of every population, merged ones too, oldest first. Reads no entries.
absl::StatusOr<std::vector<BudgetHead>> ListBudgetHeads(Transaction& transaction);

struct SpendStep {
  int64_t sequence = 0;
  absl::Time time;
  v1::LedgerEntry::Kind kind = v1::LedgerEntry::KIND_UNSPECIFIED;
  std::string job;
  std::string dataset;  // of the job, if it is known
  int64_t units = 0;
  double epsilon = 0;
  std::string reason;
};
// At most `limit` after `after_sequence`, oldest first.
absl::StatusOr<std::vector<SpendStep>> ListSpendSteps(Transaction& transaction, const std::string& population,
                                                      int64_t after_sequence, int64_t limit);

// Times of a budget's newest entries, at most `limit`, newest first.
absl::StatusOr<std::vector<absl::Time>> ListNewestTimes(Transaction& transaction, const std::string& population,
                                                        int64_t limit);

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_SPEND_STEPS_H_
