#include "tests/lab/graph_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/status/status.h"
#include "tests/lab/lab_run.h"
#include "tests/lab/run_program.h"

namespace dpar::lab {
namespace {

Graph Ring(int32_t node_count) {
  Edges edges;
  for (int32_t node = 0; node < node_count; ++node) {
    edges.emplace_back(node, (node + 1) % node_count);
  }
  return MakeGraph(node_count, edges);
}

int CutEdges(const Graph& graph, const std::vector<int32_t>& part) {
  const std::set<int32_t> inside(part.begin(), part.end());
  int cut = 0;
  for (const int32_t node : part) {
    for (const int32_t other : graph.edges().neighbours_of(node)) {
      cut += inside.contains(other) ? 0 : 1;
    }
  }
  return cut;
}

TEST(SplitGraphTest, ARandomSplitHasAFifthOfTheNodesAndCutsMostOfTheirEdges) {
  const Graph ring = Ring(900);
  const SlotSplit split = SplitGraph(ring.edges(), SplitKind::kRandom, 1).value();
  EXPECT_EQ(split.test.size(), 180U);
  EXPECT_EQ(split.train.size(), 720U);
  EXPECT_GT(CutEdges(ring, split.test), 200);
  EXPECT_EQ(SplitGraph(ring.edges(), SplitKind::kRandom, 1)->test, split.test);
  EXPECT_NE(SplitGraph(ring.edges(), SplitKind::kRandom, 2)->test, split.test);
}

TEST(SplitGraphTest, APartitionIsARegionOfTheGraph) {
  if (absl::IsNotFound(RunProgram({"gpmetis"}))) {
    GTEST_SKIP() << "Debian's package metis is not installed";
  }
  const Graph ring = Ring(900);
  const SlotSplit split = SplitGraph(ring.edges(), SplitKind::kPartition, 1).value();
  // A ninth, to METIS's tolerance; another ninth is in neither part.
  EXPECT_NEAR(static_cast<double>(split.test.size()), 100, 10);
  EXPECT_NEAR(static_cast<double>(split.train.size()), 700, 20);
  EXPECT_LE(CutEdges(ring, split.test), 8) << "a few arcs of the ring";
  EXPECT_EQ(SplitGraph(ring.edges(), SplitKind::kPartition, 1)->test, split.test);
  EXPECT_EQ(SplitGraph(MakeGraph(3, {{0, 1}}).edges(), SplitKind::kPartition, 1).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(SplitGraphTest, ARegionIsConnectedAndHasANinthOfTheNodes) {
  const Graph ring = Ring(900);
  const SlotSplit split = SplitGraph(ring.edges(), SplitKind::kRegion, 1).value();
  EXPECT_EQ(split.test.size(), 100U);
  EXPECT_EQ(split.train.size(), 800U);
  EXPECT_EQ(CutEdges(ring, split.test), 2) << "one arc of the ring";
  EXPECT_EQ(SplitGraph(ring.edges(), SplitKind::kRegion, 1)->test, split.test);
  EXPECT_NE(SplitGraph(ring.edges(), SplitKind::kRegion, 3)->test, split.test);
}

// Two cliques of 9 with one link between them, and 63 isolated nodes.
TEST(SplitGraphTest, ARegionTakesWhatIsLinkedToItMost) {
  Edges edges = {{0, 9}};
  for (const int32_t first : {0, 9}) {
    for (int32_t a = first; a < first + 9; ++a) {
      for (int32_t b = a + 1; b < first + 9; ++b) {
        edges.emplace_back(a, b);
      }
    }
  }
  const Graph graph = MakeGraph(81, edges);
  bool met_a_clique = false;
  for (int64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<int32_t> region = SplitGraph(graph.edges(), SplitKind::kRegion, seed)->test;
    ASSERT_EQ(region.size(), 9U);
    met_a_clique = met_a_clique || CutEdges(graph, region) == 1;
  }
  EXPECT_TRUE(met_a_clique) << "from a node of a clique, the clique";
}

TEST(SplitGraphTest, NamesAreReadBack) {
  for (const SplitKind kind : {SplitKind::kRandom, SplitKind::kPartition, SplitKind::kRegion}) {
    EXPECT_EQ(ParseSplit(SplitName(kind)).value(), kind);
  }
  EXPECT_EQ(ParseSplit("metis").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(RunProgramTest, SaysHowAProgramEnded) {
  EXPECT_TRUE(RunProgram({"true"}).ok());
  EXPECT_EQ(RunProgram({"false"}).message(), "'false' ended with exit code 1");
  EXPECT_EQ(RunProgram({"sh", "-c", "kill -9 $$"}).message(), "'sh' was ended by signal 9");
  EXPECT_EQ(RunProgram({"no-such-program"}).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace dpar::lab
