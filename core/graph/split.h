// A random split of node slots into a training and a test part.
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

// round(test_share * node_count) slots, uniformly among all subsets of that size, are the test part. Drawn over slots
// alone, never over labels or degrees, so the split is a public quantity. INVALID_ARGUMENT when
// test_share is not in (0, 1) or leaves a part empty.
absl::StatusOr<SlotSplit> SplitSlots(int64_t node_count, double test_share, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_SPLIT_H_
