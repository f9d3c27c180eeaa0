#include "core/train/class_shares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "core/graph/testing/questions.h"
#include "core/plan/plan.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/testing/random_rows.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using ::dpar::testing::RandomFeatures;
using ::dpar::testing::WithNull;

constexpr int64_t kClasses = 3;

bool Always() { return true; }

Graph SmallGraph(int64_t nodes) {
  FixedRandom random(11);
  return RandomFeatures(nodes, 20, kClasses, 0.3, random);
}

Model SmallModel() {
  FixedRandom random(12);
  Model model;
  model.feature_count = 20;
  model.class_count = kClasses;
  model.logit_noise = 0.7;
  model.weights = testing::RandomWeights({21, 0, kClasses}, 3, random);
  model.weights.resize(21 * kClasses);
  return model;
}

v1::Plan PlanOf(const Graph& graph) {
  v1::TrainingSpec spec;
  spec.set_epsilon(8);
  spec.set_delta(1e-5);
  return MakePlan(spec, graph.sizes).value();
}

v1::Plan WithoutNoise(v1::Plan plan) {
  plan.set_non_private(true);
  plan.mutable_class_shares()->set_noise_stddev(0);
  return plan;
}

std::vector<double> ExactSums(const Graph& graph) {
  FixedRandom random(1);
  return NoisyClassSums(WithoutNoise(PlanOf(graph)), SmallModel(), graph, 1, random, Always).value();
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  return std::sqrt(std::transform_reduce(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                                         [](double x, double y) { return (x - y) * (x - y); }));
}

TEST(NoisyClassSums, AddUpProbabilitiesOfLabelledSlots) {
  Graph graph = SmallGraph(500);
  int64_t labelled = 0;
  for (size_t i = 0; i < graph.labels.size(); ++i) {
    graph.labels[i] = i % 5 == 0 ? kUnlabelled : graph.labels[i];
    labelled += graph.labels[i] == kUnlabelled ? 0 : 1;
  }
  const std::vector<double> sums = ExactSums(graph);
  EXPECT_NEAR(std::accumulate(sums.begin(), sums.end(), 0.0), static_cast<double>(labelled), 1e-3);
}

TEST(NoisyClassSums, RemovingANodeMovesThemByAtMostOneAndByItsOwnTermAlone) {
  const Graph graph = SmallGraph(5000);  // two blocks
  const std::vector<double> all = ExactSums(graph);
  for (const int64_t v : {0, 1, 4095, 4096, 4999}) {
    const double moved = Distance(all, ExactSums(WithNull(graph, v)));
    EXPECT_LE(moved, 1);
    EXPECT_GE(moved, 1 / std::sqrt(kClasses) - 1e-6) << "three probabilities that sum to 1";
  }
}

TEST(NoisyClassSums, ReachTheirSensitivityForACertainNode) {
  Graph graph = SmallGraph(50);
  Model model = SmallModel();
  model.logit_noise = 0;
  std::fill(model.weights.begin(), model.weights.end(), 0.0F);
  model.weights[20 * kClasses] = 1e20F;  // the bias of class 0
  FixedRandom random(1);
  const v1::Plan plan = WithoutNoise(PlanOf(graph));
  const auto with = NoisyClassSums(plan, model, graph, 1, random, Always);
  const auto without = NoisyClassSums(plan, model, WithNull(graph, 7), 1, random, Always);
  const double moved = Distance(*with, *without);
  EXPECT_LE(moved, 1);
  EXPECT_NEAR(moved, 1, 1e-6);
}

TEST(NoisyClassSums, HaveThePlannedNoise) {
  const Graph graph = SmallGraph(200);
  const v1::Plan plan = PlanOf(graph);
  ASSERT_TRUE(plan.has_class_shares());
  const std::vector<double> exact = ExactSums(graph);
  FixedRandom random(2);
  double square = 0;
  constexpr int kRuns = 1000;
  for (int run = 0; run < kRuns; ++run) {
    const double distance = Distance(exact, *NoisyClassSums(plan, SmallModel(), graph, 1, random, Always));
    square += distance * distance / (kClasses * kRuns);
  }
  // The relative deviation of 3,000 squares is 0.026; five of them.
  EXPECT_NEAR(std::sqrt(square), plan.class_shares().noise_stddev(), 0.065 * plan.class_shares().noise_stddev());
}

TEST(NoisyClassSums, AreTheSameWhateverTheNumberOfThreads) {
  const Graph graph = SmallGraph(5000);
  const v1::Plan plan = WithoutNoise(PlanOf(graph));
  FixedRandom random(3);
  const auto once = NoisyClassSums(plan, SmallModel(), graph, 1, random, Always);
  for (const int threads : {2, 5}) {
    EXPECT_EQ(*NoisyClassSums(plan, SmallModel(), graph, threads, random, Always), *once);
  }
}

TEST(NoisyClassSums, AreCancelledWheneverTheyAsk) {
  const Graph graph = SmallGraph(9000);
  const v1::Plan plan = PlanOf(graph);
  FixedRandom random(4);
  const int64_t questions = testing::CancelAtEveryQuestion([&](const std::function<bool()>& keep_going) {
    return NoisyClassSums(plan, SmallModel(), graph, 1, random, keep_going).status();
  });
  EXPECT_GE(questions, 3) << "one for each block of rows";
}

TEST(ClassShares, SumToOneAndKeepRareClassesAboveTheLeastShare) {
  const v1::Plan plan = PlanOf(SmallGraph(300));
  const std::vector<float> shares = ClassShares(plan, {-40, 95, 200});
  // max(S, 0.05 * 300 / 3) = (5, 95, 200)
  EXPECT_FLOAT_EQ(shares[0], 5.0F / 300);
  EXPECT_FLOAT_EQ(shares[1], 95.0F / 300);
  EXPECT_FLOAT_EQ(shares[2], 200.0F / 300);
}

}  // namespace
}  // namespace dpar
