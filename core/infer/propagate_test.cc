#include "core/infer/propagate.h"

#include "core/infer/edge_inputs.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;

constexpr int64_t kNodes = 400;
constexpr int64_t kFeatures = 5;
constexpr int64_t kClasses = 3;

// A cycle whose nodes have two features each.
Graph Cycle(RandomSource& random) {
  Graph graph;
  graph.sizes = {kNodes, kFeatures, kClasses};
  for (int32_t node = 0; node < kNodes; ++node) {
    const auto before = static_cast<int32_t>((node + kNodes - 1) % kNodes);
    const auto after = static_cast<int32_t>((node + 1) % kNodes);
    graph.neighbours.push_back(std::min(before, after));
    graph.neighbours.push_back(std::max(before, after));
    graph.edge_offsets.push_back(static_cast<int64_t>(graph.neighbours.size()));
    for (const int32_t column : {node % 3, 3 + node % 2}) {
      graph.features.columns.push_back(column);
      graph.features.values.push_back(static_cast<float>(1 + UniformReal(random)));
    }
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
    graph.labels.push_back(kUnlabelled);
  }
  return graph;
}

Model RandomModel(RandomSource& random) {
  Model model;
  model.feature_count = kFeatures;
  model.class_count = kClasses;
  for (int64_t i = 0; i < (kFeatures + 1) * kClasses; ++i) {
    model.weights.push_back(static_cast<float>(4 * UniformReal(random) - 2));
  }
  model.class_shares = {0.8F, 0.1F, 0.1F};
  return model;
}

TEST(ProbabilitiesTest, HoldWhatPredictGivesWhateverTheRule) {
  FixedRandom random(1);
  const Graph graph = Cycle(random);
  const Model model = RandomModel(random);
  for (const Propagation rule : {Propagation::kNone, Propagation::kPower, Propagation::kMeanField}) {
    for (const bool shift : {false, true}) {
      const PredictOptions options = {.propagation = rule, .shift = shift};
      const auto predictions = Predict(model, graph, options);
      ASSERT_TRUE(predictions.ok()) << predictions.status();
      auto logits = GraphLogits(model, graph, 2, [] { return true; });
      ASSERT_TRUE(logits.ok()) << logits.status();
      Propagated propagated = Propagate(model, graph.edges(), *std::move(logits), options, 2);
      EXPECT_EQ(propagated.shift.has_value(), shift && rule != Propagation::kPower);
      const NodeMatrix rows = Probabilities(std::move(propagated), 2);
      for (int64_t node = 0; node < kNodes; ++node) {
        const Prediction& prediction = (*predictions)[static_cast<size_t>(node)];
        ASSERT_EQ(rows(node, prediction.label), prediction.probability) << node;
        ASSERT_EQ(rows.row(node).maxCoeff(), prediction.probability) << node;
        ASSERT_NEAR(rows.row(node).sum(), 1, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace dpar
