#include "core/graph/keep_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/graph/generate.h"
#include "core/graph/testing/questions.h"
#include "core/pace.h"
#include "core/random/subsets.h"
#include "core/random/testing/fixed_random.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;

// A path 0 - 1 - 2 - 3; slot i has feature i with value i + 1 and label i % 2.
Graph Path() {
  Graph graph;
  graph.sizes = {4, 4, 2};
  graph.edge_offsets = {0, 1, 3, 5, 6};
  graph.neighbours = {1, 0, 2, 1, 3, 2};
  graph.features.offsets = {0, 1, 2, 3, 4};
  graph.features.columns = {0, 1, 2, 3};
  graph.features.values = {1, 2, 3, 4};
  graph.labels = {0, 1, 0, 1};
  return graph;
}

Graph MustKeep(const GraphView& graph, std::span<const int64_t> kept) {
  return KeepSlots(graph, kept, [] { return true; }).value();
}

TEST(KeepSlots, MakesTheOtherSlotsNullAndKeepsIds) {
  const std::vector<int64_t> kept = {0, 2, 3};
  const Graph graph = MustKeep(Path(), kept);
  EXPECT_EQ(graph.sizes, Path().sizes);
  EXPECT_THAT(graph.edge_offsets, ElementsAre(0, 0, 0, 1, 2));
  EXPECT_THAT(graph.neighbours, ElementsAre(3, 2));
  EXPECT_THAT(graph.features.offsets, ElementsAre(0, 1, 1, 2, 3));
  EXPECT_THAT(graph.features.columns, ElementsAre(0, 2, 3));
  EXPECT_THAT(graph.features.values, ElementsAre(1, 3, 4));
  EXPECT_THAT(graph.labels, ElementsAre(0, kUnlabelled, 0, 1));
  EXPECT_TRUE(GraphView(graph).IsNull(1));
}

TEST(KeepSlots, KeepingAllChangesNothingAndKeepingNoneLeavesNull) {
  std::vector<int64_t> all(4);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(MustKeep(Path(), all), Path());
  const Graph none = MustKeep(Path(), {});
  EXPECT_EQ(none.edge_count(), 0);
  for (int64_t slot = 0; slot < 4; ++slot) {
    EXPECT_TRUE(GraphView(none).IsNull(slot));
  }
}

// What a later stage sees of a sample without v is what it sees of the graph without v.
TEST(KeepSlots, ASlotThatIsLeftOutCannotBeToldFromOneThatWasNull) {
  testing::FixedRandom random(5);
  const Graph graph = *GenerateGraph({.nodes = 200, .classes = 3, .features = 20}, random);
  std::vector<int64_t> all_but_one(199);
  std::iota(all_but_one.begin(), all_but_one.end(), 1);
  const Graph without = MustKeep(graph, all_but_one);
  for (int repeat = 0; repeat < 10; ++repeat) {
    std::vector<int64_t> sample = PoissonSubset(random, 200, 0.5);
    std::vector<int64_t> with_first = sample;
    if (sample.empty() || sample.front() != 0) {
      with_first.insert(with_first.begin(), 0);
    } else {
      sample.erase(sample.begin());
    }
    EXPECT_EQ(MustKeep(graph, sample), MustKeep(without, with_first));
  }
}

TEST(KeepSlots, IsCancelledWheneverItAsksWhichIsOftenEnough) {
  testing::FixedRandom random(6);
  const Graph graph = *GenerateGraph({.nodes = 20'000, .classes = 3, .features = 200, .features_per_node = 20}, random);
  const std::vector<int64_t> kept = PoissonSubset(random, 20'000, 0.5);
  int64_t work = graph.sizes.node_count;
  for (const int64_t slot : kept) {
    work += static_cast<int64_t>(graph.edges().neighbours_of(slot).size() +
                                 GraphView(graph).features.row_columns(slot).size());
  }
  const int64_t questions = testing::CancelAtEveryQuestion(
      [&](const std::function<bool()>& keep_going) { return KeepSlots(graph, kept, keep_going).status(); });
  EXPECT_GE(questions, 4);
  EXPECT_GE(questions, work / (kEntriesPerQuestion + 1000)) << "no row here has more than 1000 entries";
}

}  // namespace
}  // namespace dpar
