#include "core/graph/canonical_edges.h"

#include <set>
#include <utility>

#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
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

TEST(CanonicaliseEdgesTest, AcceptsAGraphWithoutNodes) {
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> columns;
  EXPECT_EQ(CanonicaliseEdges(offsets, columns).edges_symmetrised, 0);
  EXPECT_THAT(offsets, ElementsAre(0));
}

TEST(CanonicaliseEdgesTest, SymmetrisesATriangleGivenAsACycle) {
  std::vector<int64_t> offsets = {0, 1, 2, 3};
  std::vector<int32_t> columns = {1, 2, 0};
  EXPECT_EQ(CanonicaliseEdges(offsets, columns).edges_symmetrised, 3);
  EXPECT_THAT(offsets, ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(columns, ElementsAre(1, 2, 0, 2, 0, 1));
}

TEST(CanonicaliseEdgesTest, SymmetrisesAStarFromItsLastNode) {
  constexpr int32_t kLeaves = 100'000;
  std::vector<int64_t> offsets(kLeaves + 2, 0);
  offsets.back() = kLeaves;
  std::vector<int32_t> columns;
  for (int32_t leaf = kLeaves; leaf-- > 0;) {
    columns.push_back(leaf);
  }
  EXPECT_EQ(CanonicaliseEdges(offsets, columns).edges_symmetrised, kLeaves);
  for (size_t leaf = 0; leaf < kLeaves; ++leaf) {
    ASSERT_EQ(offsets[leaf], static_cast<int64_t>(leaf));
    ASSERT_EQ(columns[leaf], kLeaves);
    ASSERT_EQ(columns[kLeaves + leaf], static_cast<int32_t>(leaf));
  }
  EXPECT_EQ(offsets.back(), 2 * kLeaves);
}

TEST(CanonicaliseEdgesTest, StaysInItsBlockWhenThereIsRoomForBothDirections) {
  std::vector<int64_t> offsets = {0, 1, 2, 3};
  std::vector<int32_t> columns;
  columns.reserve(6);
  columns = {1, 2, 0};
  ASSERT_EQ(columns.capacity(), 6U);
  const int32_t* block = columns.data();
  EXPECT_EQ(CanonicaliseEdges(offsets, columns).edges_symmetrised, 3);
  EXPECT_EQ(columns.data(), block);
  EXPECT_THAT(columns, ElementsAre(1, 2, 0, 2, 0, 1));
}

// What the rows should become, by sets of pairs.
struct Expected {
  std::set<std::pair<int32_t, int32_t>> entries;
  EdgeChanges changes;
};

Expected ByHand(const std::vector<int64_t>& offsets, const std::vector<int32_t>& columns) {
  Expected expected;
  std::set<std::pair<int32_t, int32_t>> directed;
  for (size_t row = 0; row + 1 < offsets.size(); ++row) {
    for (int64_t at = offsets[row]; at < offsets[row + 1]; ++at) {
      const int32_t column = columns[static_cast<size_t>(at)];
      if (column == static_cast<int32_t>(row)) {
        ++expected.changes.self_loops_dropped;
      } else if (!directed.emplace(static_cast<int32_t>(row), column).second) {
        ++expected.changes.duplicates_merged;
      }
    }
  }
  for (const auto& [from, to] : directed) {
    expected.entries.emplace(from, to);
    expected.entries.emplace(to, from);
  }
  expected.changes.edges_symmetrised = static_cast<int64_t>(expected.entries.size() - directed.size());
  return expected;
}

void ExpectAsByHand(std::vector<int64_t> offsets, std::vector<int32_t> columns, size_t room) {
  const Expected expected = ByHand(offsets, columns);
  columns.reserve(room * columns.size());
  const EdgeChanges changes = CanonicaliseEdges(offsets, columns);
  EXPECT_EQ(changes.self_loops_dropped, expected.changes.self_loops_dropped);
  EXPECT_EQ(changes.duplicates_merged, expected.changes.duplicates_merged);
  EXPECT_EQ(changes.edges_symmetrised, expected.changes.edges_symmetrised);
  std::vector<int64_t> expected_offsets(offsets.size(), 0);
  std::vector<int32_t> expected_columns;
  for (const auto& [from, to] : expected.entries) {
    ++expected_offsets[static_cast<size_t>(from) + 1];
    expected_columns.push_back(to);
  }
  for (size_t row = 1; row < offsets.size(); ++row) {
    expected_offsets[row] += expected_offsets[row - 1];
  }
  EXPECT_EQ(offsets, expected_offsets);
  EXPECT_EQ(columns, expected_columns);
}

// 40'000 rows are several blocks of rows, so that threads meet in the same rows.
TEST(CanonicaliseEdgesTest, DoesToRandomRowsWhatSetsOfPairsSay) {
  FixedRandom random(11);
  for (const uint64_t rows : {uint64_t{1}, uint64_t{2}, uint64_t{7}, uint64_t{300}, uint64_t{40'000}}) {
    std::vector<int64_t> offsets = {0};
    std::vector<int32_t> columns;
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t entry = UniformBelow(random, 8); entry > 0; --entry) {
        // Half of the entries go to a few hubs, which makes long rows, duplicates and edges in both directions.
        const uint64_t bound = UniformBelow(random, 2) == 0 ? rows : std::min<uint64_t>(rows, 5);
        columns.push_back(static_cast<int32_t>(UniformBelow(random, bound)));
      }
      offsets.push_back(static_cast<int64_t>(columns.size()));
    }
    ExpectAsByHand(offsets, columns, 1);
    ExpectAsByHand(offsets, columns, 2);
  }
}

}  // namespace
}  // namespace dpar
