#include "core/graph/canonical_edges.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CanonicaliseEdgesTest, LeavesACanonicalGraphAlone) {
  std::vector<int64_t> offsets = {0, 1, 3, 4};
  std::vector<int32_t> columns = {1, 0, 2, 1};
  const EdgeChanges changes = CanonicaliseEdges(offsets, columns);
  EXPECT_THAT(offsets, ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(columns, ElementsAre(1, 0, 2, 1));
  EXPECT_EQ(changes.edges_symmetrised + changes.duplicates_merged + changes.self_loops_dropped, 0);
}

TEST(CanonicaliseEdgesTest, AddsTheMissingDirection) {
  std::vector<int64_t> offsets = {0, 2, 2, 2};
  std::vector<int32_t> columns = {2, 1};
  EXPECT_EQ(CanonicaliseEdges(offsets, columns).edges_symmetrised, 2);
  EXPECT_THAT(offsets, ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(columns, ElementsAre(1, 2, 0, 0));
}

TEST(CanonicaliseEdgesTest, MergesDuplicatesAndDropsSelfLoops) {
  std::vector<int64_t> offsets = {0, 5, 8};
  std::vector<int32_t> columns = {1, 0, 1, 1, 0, 1, 0, 0};
  const EdgeChanges changes = CanonicaliseEdges(offsets, columns);
  EXPECT_THAT(offsets, ElementsAre(0, 1, 2));
  EXPECT_THAT(columns, ElementsAre(1, 0));
  EXPECT_EQ(changes.self_loops_dropped, 3);
  EXPECT_EQ(changes.duplicates_merged, 3);
  EXPECT_EQ(changes.edges_symmetrised, 0);
}

TEST(CanonicaliseEdgesTest, AcceptsAGraphWithoutEdges) {
  std::vector<int64_t> offsets = {0, 0, 0};
  std::vector<int32_t> columns;
  CanonicaliseEdges(offsets, columns);
  EXPECT_THAT(offsets, ElementsAre(0, 0, 0));
  EXPECT_THAT(columns, IsEmpty());
}

TEST(CanonicaliseEdgesTest, SymmetrisesATriangleGivenAsACycle) {
  std::vector<int64_t> offsets = {0, 1, 2, 3};
  std::vector<int32_t> columns = {1, 2, 0};
  EXPECT_EQ(CanonicaliseEdges(offsets, columns).edges_symmetrised, 3);
  EXPECT_THAT(offsets, ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(columns, ElementsAre(1, 2, 0, 2, 0, 1));
}

}  // namespace
}  // namespace dpar
