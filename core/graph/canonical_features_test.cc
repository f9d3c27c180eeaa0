#include "core/graph/canonical_features.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;

TEST(CanonicaliseFeaturesTest, LeavesCanonicalRowsAlone) {
  const SparseRows canonical = {{0, 2, 2, 3}, {0, 4, 1}, {1.5F, -2.0F, 3.0F}};
  SparseRows rows = canonical;
  int64_t zeros = 0;
  EXPECT_FALSE(CanonicaliseFeatures(rows, zeros).has_value());
  EXPECT_EQ(rows, canonical);
  EXPECT_EQ(zeros, 0);
}

TEST(CanonicaliseFeaturesTest, SortsRowsWithTheirValuesAndDropsZeros) {
  SparseRows rows = {{0, 3, 4, 6}, {4, 0, 2, 1, 3, 2}, {1.0F, 2.0F, 0.0F, -0.0F, 5.0F, 6.0F}};
  int64_t zeros = 10;
  EXPECT_FALSE(CanonicaliseFeatures(rows, zeros).has_value());
  EXPECT_THAT(rows.offsets, ElementsAre(0, 2, 2, 4));
  EXPECT_THAT(rows.columns, ElementsAre(0, 4, 2, 3));
  EXPECT_THAT(rows.values, ElementsAre(2.0F, 1.0F, 6.0F, 5.0F));
  EXPECT_EQ(zeros, 12);
}

TEST(CanonicaliseFeaturesTest, NamesTheFirstRowThatRepeatsAColumnAlsoWhenItIsZero) {
  SparseRows rows = {{0, 2, 5, 7}, {0, 1, 3, 7, 3, 2, 2}, {1, 1, 0, 1, 1, 1, 1}};
  int64_t zeros = 0;
  const auto repeated = CanonicaliseFeatures(rows, zeros);
  ASSERT_TRUE(repeated.has_value());
  EXPECT_EQ(repeated->row, 1);
  EXPECT_EQ(repeated->column, 3);
}

}  // namespace
}  // namespace dpar
