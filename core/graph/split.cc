#include "core/graph/split.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {

absl::StatusOr<SlotSplit> SplitSlots(int64_t node_count, double test_share, RandomSource& random) {
  DPAR_RETURN_IF_ERROR(ValidateRange("node_count", node_count, int64_t{2}, std::numeric_limits<int32_t>::max()));
  DPAR_RETURN_IF_ERROR(ValidateProbability("test_share", test_share));
  const auto test_count = static_cast<int64_t>(std::llround(test_share * static_cast<double>(node_count)));
  if (test_count == 0 || test_count == node_count) {
    return InvalidField("test_share", "test_share leaves one part without nodes; choose a share nearer to 0.5");
  }
  std::vector<int32_t> slots(static_cast<size_t>(node_count));
  std::iota(slots.begin(), slots.end(), 0);
  // The first test_count steps of a Fisher-Yates shuffle draw the subset.
  for (size_t i = 0; i < static_cast<size_t>(test_count); ++i) {
    std::swap(slots[i], slots[i + UniformBelow(random, slots.size() - i)]);
  }
  std::vector<bool> is_test(slots.size(), false);
  for (size_t i = 0; i < static_cast<size_t>(test_count); ++i) {
    is_test[static_cast<size_t>(slots[i])] = true;
  }
  SlotSplit split;
  split.test.reserve(static_cast<size_t>(test_count));
  split.train.reserve(slots.size() - static_cast<size_t>(test_count));
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    (is_test[slot] ? split.test : split.train).push_back(static_cast<int32_t>(slot));
  }
  return split;
}

}  // namespace dpar
