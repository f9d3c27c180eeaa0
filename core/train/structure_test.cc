#include "core/train/structure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/graph/generate.h"
#include "core/plan/plan.h"
#include "core/random/testing/fixed_random.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;

Graph SomeGraph() {
  FixedRandom random(1);
  return *GenerateGraph({.nodes = 300, .classes = 3, .features = 20, .average_degree = 6}, random);
}

v1::Plan PlanFor(v1::Method method, bool non_private, int64_t max_occurrence) {
  v1::TrainingSpec spec;
  spec.set_method(method);
  if (non_private) {
    spec.set_non_private(true);
  } else {
    spec.set_epsilon(1);
    spec.set_delta(1e-4);
  }
  spec.mutable_options()->set_top_k(3);
  spec.mutable_options()->set_appr_nodes(100);
  spec.mutable_options()->set_max_occurrence(max_occurrence);
  const auto plan = MakePlan(spec, SomeGraph().sizes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(v1::Plan());
}

ApprRows MustDraw(const v1::Plan& plan, const Graph& graph) {
  FixedRandom random(2);
  const auto rows = DrawStructure(plan, graph, 2, random, [] { return true; });
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.value_or(ApprRows());
}

TEST(DrawStructure, NoSlotIsListedMoreOftenThanThePlanCharges) {
  const Graph graph = SomeGraph();
  for (const v1::Method method : {v1::DPAR_EM0, v1::DPAR_EM1, v1::DPAR_GM}) {
    for (const bool non_private : {false, true}) {
      for (const int64_t most : {1, 2}) {
        const ApprRows rows = MustDraw(PlanFor(method, non_private, most), graph);
        EXPECT_EQ(rows.seeds.size(), 100);
        std::map<int32_t, int64_t> occurrences;
        for (const int32_t column : rows.columns) {
          EXPECT_LE(++occurrences[column], most);
        }
      }
    }
  }
}

TEST(DrawStructure, WithoutNoiseTakesTheLargestEntriesOfTheExactRows) {
  const Graph graph = SomeGraph();
  v1::Plan plan = PlanFor(v1::DPAR_GM, /*non_private=*/true, 100);
  plan.mutable_structure()->set_column_clip(1e12);
  const ApprRows rows = MustDraw(plan, graph);
  ApprParameters parameters;
  const auto exact = SolveRows(graph.edges(), parameters, rows.seeds, 1, [](int64_t) { return true; });
  ASSERT_TRUE(exact.ok());
  for (size_t i = 0; i < rows.seeds.size(); ++i) {
    std::vector<double> values(exact->values.begin() + exact->offsets[i],
                               exact->values.begin() + exact->offsets[i + 1]);
    std::sort(values.rbegin(), values.rend());
    values.resize(std::min<size_t>(values.size(), 3));
    std::vector<double> kept(rows.values.begin() + rows.offsets[i], rows.values.begin() + rows.offsets[i + 1]);
    std::sort(kept.rbegin(), kept.rend());
    EXPECT_EQ(kept, values) << "seed " << rows.seeds[i];
  }
}

TEST(DrawStructure, EqualWeightsAreEqual) {
  for (const bool non_private : {false, true}) {
    v1::Plan plan = PlanFor(v1::DPAR_EM0, non_private, 1);
    const ApprRows rows = MustDraw(plan, SomeGraph());
    EXPECT_THAT(rows.values, ::testing::Each(1.0 / 3));
  }
}

TEST(DrawStructure, StopsWhenToldTo) {
  const Graph graph = SomeGraph();
  for (const bool non_private : {false, true}) {
    FixedRandom random(3);
    const auto rows = DrawStructure(PlanFor(v1::DPAR_EM1, non_private, 1), graph, 1, random, [] { return false; });
    EXPECT_TRUE(absl::IsCancelled(rows.status()));
  }
}

}  // namespace
}  // namespace dpar
