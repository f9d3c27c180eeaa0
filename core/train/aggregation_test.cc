#include "core/train/aggregation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "core/infer/edge_inputs.h"
#include "core/plan/plan.h"
#include "core/plan/plan_event.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/testing/random_rows.h"
#include "core/train/train.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;

constexpr int64_t kLeaves = 9;

bool Always() { return true; }

// A hub with kLeaves leaves, a pair beside them, and a null slot. All classes occur.
Graph HubAndPair() {
  Graph graph;
  constexpr int64_t kNodes = kLeaves + 4;
  graph.sizes = {kNodes, 3, 2};
  std::vector<std::vector<int32_t>> lists(kNodes);
  for (int32_t leaf = 1; leaf <= kLeaves; ++leaf) {
    lists[0].push_back(leaf);
    lists[static_cast<size_t>(leaf)] = {0};
  }
  lists[kLeaves + 1] = {kLeaves + 2};
  lists[kLeaves + 2] = {kLeaves + 1};
  for (size_t node = 0; node < lists.size(); ++node) {
    graph.neighbours.insert(graph.neighbours.end(), lists[node].begin(), lists[node].end());
    graph.edge_offsets.push_back(static_cast<int64_t>(graph.neighbours.size()));
    if (node + 1 < lists.size()) {
      graph.features.columns.push_back(static_cast<int32_t>(node % 3));
      graph.features.values.push_back(1);
    }
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
    graph.labels.push_back(node + 1 < lists.size() ? static_cast<int32_t>(node % 2) : kUnlabelled);
  }
  return graph;
}

v1::Plan GapPlan(double epsilon, double clip) {
  v1::TrainingSpec spec;
  spec.set_method(v1::GAP);
  spec.set_epsilon(epsilon);
  spec.set_delta(1e-3);
  spec.mutable_options()->set_hidden_size(2);
  spec.mutable_options()->set_steps(2);
  spec.mutable_options()->set_aggregation_clip(clip);
  return MakePlan(spec, HubAndPair().sizes, kLeaves).value();
}

// Every slot's row is the same unit vector: nothing can move sums further.
NodeMatrix AlignedRows() {
  NodeMatrix rows = NodeMatrix::Zero(kLeaves + 4, 2);
  rows.col(0).setOnes();
  return rows;
}

std::vector<double> Hop(const v1::Plan& plan, const Graph& graph, uint64_t seed, int threads = 1) {
  FixedRandom random(seed);
  return AggregateHop(plan, graph.edges(), AlignedRows(), threads, random, Always).value();
}

// The same noise on both graphs, so that what is left of the difference is that of the sums on the lattice.
double Distance(const v1::Plan& plan, const Graph& with, const Graph& without) {
  const std::vector<double> a = Hop(plan, with, 5);
  const std::vector<double> b = Hop(plan, without, 5);
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    square += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return std::sqrt(square);
}

TEST(AggregateHop, AHubAtThePromiseMovesTheSumsByWhatIsChargedAndNoMore) {
  const Graph with = HubAndPair();
  const Graph without = testing::WithNull(with, 0);
  for (const double clip : {0.5, 2.0, 5.0, 20.0}) {
    const v1::Plan plan = GapPlan(1, clip);
    const double charged = plan.event().composition().events(1).stage().event().gaussian().sensitivity();
    const double distance = Distance(plan, with, without);
    EXPECT_LE(distance, charged) << clip;
    const double leaf = std::min(1.0, clip);
    const double own = std::min(static_cast<double>(kLeaves), clip);
    EXPECT_NEAR(distance, std::sqrt(kLeaves * leaf * leaf + own * own), 1e-3 * distance) << clip;
    EXPECT_GT(distance * (1 + 1e-4), clip >= 2 ? std::sqrt(static_cast<double>(kLeaves)) : 0)
        << "sqrt(D) alone does not cover it";
  }
}

TEST(AggregateHop, NoNodesRemovalMovesTheSumsFurtherThanIsCharged) {
  const Graph graph = HubAndPair();
  const v1::Plan plan = GapPlan(1, 3);
  const double charged = plan.event().composition().events(1).stage().event().gaussian().sensitivity();
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    EXPECT_LE(Distance(plan, graph, testing::WithNull(graph, node)), charged) << node;
  }
}

TEST(AggregateHop, EverySlotIsNoisyAlsoOneThatIsNull) {
  const v1::Plan plan = GapPlan(1, 3);
  const std::vector<double> sums = Hop(plan, HubAndPair(), 7);
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_NE(sums[i], std::round(sums[i])) << i;
  }
  EXPECT_NE(Hop(plan, HubAndPair(), 8), sums);
}

TEST(AggregateHop, LiesOnTheLatticeOfItsNoise) {
  const v1::Plan plan = GapPlan(1, 3);
  const double step = std::exp2(std::floor(std::log2(std::ldexp(plan.aggregation().noise_stddev(), -24))));
  for (const double value : Hop(plan, HubAndPair(), 7)) {
    EXPECT_EQ(std::fmod(value, step), 0);
  }
}

TEST(AggregateHop, DoesNotDependOnTheNumberOfThreads) {
  const v1::Plan plan = GapPlan(1, 3);
  EXPECT_EQ(Hop(plan, HubAndPair(), 7, 1), Hop(plan, HubAndPair(), 7, 3));
}

