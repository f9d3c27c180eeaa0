#include "tests/lab/slot_hash_split.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar::lab {
namespace {

uint64_t HashOf(int64_t slot, uint64_t seed) {
  std::array<uint8_t, sizeof(slot)> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(static_cast<uint64_t>(slot) >> (8 * i));
  }
  return XXH64(bytes.data(), bytes.size(), seed);
}

}  // namespace

absl::StatusOr<SlotSplit> SplitByHash(int64_t node_count, double test_share, uint64_t seed) {
  const auto test_count = static_cast<int64_t>(std::llround(test_share * static_cast<double>(node_count)));
  if (test_count <= 0 || test_count >= node_count) {
    return InvalidField("test_share", absl::StrCat("test_share must leave nodes to train on and nodes to predict, got ",
                                                   test_share, " of ", node_count, " nodes"));
  }
  const std::vector<int32_t> slots = HashOrder(node_count, seed);
  SlotSplit split;
  split.test.assign(slots.begin(), slots.begin() + test_count);
  split.train.assign(slots.begin() + test_count, slots.end());
  std::sort(split.test.begin(), split.test.end());
  std::sort(split.train.begin(), split.train.end());
  return split;
}

std::vector<int32_t> HashOrder(int64_t node_count, uint64_t seed) {
  std::vector<std::pair<uint64_t, int32_t>> hashed;
  hashed.reserve(static_cast<size_t>(node_count));
  for (int64_t slot = 0; slot < node_count; ++slot) {
    hashed.emplace_back(HashOf(slot, seed), static_cast<int32_t>(slot));
  }
  std::sort(hashed.begin(), hashed.end());
  std::vector<int32_t> order(hashed.size());
  std::transform(hashed.begin(), hashed.end(), order.begin(), [](const auto& slot) { return slot.second; });
  return order;
}

}  // namespace dpar::lab
