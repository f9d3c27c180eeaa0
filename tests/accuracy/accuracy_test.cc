// Accuracy under privacy, inductive: 80 % of the slots train, 20 % are the query graph, edges between the two removed.
//
// The splits are fixed and the noise is fresh, so the means over the five splits vary from run to run. Measured over
// 100 runs on cora_ml: 0.688 without propagation (standard deviation 0.007) and 0.726 with power iteration (0.0064);
// over 60 runs on the generated graph: 0.724 (0.0084) and 0.789 (0.0076). Every mark below stands four standard
// deviations or more under its mean: a false alarm in at most one run in ten thousand.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/graph/generate.h"
#include "core/graph/graph_file.h"
#include "core/graph/split.h"
#include "core/infer/predict.h"
#include "core/random/secure_random.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/plan.h"
#include "core/train/train.h"

namespace dpar {
namespace {

constexpr uint64_t kSeeds[] = {1, 2, 3, 4, 5};

struct Split {
  Graph training;
  Graph query;
};

Split RandomSplit(const Graph& graph, uint64_t seed) {
  dpar::testing::FixedRandom random(seed);
  const SlotSplit slots = *SplitSlots(graph.sizes.node_count, /*test_share=*/0.2, random);
  return {.training = InducedSubgraph(graph, slots.train), .query = InducedSubgraph(graph, slots.test)};
}

struct Accuracies {
  double none = 0;
  double power = 0;
};

double AccuracyOf(const LinearModel& model, const Graph& query, Propagation propagation) {
  const auto predictions = Predict(model, query, {.propagation = propagation});
  EXPECT_TRUE(predictions.ok()) << predictions.status();
  if (!predictions.ok()) return 0;
  const auto accuracy = Accuracy(*predictions, query.labels);
  EXPECT_TRUE(accuracy.ok()) << accuracy.status();
  return accuracy.value_or(0);
}

// Trains at (epsilon, delta) with noise from the production source.
Accuracies TrainAndPredict(const Split& split, double epsilon, double delta) {
  v1::TrainingSpec spec;
  spec.set_epsilon(epsilon);
  spec.set_delta(delta);
  const auto plan = MakePlan(spec, split.training.sizes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  SecureRandom random;
  const auto model = Train(*plan, split.training, "cpu", random, [](int64_t) { return true; });
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  return {.none = AccuracyOf(*model, split.query, Propagation::kNone),
          .power = AccuracyOf(*model, split.query, Propagation::kPower)};
}

Accuracies MeanOverSeeds(const std::string& name, const Graph& graph, double epsilon, double delta) {
  Accuracies mean;
  for (const uint64_t seed : kSeeds) {
    const Accuracies one = TrainAndPredict(RandomSplit(graph, seed), epsilon, delta);
    std::printf("%s, epsilon %g, delta %g, split %d: none %.4f, power %.4f\n", name.c_str(), epsilon, delta,
                static_cast<int>(seed), one.none, one.power);
    mean.none += one.none / std::size(kSeeds);
    mean.power += one.power / std::size(kSeeds);
  }
  std::printf("%s, mean: none %.4f, power %.4f\n", name.c_str(), mean.none, mean.power);
  return mean;
}

TEST(AccuracyTest, CoraMlAtEpsilonOneReachesItsMarks) {
  const char* source = std::getenv("DPAR_SOURCE_DIR");
  const std::string path = absl::StrCat(source != nullptr ? source : ".", "/../shared/data/cora_ml.npz");
  if (!std::filesystem::exists(path)) {
    std::printf("%s is not there; the generated graph below stands for it\n", path.c_str());
    GTEST_SKIP();
  }
  const auto imported = ReadGraphFile(path, GraphLimits{}, std::nullopt);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Accuracies mean = MeanOverSeeds("cora_ml", imported->graph, 1, 2e-3);
  EXPECT_GE(mean.none, 0.66);
  EXPECT_GE(mean.power, 0.70);
}

// Weak features and a homophilous graph, so that the marks of the test above have a counterpart without its file.
Graph GeneratedGraph() {
  dpar::testing::FixedRandom random(11);
  const auto graph = GenerateGraph({.nodes = 3000,
                                    .classes = 7,
                                    .features = 1000,
                                    .average_degree = 5,
                                    .homophily = 0.8,
                                    .features_per_node = 40,
                                    .signal = 0.25},
                                   random);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.value_or(Graph());
}

TEST(AccuracyTest, AGeneratedGraphAtEpsilonOneReachesItsMarks) {
  const Accuracies mean = MeanOverSeeds("generated", GeneratedGraph(), 1, 2e-3);
  EXPECT_GE(mean.none, 0.69);
  EXPECT_GE(mean.power, 0.755);
}

TEST(AccuracyTest, MorePrivacyCostsAccuracyAndLessGivesItBack) {
  const Graph graph = GeneratedGraph();
  const double tight = MeanOverSeeds("generated", graph, 0.25, 2e-3).none;
  const double middle = MeanOverSeeds("generated", graph, 1, 2e-3).none;
  const double loose = MeanOverSeeds("generated", graph, 4, 2e-3).none;
  EXPECT_LT(tight + 0.05, middle);
  EXPECT_LT(middle + 0.05, loose);
}

}  // namespace
}  // namespace dpar
