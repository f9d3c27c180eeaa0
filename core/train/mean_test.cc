#include "core/train/mean.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "core/graph/generate.h"
#include "core/graph/testing/questions.h"
#include "core/pace.h"
#include "core/plan/plan.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/testing/random_rows.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using ::dpar::testing::WithNull;

Graph SmallGraph(int64_t nodes) {
  FixedRandom random(11);
  GeneratorOptions options;
  options.nodes = nodes;
  options.classes = 3;
  options.features = 30;
  options.features_per_node = 6;
  options.average_degree = 4;
  return *GenerateGraph(options, random);
}

v1::Plan CentredPlan(const Graph& graph) {
  v1::TrainingSpec spec;
  spec.set_epsilon(8);
  spec.set_delta(1e-5);
  spec.mutable_options()->set_center(true);
  return MakePlan(spec, graph.sizes).value();
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    square += (a[i] - b[i]) * (a[i] - b[i]);
  }
  return std::sqrt(square);
}

TEST(PrivateMean, IsCancelledWheneverItAsksWhichIsOftenEnough) {
  for (const int64_t nodes : {1'000, 40'000}) {
    const Graph graph = SmallGraph(nodes);
    const v1::Plan plan = CentredPlan(graph);
    FixedRandom random(24);
    const int64_t questions = testing::CancelAtEveryQuestion(
        [&](const std::function<bool()>& keep_going) { return PrivateMean(plan, graph, random, keep_going).status(); });
    EXPECT_GE(questions, 1);
    EXPECT_GE(questions, static_cast<int64_t>(graph.features.values.size()) / (kEntriesPerQuestion + 100));
  }
}

TEST(PrivateMean, IsTheMeanOfUnitRowsShrunkByItsNoise) {
  const Graph graph = SmallGraph(1000);
  v1::Plan plan = CentredPlan(graph);
  FixedRandom random(21);
  const auto noisy = PrivateMean(plan, graph, random, [] { return true; });
  ASSERT_TRUE(noisy.ok());
  plan.set_non_private(true);
  plan.mutable_mean()->set_noise_stddev(0);
  const auto exact = PrivateMean(plan, graph, random, [] { return true; });
  ASSERT_TRUE(exact.ok());
  std::vector<double> expected(30, 0.0);
  const GraphView view = graph;
  for (int64_t slot = 0; slot < 1000; ++slot) {
    const auto values = view.features.row_values(slot);
    double total = 0;
    for (const float value : values) {
      total += static_cast<double>(value);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      expected[static_cast<size_t>(view.features.row_columns(slot)[i])] +=
          std::sqrt(static_cast<double>(values[i]) / total) / 1000;
    }
  }
  for (size_t j = 0; j < 30; ++j) {
    EXPECT_NEAR((*exact)[j], expected[j], 1e-6);
    EXPECT_NEAR((*noisy)[j], expected[j], 0.05);
    EXPECT_NE((*noisy)[j], (*exact)[j]);
  }
}

TEST(PrivateMean, RemovingANodeMovesTheSumByAtMostOne) {
  const Graph graph = SmallGraph(60);
  v1::Plan plan = CentredPlan(graph);
  plan.set_non_private(true);
  plan.mutable_mean()->set_noise_stddev(0);
  FixedRandom random(22);
  const auto sum_of = [&](const Graph& one) {
    const std::vector<float> mean = *PrivateMean(plan, one, random, [] { return true; });
    std::vector<double> sum;
    for (const float value : mean) {
      sum.push_back(60 * static_cast<double>(value));
    }
    return sum;
  };
  for (int64_t v = 0; v < 60; ++v) {
    const double moved = Distance(sum_of(graph), sum_of(WithNull(graph, v)));
    EXPECT_LE(moved, 1 + 1e-5) << "the mean is in floats";
    EXPECT_GT(moved, 0.999);
  }
}

}  // namespace
}  // namespace dpar
