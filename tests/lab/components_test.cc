#include "tests/lab/components.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/graph/canonical_edges.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A graph of edges alone.
Graph EdgesOf(int64_t nodes, std::vector<std::pair<int32_t, int32_t>> edges) {
  Graph graph;
  graph.edge_offsets.assign(static_cast<size_t>(nodes) + 1, 0);
  std::sort(edges.begin(), edges.end());
  for (const auto& [from, to] : edges) {
    ++graph.edge_offsets[static_cast<size_t>(from) + 1];
    graph.neighbours.push_back(to);
  }
  std::partial_sum(graph.edge_offsets.begin(), graph.edge_offsets.end(), graph.edge_offsets.begin());
  CanonicaliseEdges(graph.edge_offsets, graph.neighbours);
  return graph;
}

TEST(LargestComponentTest, IsTheLargerOfTwo) {
  EXPECT_THAT(LargestComponent(EdgesOf(7, {{0, 5}, {6, 1}, {1, 3}, {3, 4}}).edges()), ElementsAre(1, 3, 4, 6));
}

TEST(LargestComponentTest, IsAscendingWhateverTheOrderOfTheEdges) {
  EXPECT_THAT(LargestComponent(EdgesOf(6, {{0, 5}, {5, 1}, {1, 4}, {4, 2}}).edges()), ElementsAre(0, 1, 2, 4, 5));
}

TEST(LargestComponentTest, OfEquallyLargeOnesHasTheLowestNode) {
  EXPECT_THAT(LargestComponent(EdgesOf(6, {{4, 5}, {1, 3}, {0, 2}}).edges()), ElementsAre(0, 2));
  EXPECT_THAT(LargestComponent(EdgesOf(7, {{4, 5}, {5, 6}, {1, 2}, {2, 3}}).edges()), ElementsAre(1, 2, 3));
}

TEST(LargestComponentTest, LeavesIsolatedNodesOut) {
  EXPECT_THAT(LargestComponent(EdgesOf(5, {{1, 3}}).edges()), ElementsAre(1, 3));
}

TEST(LargestComponentTest, IsTheFirstNodeWhenAllAreIsolated) {
  EXPECT_THAT(LargestComponent(EdgesOf(3, {}).edges()), ElementsAre(0));
}

TEST(LargestComponentTest, IsTheWholeOfAConnectedGraph) {
  EXPECT_THAT(LargestComponent(EdgesOf(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 2}}).edges()), ElementsAre(0, 1, 2, 3));
}

TEST(LargestComponentTest, OfNothingIsEmpty) {
  EXPECT_THAT(LargestComponent(EdgesOf(0, {}).edges()), IsEmpty());
  EXPECT_THAT(LargestComponent(EdgesView()), IsEmpty());
}

TEST(LargestComponentTest, FollowsAPathOfAMillionNodes) {
  constexpr int32_t kNodes = 1'000'000;
  std::vector<std::pair<int32_t, int32_t>> path;
  for (int32_t node = 1; node < kNodes; ++node) {
    path.emplace_back(node - 1, node);
  }
  std::vector<int32_t> all(kNodes);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(LargestComponent(EdgesOf(kNodes, path).edges()), all);
}

}  // namespace
}  // namespace dpar
