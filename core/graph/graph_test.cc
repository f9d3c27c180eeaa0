#include "core/graph/graph.h"

#include <cstring>
#include <numeric>

#include "core/graph/generate.h"
#include "core/graph/testing/questions.h"
#include "core/pace.h"
#include "core/random/testing/fixed_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A path 0-1-2-3 with one feature a node.
Graph Path() {
  Graph graph;
  graph.sizes = {4, 5, 2};
  graph.edge_offsets = {0, 1, 3, 5, 6};
  graph.neighbours = {1, 0, 2, 1, 3, 2};
  graph.features.offsets = {0, 1, 1, 3, 4};
  graph.features.columns = {0, 1, 4, 3};
  graph.features.values = {1, 2, 3, 4};
  graph.labels = {0, 1, kUnlabelled, 1};
  return graph;
}

TEST(GraphTest, GivesRows) {
  const Graph graph = Path();
  EXPECT_THAT(graph.edges().neighbours_of(1), ElementsAre(0, 2));
  EXPECT_THAT(GraphView(graph).features.row_columns(2), ElementsAre(1, 4));
  EXPECT_THAT(GraphView(graph).features.row_values(2), ElementsAre(2, 3));
  EXPECT_THAT(GraphView(graph).features.row_columns(1), IsEmpty());
  EXPECT_EQ(graph.edge_count(), 3);
  EXPECT_EQ(graph.edges().largest_degree(), 2);
  EXPECT_EQ(EdgesView().largest_degree(), 0);
  EXPECT_EQ(GraphView(graph).features.row_count(), 4);
}

TEST(InducedSubgraphTest, RenumbersInTheGivenOrderAndDropsEdgesToOthers) {
  const std::vector<int32_t> nodes = {2, 1, 3};
  const Graph subgraph = InducedSubgraph(Path(), nodes);
  EXPECT_EQ(subgraph.sizes, (PublicSizes{3, 5, 2}));
  EXPECT_THAT(subgraph.edge_offsets, ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(subgraph.neighbours, ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(subgraph.labels, ElementsAre(kUnlabelled, 1, 1));
  EXPECT_THAT(subgraph.features.offsets, ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(subgraph.features.columns, ElementsAre(1, 4, 3));
  EXPECT_THAT(subgraph.features.values, ElementsAre(2, 3, 4));
}

TEST(InducedSubgraphTest, SortsNeighboursWhoseOrderIsReversed) {
  const std::vector<int32_t> nodes = {3, 2, 1, 0};
  const Graph subgraph = InducedSubgraph(Path(), nodes);
  EXPECT_THAT(subgraph.edges().neighbours_of(1), ElementsAre(0, 2));
  EXPECT_THAT(subgraph.edges().neighbours_of(2), ElementsAre(1, 3));
}

TEST(InducedSubgraphTest, IsCancelledWheneverItAsksWhichIsOftenEnough) {
  testing::FixedRandom random(7);
  const Graph graph = *GenerateGraph({.nodes = 20'000, .classes = 3, .features = 200, .features_per_node = 20}, random);
  std::vector<int32_t> nodes(20'000);
  std::iota(nodes.begin(), nodes.end(), 0);
  const int64_t questions = testing::CancelAtEveryQuestion(
      [&](const std::function<bool()>& keep_going) { return InducedSubgraph(graph, nodes, keep_going).status(); });
  const auto work = static_cast<int64_t>(nodes.size() + graph.neighbours.size() + graph.features.columns.size());
  EXPECT_GE(questions, 5);
  EXPECT_GE(questions, work / (kEntriesPerQuestion + 1000)) << "no row here has more than 1000 entries";
}

TEST(InducedSubgraphTest, GivesTheGraphItselfForAllNodes) {
  const std::vector<int32_t> nodes = {0, 1, 2, 3};
  EXPECT_EQ(InducedSubgraph(Path(), nodes), Path());
}

TEST(CanonicalContentTest, IsLengthPrefixedLittleEndian) {
  const std::string content = CanonicalContent(Path());
  const size_t expected =
      (8 + 13) + (8 + 16) + (8 + 5 * 8) + (8 + 6 * 4) + (8 + 5 * 8) + (8 + 4 * 4) + (8 + 4 * 4) + (8 + 4 * 4);
  ASSERT_EQ(content.size(), expected);
  EXPECT_EQ(content.substr(0, 8), std::string("\x0d\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(content.substr(8, 13), "dpar.graph.v1");
  EXPECT_EQ(content.substr(21, 24),
            std::string("\x10\0\0\0\0\0\0\0", 8) + std::string("\x04\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0", 16));
}

TEST(CanonicalContentTest, DependsOnEveryPartOfTheContentButTheClassCount) {
  const std::string content = CanonicalContent(Path());
  Graph graph = Path();
  graph.sizes.class_count = 9;
  EXPECT_EQ(CanonicalContent(graph), content);
  graph = Path();
  graph.sizes.feature_count = 6;
  EXPECT_NE(CanonicalContent(graph), content);
  graph = Path();
  graph.labels[0] = 1;
  EXPECT_NE(CanonicalContent(graph), content);
  graph = Path();
  graph.features.values[3] = 5;
  EXPECT_NE(CanonicalContent(graph), content);
  graph = Path();
  graph.features.columns[0] = 1;
  EXPECT_NE(CanonicalContent(graph), content);
  graph = Path();
  graph.features.offsets[1] = 0;
  EXPECT_NE(CanonicalContent(graph), content);
  graph = Path();
  graph.neighbours[0] = 2;
  EXPECT_NE(CanonicalContent(graph), content);
}

}  // namespace
}  // namespace dpar
