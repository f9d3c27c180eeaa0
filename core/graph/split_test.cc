#include "core/graph/split.h"

#include <algorithm>
#include <cmath>

#include "core/graph/testing/npz_fixture.h"
#include "core/random/testing/fixed_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using ::dpar::testing::Summary;

TEST(SplitSlotsTest, CoversEverySlotOnce) {
  FixedRandom random(1);
  const auto split = SplitSlots(1001, 0.2, random);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(split->test.size(), 200U);
  EXPECT_EQ(split->train.size(), 801U);
  EXPECT_TRUE(std::is_sorted(split->test.begin(), split->test.end()));
  EXPECT_TRUE(std::is_sorted(split->train.begin(), split->train.end()));
  std::vector<int32_t> all = split->train;
  all.insert(all.end(), split->test.begin(), split->test.end());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i], static_cast<int32_t>(i));
  }
}

TEST(SplitSlotsTest, RepeatsWithTheSameStreamAndDiffersWithAnother) {
  FixedRandom first(7);
  FixedRandom same(7);
  FixedRandom other(8);
  const auto split = SplitSlots(100, 0.5, first);
  EXPECT_EQ(split->test, SplitSlots(100, 0.5, same)->test);
  EXPECT_NE(split->test, SplitSlots(100, 0.5, other)->test);
}

// Each slot's count over 2000 splits is Binomial(2000, 0.3), standard deviation 20.5; six of them over 10 slots are
// exceeded by chance with probability below 2e-8, and the seed is fixed.
TEST(SplitSlotsTest, TakesEverySlotEquallyOften) {
  FixedRandom random(3);
  std::vector<int> counts(10, 0);
  for (int i = 0; i < 2000; ++i) {
    const auto split = SplitSlots(10, 0.3, random);
    for (const int32_t slot : split->test) {
      ++counts[static_cast<size_t>(slot)];
    }
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 600, 6 * 20.5);
  }
}

TEST(SplitSlotsTest, RefusesSharesThatAreNotBetweenZeroAndOne) {
  FixedRandom random(1);
  for (const double share : {0.0, 1.0, -0.1, 1.5, std::nan("")}) {
    EXPECT_EQ(Summary(SplitSlots(100, share, random).status()), "INVALID_ARGUMENT INVALID_FIELD field=test_share");
  }
}

TEST(SplitSlotsTest, RefusesSharesThatLeaveAPartEmpty) {
  FixedRandom random(1);
  EXPECT_EQ(Summary(SplitSlots(10, 0.01, random).status()), "INVALID_ARGUMENT INVALID_FIELD field=test_share");
  EXPECT_EQ(Summary(SplitSlots(10, 0.99, random).status()), "INVALID_ARGUMENT INVALID_FIELD field=test_share");
  EXPECT_EQ(Summary(SplitSlots(1, 0.5, random).status()), "INVALID_ARGUMENT INVALID_FIELD field=node_count");
}

}  // namespace
}  // namespace dpar
