#include "core/infer/predict.h"

#include <cmath>
#include <limits>

#include "core/graph/testing/npz_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::Summary;

// A path 0-1-2 and the isolated node 3. Nodes have feature 0, feature 1, feature 0 and none.
Graph Path() {
  Graph graph;
  graph.sizes = {4, 2, 2};
  graph.edge_offsets = {0, 1, 3, 4, 4};
  graph.neighbours = {1, 0, 2, 1};
  graph.features.offsets = {0, 1, 2, 3, 3};
  graph.features.columns = {0, 1, 0};
  graph.features.values = {4, 9, 1};
  graph.labels = {0, 1, kUnlabelled, 0};
  return graph;
}

// Feature 0 speaks for class 0 by 2, feature 1 for class 1 by 1, the bias input of 0.1 for class 1 by 3.
LinearModel Model() { return {2, 2, {2, 0, 0, 1, 0, 3}, "{}"}; }

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<Prediction> MustPredict(const LinearModel& model, const Graph& graph, const PredictOptions& options) {
  const auto predictions = Predict(model, graph, options);
  EXPECT_TRUE(predictions.ok()) << predictions.status();
  return predictions.ok() ? *predictions : std::vector<Prediction>();
}

void ExpectPrediction(const Prediction& prediction, int32_t label, double margin) {
  EXPECT_EQ(prediction.label, label);
  EXPECT_NEAR(prediction.probability, Sigmoid(margin), 1e-6);
}

// Margins of class 1 over class 0 from own features: 0.3 - 2 s, 0.3 + s, 0.3 - 2 s, 0.3, where s = sqrt(0.99).
TEST(PredictTest, UsesOwnFeaturesAloneWithoutPropagation) {
  const auto predictions = MustPredict(Model(), Path(), {.propagation = Propagation::kNone});
  const double s = std::sqrt(0.99);
  ASSERT_EQ(predictions.size(), 4U);
  ExpectPrediction(predictions[0], 0, 2 * s - 0.3);
  ExpectPrediction(predictions[1], 1, 0.3 + s);
  ExpectPrediction(predictions[2], 0, 2 * s - 0.3);
  ExpectPrediction(predictions[3], 1, 0.3);
}

TEST(PredictTest, FollowsThePowerIteration) {
  const double s = std::sqrt(0.99);
  const double end = 0.3 - 2 * s;  // margins H of nodes 0 and 2
  const double middle = 0.3 + s;   // and of node 1
  const double end1 = 0.75 * middle + 0.25 * end;
  const double middle1 = 0.75 * end + 0.25 * middle;
  const double end2 = 0.75 * middle1 + 0.25 * end;
  const double middle2 = 0.75 * end1 + 0.25 * middle;
  const auto once = MustPredict(Model(), Path(), {.iterations = 1});
  ExpectPrediction(once[0], 1, end1);
  ExpectPrediction(once[1], 0, -middle1);
  const auto twice = MustPredict(Model(), Path(), {});
  ExpectPrediction(twice[0], 0, -end2);
  ExpectPrediction(twice[1], 1, middle2);
  ExpectPrediction(twice[2], 0, -end2);
}

TEST(PredictTest, LetsIsolatedNodesKeepTheirOwn) {
  const auto predictions = MustPredict(Model(), Path(), {.iterations = 1000});
  ExpectPrediction(predictions[3], 1, 0.3);
}

TEST(PredictTest, IsTheSameWithAlphaOneOrNoIterationAsWithoutPropagation) {
  const auto own = MustPredict(Model(), Path(), {.propagation = Propagation::kNone});
  for (const PredictOptions& options : {PredictOptions{.alpha = 1}, PredictOptions{.iterations = 0}}) {
    const auto predictions = MustPredict(Model(), Path(), options);
    for (size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(predictions[i].label, own[i].label);
      EXPECT_EQ(predictions[i].probability, own[i].probability);
    }
  }
}

TEST(PredictTest, GivesTiesToTheLowestLabel) {
  const LinearModel model = {2, 3, {1, 2, 2, 0, 0, 0, 0, 0, 0}, "{}"};
  const auto predictions = MustPredict(model, Path(), {.propagation = Propagation::kNone});
  EXPECT_EQ(predictions[0].label, 1);
  EXPECT_EQ(predictions[1].label, 0);
  EXPECT_NEAR(predictions[1].probability, 1.0 / 3, 1e-6);
}

