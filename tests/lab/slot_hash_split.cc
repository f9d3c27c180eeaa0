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
  std::vector<std::pair<uint64_t, int32_t>> slots;
  slots.reserve(static_cast<size_t>(node_count));
  for (int64_t slot = 0; slot < node_count; ++slot) {
    slots.emplace_back(HashOf(slot, seed), static_cast<int32_t>(slot));
  }
  std::nth_element(slots.begin(), slots.begin() + test_count, slots.end());
  SlotSplit split;
  for (auto slot = slots.begin(); slot != slots.end(); ++slot) {
    (slot - slots.begin() < test_count ? split.test : split.train).push_back(slot->second);
  }
  std::sort(split.test.begin(), split.test.end());
  std::sort(split.train.begin(), split.train.end());
  return split;
}

}  // namespace dpar::lab
