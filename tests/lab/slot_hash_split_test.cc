#include "tests/lab/slot_hash_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <vector>

#include "core/error.h"

namespace dpar::lab {
namespace {

using ::testing::ElementsAre;

TEST(SlotHashSplit, EverySlotIsInOnePartAndBothAscend) {
  const SlotSplit split = SplitByHash(1000, 0.2, 1).value();
  EXPECT_EQ(split.test.size(), 200U);
  EXPECT_EQ(split.train.size(), 800U);
  EXPECT_TRUE(std::is_sorted(split.test.begin(), split.test.end()));
  EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
  std::vector<int32_t> all = split.test;
  all.insert(all.end(), split.train.begin(), split.train.end());
  std::sort(all.begin(), all.end());
  std::vector<int32_t> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all, expected);
}

// Figures are compared between machines and releases, so the splits are fixed by value.
TEST(SlotHashSplit, IsTheSameEverywhere) {
  EXPECT_THAT(SplitByHash(20, 0.25, 1)->test, ElementsAre(0, 2, 3, 5, 6));
  EXPECT_THAT(SplitByHash(20, 0.25, 2)->test, ElementsAre(5, 8, 10, 13, 14));
}

// Of 200 test slots of one seed, 40 are expected among the 200 of another. The overlap is hypergeometric with standard
// deviation 5.1; the hashes are fixed, so this is a check of them and not a random event.
TEST(SlotHashSplit, SplitsOfDifferentSeedsOverlapAsIndependentOnesWould) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const SlotSplit a = SplitByHash(1000, 0.2, seed).value();
    const SlotSplit b = SplitByHash(1000, 0.2, seed + 1).value();
    std::vector<int32_t> both;
    std::set_intersection(a.test.begin(), a.test.end(), b.test.begin(), b.test.end(), std::back_inserter(both));
    EXPECT_NEAR(static_cast<double>(both.size()), 40, 20) << seed;
  }
}

TEST(SlotHashSplit, AnEmptyPartIsRefused) {
  for (const double share : {0.04, 0.96}) {
    const absl::Status status = SplitByHash(10, share, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "test_share");
  }
}

}  // namespace
}  // namespace dpar::lab
