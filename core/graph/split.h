#ifndef DPAR_CORE_GRAPH_SPLIT_H_
#define DPAR_CORE_GRAPH_SPLIT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/random/random.h"

namespace dpar {

struct SlotSplit {
  std::vector<int32_t> train;  // ascending
  std::vector<int32_t> test;   // ascending
};

// The test part is uniform among the subsets of round(test_share * node_count) slots. It never depends on labels or
// degrees, so the split is public. INVALID_ARGUMENT unless test_share is in (0, 1) and no part is empty.
absl::StatusOr<SlotSplit> SplitSlots(int64_t node_count, double test_share, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_SPLIT_H_