TEST(PredictTest, StaysFiniteWithTheLargestWeights) {
  const float huge = std::numeric_limits<float>::max();
  Graph graph = Path();
  graph.features.offsets = {0, 2, 2, 2, 2};
  graph.features.columns = {0, 1};
  graph.features.values = {1, 1};
  const LinearModel model = {2, 2, {huge, -huge, huge, -huge, 0, 0}, "{}"};
  for (const Prediction& prediction : MustPredict(model, graph, {})) {
    EXPECT_TRUE(prediction.probability >= 0.5F && prediction.probability <= 1.0F) << prediction.probability;
  }
  const LinearModel cancelling = {2, 2, {huge, huge, -huge, -huge, 0, 0}, "{}"};
  for (const Prediction& prediction : MustPredict(cancelling, graph, {})) {
    EXPECT_EQ(prediction.probability, 0.5F);
  }
}

TEST(PredictTest, CountsNonFiniteFeaturesAsZero) {
  Graph graph = Path();
  graph.features.values[0] = std::numeric_limits<float>::quiet_NaN();
  graph.features.values[1] = std::numeric_limits<float>::infinity();
  const auto predictions = MustPredict(Model(), graph, {.propagation = Propagation::kNone});
  ExpectPrediction(predictions[0], 1, 0.3);
  ExpectPrediction(predictions[1], 1, 0.3);
}

// A cycle large enough for several threads; every node sees the same surroundings, so all predictions are the same.
TEST(PredictTest, GivesTheSameToEveryNodeOfALargeCycle) {
  constexpr int32_t kNodes = 400'000;
  Graph graph;
  graph.sizes = {kNodes, 1, 8};
  for (int32_t node = 0; node < kNodes; ++node) {
    graph.neighbours.push_back((node + kNodes - 1) % kNodes);
    graph.neighbours.push_back((node + 1) % kNodes);
    graph.edge_offsets.push_back(2 * (int64_t{node} + 1));
    graph.features.columns.push_back(0);
    graph.features.values.push_back(1);
    graph.features.offsets.push_back(int64_t{node} + 1);
  }
  const LinearModel model = {1, 8, {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "{}"};
  const double expected = std::exp(std::sqrt(0.99)) / (7 + std::exp(std::sqrt(0.99)));
  const auto predictions = MustPredict(model, graph, {});
  ASSERT_EQ(predictions.size(), static_cast<size_t>(kNodes));
  for (const Prediction& prediction : predictions) {
    ASSERT_EQ(prediction.label, 3);
    ASSERT_NEAR(prediction.probability, expected, 1e-6);
  }
}

TEST(PredictTest, RefusesAGraphOfAnotherWidth) {
  Graph graph = Path();
  graph.sizes.feature_count = 3;
  EXPECT_EQ(Summary(Predict(Model(), graph, {}).status()), "INVALID_ARGUMENT INVALID_FIELD field=graph");
}

TEST(PredictTest, RefusesAModelWhoseWeightsDisagreeWithItsSizes) {
  LinearModel model = Model();
  model.weights.pop_back();
  EXPECT_EQ(Summary(Predict(model, Path(), {}).status()), "INVALID_ARGUMENT INVALID_FIELD field=model");
}

TEST(PredictTest, RefusesOptionsOutOfRange) {
  for (const double alpha : {0.0, -0.5, 1.01, std::nan("")}) {
    EXPECT_EQ(Summary(Predict(Model(), Path(), {.alpha = alpha}).status()),
              "INVALID_ARGUMENT INVALID_FIELD field=alpha");
  }
  for (const int64_t iterations : {int64_t{-1}, int64_t{1001}}) {
    EXPECT_EQ(Summary(Predict(Model(), Path(), {.iterations = iterations}).status()),
              "INVALID_ARGUMENT INVALID_FIELD field=iterations");
  }
}

TEST(AccuracyTest, CountsLabelledNodesOnly) {
  const std::vector<Prediction> predictions = {{0, 1}, {0, 1}, {1, 1}, {0, 1}};
  EXPECT_DOUBLE_EQ(*Accuracy(predictions, std::vector<int32_t>{0, 1, kUnlabelled, 0}), 2.0 / 3);
}

TEST(AccuracyTest, RefusesWhatHasNoAnswer) {
  EXPECT_EQ(Summary(Accuracy({{0, 1}}, std::vector<int32_t>{kUnlabelled}).status()),
            "INVALID_ARGUMENT INVALID_FIELD field=labels");
  EXPECT_EQ(Summary(Accuracy({{0, 1}}, std::vector<int32_t>{0, 1}).status()),
            "INVALID_ARGUMENT INVALID_FIELD field=labels");
}

}  // namespace
}  // namespace dpar
