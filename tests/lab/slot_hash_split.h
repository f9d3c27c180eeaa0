// Splits of node slots that are the same in every run, so that figures of different methods are about the same nodes.
#ifndef DPAR_TESTS_LAB_SLOT_HASH_SPLIT_H_
#define DPAR_TESTS_LAB_SLOT_HASH_SPLIT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/split.h"

namespace dpar::lab {

// The test part is the round(test_share * node_count) slots with the least hashes XXH64(slot as 8 bytes, little end
// first; seed). For research only: anybody can compute it, so it must never take the place of randomness. INVALID_FIELD
// when a part would be empty.
absl::StatusOr<SlotSplit> SplitByHash(int64_t node_count, double test_share, uint64_t seed);

// All slots by their hashes, the least first.
std::vector<int32_t> HashOrder(int64_t node_count, uint64_t seed);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_SLOT_HASH_SPLIT_H_