TEST(AggregateHop, WithoutNoiseIsThePlainSum) {
  v1::TrainingSpec spec;
  spec.set_method(v1::GAP);
  spec.set_non_private(true);
  const v1::Plan plan = MakePlan(spec, HubAndPair().sizes).value();
  const std::vector<double> sums = Hop(plan, HubAndPair(), 7);
  EXPECT_EQ(sums[0], kLeaves);
  EXPECT_EQ(sums[1], 0);
  EXPECT_EQ(sums[2], 1);
}

TEST(AggregateHop, StopsWhenTold) {
  FixedRandom random(1);
  EXPECT_EQ(
      AggregateHop(GapPlan(1, 3), HubAndPair().edges(), AlignedRows(), 2, random, [] { return false; }).status().code(),
      absl::StatusCode::kCancelled);
}

TEST(SampleNeighbours, TakesAllOfAShortListAndAUniformPartOfALongOne) {
  const Graph graph = HubAndPair();
  FixedRandom random(3);
  std::vector<int> chosen(kLeaves + 1, 0);
  constexpr int kRounds = 900;
  for (int round = 0; round < kRounds; ++round) {
    const NeighbourLists lists = SampleNeighbours(graph.edges(), 3, random);
    const EdgesView view = lists;
    ASSERT_EQ(view.neighbours_of(0).size(), 3U);
    EXPECT_TRUE(std::is_sorted(view.neighbours_of(0).begin(), view.neighbours_of(0).end()));
    for (const int32_t neighbour : view.neighbours_of(0)) {
      ++chosen[static_cast<size_t>(neighbour)];
    }
    ASSERT_EQ(view.neighbours_of(1).size(), 1U);
    ASSERT_EQ(view.neighbours_of(kLeaves + 3).size(), 0U);
  }
  for (int64_t leaf = 1; leaf <= kLeaves; ++leaf) {
    EXPECT_NEAR(chosen[static_cast<size_t>(leaf)], kRounds / 3, 100) << leaf;
  }
}

// Removing a node changes its own row and those of its neighbours, at most D, and no other.
TEST(SageRows, OnlyTheRemovedNodeAndItsNeighboursHaveOtherRows) {
  const Graph with = HubAndPair();
  for (int64_t node = 0; node < with.sizes.node_count; ++node) {
    const Graph without = testing::WithNull(with, node);
    const SparseRows a = NeighbourMeanRows(with.features, 3, with.edges(), v1::UNIT, Always).value();
    const SparseRows b = NeighbourMeanRows(without.features, 3, without.edges(), v1::UNIT, Always).value();
    int64_t changed = 0;
    for (int64_t slot = 0; slot < with.sizes.node_count; ++slot) {
      const SparseRowsView before = a;
      const SparseRowsView after = b;
      const bool same = std::ranges::equal(before.row_columns(slot), after.row_columns(slot)) &&
                        std::ranges::equal(before.row_values(slot), after.row_values(slot));
      changed += same ? 0 : 1;
    }
    EXPECT_LE(changed, 1 + static_cast<int64_t>(with.edges().neighbours_of(node).size())) << node;
  }
}

TrainingCallbacks Silent() {
  return {Always, [](TrainingStage, int64_t, int64_t) {}};
}

TEST(TrainRivals, AGraphThatBreaksThePromiseIsRefused) {
  const Graph graph = HubAndPair();
  for (const v1::Method method : {v1::GAP, v1::SAGE}) {
    v1::TrainingSpec spec;
    spec.set_method(method);
    spec.set_epsilon(1);
    spec.set_delta(1e-3);
    spec.mutable_options()->set_steps(2);
    FixedRandom random(1);
    const v1::Plan broken = MakePlan(spec, graph.sizes, kLeaves - 1).value();
    EXPECT_EQ(Train(broken, graph, {}, random, Silent()).status().code(), absl::StatusCode::kInvalidArgument);
    const v1::Plan kept = MakePlan(spec, graph.sizes, kLeaves).value();
    EXPECT_TRUE(Train(kept, graph, {}, random, Silent()).ok());
  }
}

TEST(TrainRivals, ModelsHaveTheShapesOfTheirPlansAndStepsAreCountedOverBothTrainings) {
  const Graph graph = HubAndPair();
  v1::TrainingSpec spec;
  spec.set_method(v1::GAP);
  spec.set_epsilon(1);
  spec.set_delta(1e-3);
  spec.mutable_options()->set_steps(3);
  spec.mutable_options()->set_hops(4);
  const v1::Plan plan = MakePlan(spec, graph.sizes, kLeaves).value();
  std::vector<int64_t> steps;
  TrainingCallbacks callbacks = Silent();
  callbacks.on_progress = [&](TrainingStage stage, int64_t completed, int64_t total) {
    EXPECT_EQ(stage, TrainingStage::kTraining);
    EXPECT_EQ(total, 6);
    steps.push_back(completed);
  };
  FixedRandom random(1);
  const auto gap = Train(plan, graph, {}, random, callbacks);
  ASSERT_TRUE(gap.ok()) << gap.status();
  EXPECT_TRUE(ValidateModel(gap->model).ok());
  EXPECT_EQ(gap->model.hops, 4);
  EXPECT_EQ(gap->model.input_count(), 5 * 16);
  EXPECT_THAT(steps, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));

  spec.set_method(v1::SAGE);
  spec.mutable_options()->clear_hops();
  const auto sage = Train(MakePlan(spec, graph.sizes, kLeaves).value(), graph, {}, random, Silent());
  ASSERT_TRUE(sage.ok()) << sage.status();
  EXPECT_TRUE(ValidateModel(sage->model).ok());
  EXPECT_EQ(sage->model.input_count(), 6);
  EXPECT_EQ(sage->model.hidden_size, 100);
}

}  // namespace
}  // namespace dpar
