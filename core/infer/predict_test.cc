#include "core/infer/predict.h"

#include <cmath>
#include <limits>
#include <set>

#include "core/graph/testing/npz_fixture.h"
#include "core/infer/logits.h"
#include "core/infer/power_iteration.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
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

Model LinearModel(int64_t features, int64_t classes, std::vector<float> weights) {
  Model model;
  model.feature_count = features;
  model.class_count = classes;
  model.weights = std::move(weights);
  return model;
}

// Feature 0 speaks for class 0 by 2, feature 1 for class 1 by 1, the bias input of 0.1 for class 1 by 3.
Model Speaking() { return LinearModel(2, 2, {2, 0, 0, 1, 0, 3}); }

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<Prediction> MustPredict(const Model& model, const Graph& graph, const PredictOptions& options) {
  const auto predictions = Predict(model, graph, options);
  EXPECT_TRUE(predictions.ok()) << predictions.status();
  return predictions.ok() ? *predictions : std::vector<Prediction>();
}

constexpr PredictOptions kOwnFeatures = {.propagation = Propagation::kNone};
constexpr PredictOptions kPower = {.propagation = Propagation::kPower};

// `margin` is that of class 1 over class 0.
void ExpectMargin(const Prediction& prediction, double margin) {
  EXPECT_EQ(prediction.label, margin > 0 ? 1 : 0);
  EXPECT_NEAR(prediction.probability, Sigmoid(std::abs(margin)), 1e-6);
}

// Margins from own features: 0.3 - 2 s, 0.3 + s, 0.3 - 2 s, 0.3, where s = sqrt(0.99).
const double kEnd = 0.3 - 2 * std::sqrt(0.99);
const double kMiddle = 0.3 + std::sqrt(0.99);

TEST(PredictTest, UsesOwnFeaturesAloneWithoutPropagation) {
  const auto predictions = MustPredict(Speaking(), Path(), kOwnFeatures);
  ASSERT_EQ(predictions.size(), 4U);
  ExpectMargin(predictions[0], kEnd);
  ExpectMargin(predictions[1], kMiddle);
  ExpectMargin(predictions[2], kEnd);
  ExpectMargin(predictions[3], 0.3);
}

TEST(PredictTest, TransformsRowsAsTheModelSays) {
  Graph graph = Path();
  graph.features.offsets = {0, 2, 2, 2, 2};
  graph.features.columns = {0, 1};
  graph.features.values = {9, 16};
  Model model = LinearModel(2, 2, {0, 1, 0, -0.125, 0, 0});
  const double s = std::sqrt(0.99);
  ExpectMargin(MustPredict(model, graph, kOwnFeatures)[0], s * (0.6 - 0.1));
  model.transform = v1::UNIT;
  ExpectMargin(MustPredict(model, graph, kOwnFeatures)[0], s * (9 - 2) / std::sqrt(337));
  model.transform = v1::RAW;
  ExpectMargin(MustPredict(model, graph, kOwnFeatures)[0], 9 - 2);
  graph.features.values = {-9, 16};
  ExpectMargin(MustPredict(model, graph, kOwnFeatures)[0], -9 - 2);
  model.transform = v1::SQRT_UNIT;
  ExpectMargin(MustPredict(model, graph, kOwnFeatures)[0], s * (-0.6 - 0.1));
}

// u - m is (0.25, 0) for nodes 0 and 2, (-0.75, 1) with length 1.25 for node 1, and (-0.75, 0) for node 3.
TEST(PredictTest, SubtractsTheCenter) {
  Model model = Speaking();
  model.center = {0.75, 0};
  const auto predictions = MustPredict(model, Path(), kOwnFeatures);
  const double s = std::sqrt(0.99);
  ExpectMargin(predictions[0], 0.3 - 2 * s);
  ExpectMargin(predictions[1], 0.3 + s * (2 * 0.6 + 0.8));
  ExpectMargin(predictions[3], 0.3 + 2 * s);
}

TEST(PredictTest, LeavesOnlyTheBiasOfARowThatIsTheCenter) {
  Model model = Speaking();
  model.center = {1, 0};
  ExpectMargin(MustPredict(model, Path(), kOwnFeatures)[0], 0.3);
}

// Two hidden units, feature 0 less feature 1 and the reverse, each with half the bias input; class 1 takes 3 of the
// second, class 0 takes 2 of the first.
TEST(PredictTest, PassesAHiddenLayer) {
  Model model = LinearModel(2, 2, {1, -1, -1, 1, 0.5, 0.5});
  model.hidden_size = 2;
  model.output_weights = {2, 0, 0, 3};
  const auto predictions = MustPredict(model, Path(), kOwnFeatures);
  const double s = std::sqrt(0.99);
  ExpectMargin(predictions[0], -2 * (s + 0.05));
  ExpectMargin(predictions[1], 3 * (s + 0.05));
  ExpectMargin(predictions[3], 3 * 0.05 - 2 * 0.05);
}

TEST(PredictTest, FollowsThePowerIteration) {
  const double end1 = 0.75 * kMiddle + 0.25 * kEnd;
  const double middle1 = 0.75 * kEnd + 0.25 * kMiddle;
  const double end2 = 0.75 * middle1 + 0.25 * kEnd;
  const double middle2 = 0.75 * end1 + 0.25 * kMiddle;
  const auto once = MustPredict(Speaking(), Path(), {.propagation = Propagation::kPower, .iterations = 1});
  ExpectMargin(once[0], end1);
  ExpectMargin(once[1], middle1);
  const auto twice = MustPredict(Speaking(), Path(), kPower);
  ExpectMargin(twice[0], end2);
  ExpectMargin(twice[1], middle2);
  ExpectMargin(twice[2], end2);
}

TEST(PredictTest, AddsSelfLoopsToThePowerIteration) {
  const auto predictions =
      MustPredict(Speaking(), Path(), {.propagation = Propagation::kPower, .iterations = 1, .self_loops = true});
  ExpectMargin(predictions[0], 0.75 * (kMiddle + kEnd) / 2 + 0.25 * kEnd);
  ExpectMargin(predictions[1], 0.75 * (2 * kEnd + kMiddle) / 3 + 0.25 * kMiddle);
  ExpectMargin(predictions[3], 0.3);
}

// The ends have one neighbour, the middle two.
TEST(PredictTest, NormalisesThePowerIterationSymmetrically) {
  PredictOptions options = {
      .propagation = Propagation::kPower, .iterations = 1, .normalisation = Normalisation::kSymmetric};
  const auto once = MustPredict(Speaking(), Path(), options);
  const double end1 = 0.75 * kMiddle / std::sqrt(2) + 0.25 * kEnd;
  const double middle1 = 0.75 * 2 * kEnd / std::sqrt(2) + 0.25 * kMiddle;
  ExpectMargin(once[0], end1);
  ExpectMargin(once[1], middle1);
  ExpectMargin(once[3], 0.3);
  options.iterations = 2;
  ExpectMargin(MustPredict(Speaking(), Path(), options)[0], 0.75 * middle1 / std::sqrt(2) + 0.25 * kEnd);
}

// With self loops the ends have degree two, the middle three.
TEST(PredictTest, NormalisesSelfLoopsSymmetrically) {
  const auto predictions = MustPredict(Speaking(), Path(),
                                       {.propagation = Propagation::kPower,
                                        .alpha = 0.5,
                                        .iterations = 1,
                                        .normalisation = Normalisation::kSymmetric,
                                        .self_loops = true});
  ExpectMargin(predictions[0], 0.5 * (kEnd / 2 + kMiddle / std::sqrt(6)) + 0.5 * kEnd);
  ExpectMargin(predictions[1], 0.5 * (2 * kEnd / std::sqrt(6) + kMiddle / 3) + 0.5 * kMiddle);
  ExpectMargin(predictions[3], 0.3);
}

TEST(PredictTest, LetsIsolatedNodesKeepTheirOwn) {
  for (const Normalisation normalisation : {Normalisation::kRow, Normalisation::kSymmetric}) {
    for (const bool self_loops : {false, true}) {
      const auto predictions = MustPredict(Speaking(), Path(),
                                           {.propagation = Propagation::kPower,
                                            .iterations = 1000,
                                            .normalisation = normalisation,
                                            .self_loops = self_loops});
      ExpectMargin(predictions[3], 0.3);
    }
  }
  ExpectMargin(MustPredict(Speaking(), Path(), {})[3], 0.3);
}

TEST(PredictTest, IsTheSameWithAlphaOneOrNoIterationAsWithoutPropagation) {
  const auto own = MustPredict(Speaking(), Path(), kOwnFeatures);
  for (const PredictOptions& options : {PredictOptions{.propagation = Propagation::kPower, .alpha = 1},
                                        PredictOptions{.propagation = Propagation::kPower, .iterations = 0}}) {
    const auto predictions = MustPredict(Speaking(), Path(), options);
    for (size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(predictions[i].label, own[i].label);
      EXPECT_EQ(predictions[i].probability, own[i].probability);
    }
  }
}

// Ten nodes in eleven speak for class 0 by a little, where training saw as many of either class.
TEST(PredictTest, CorrectsForClassesThatAreMixedDifferentlyThanInTraining) {
  constexpr int32_t kNodes = 1100;
  Graph graph;
  graph.sizes = {kNodes, 2, 2};
  for (int32_t node = 0; node < kNodes; ++node) {
    graph.features.columns.push_back(node % 11 == 0 ? 1 : 0);
    graph.features.values.push_back(1);
    graph.features.offsets.push_back(node + 1);
    graph.edge_offsets.push_back(0);
    graph.labels.push_back(kUnlabelled);
  }
  Model model = LinearModel(2, 2, {1, 0, 0, 0.5, 0, 0});
  model.class_shares = {0.5, 0.5};
  std::vector<Prediction> predictions;
  const auto run = [&](const PredictOptions& options) {
    predictions.clear();
    auto shift = PredictBlocks(model, graph, options, [&](int64_t first, std::span<const Prediction> block) {
      EXPECT_EQ(first, static_cast<int64_t>(predictions.size()));
      predictions.insert(predictions.end(), block.begin(), block.end());
      return absl::OkStatus();
    });
    EXPECT_TRUE(shift.ok()) << shift.status();
    return shift.value_or(std::nullopt);
  };
  for (const Propagation rule : {Propagation::kNone, Propagation::kMeanField}) {
    const auto found = run({.propagation = rule});
    ASSERT_TRUE(found.has_value() && found->found());
    EXPECT_GT(found->distance, found->threshold);
    EXPECT_EQ(predictions[0].label, 0) << "rare on this graph, and its feature says little";
    EXPECT_FALSE(run({.propagation = rule, .shift = false}).has_value());
    EXPECT_EQ(predictions[0].label, 1);
  }
  EXPECT_FALSE(run(kPower).has_value());
  model.class_shares.clear();
  EXPECT_FALSE(run(kOwnFeatures).has_value());
  EXPECT_EQ(predictions[0].label, 1);
}

TEST(PredictTest, StatesWhatLogitsSayUnlessNoiseDrownsThem) {
  Graph graph = Path();
  graph.edge_offsets = {0, 0, 0, 0, 0};
  graph.neighbours.clear();
  Model model = Speaking();
  for (const PredictOptions& options : {kOwnFeatures, PredictOptions()}) {
    for (const double noise : {0, 2}) {
      model.logit_noise = noise;
      ExpectMargin(MustPredict(model, graph, options)[1], kMiddle);
    }
    model.logit_noise = 6;
    ExpectMargin(MustPredict(model, graph, options)[1], 2 * kMiddle / std::sqrt(1 + 4.5 * std::acos(-1)));
  }
}

// Node i is of class i mod 2 and linked to six nodes of the other class. Its feature tells its class two times in
// three.
Graph Heterophilous(int32_t nodes, FixedRandom& random) {
  Graph graph;
  graph.sizes = {nodes, 2, 2};
  for (int32_t node = 0; node < nodes; ++node) {
    std::set<int32_t> row;
    for (const int32_t step : {1, 7, 15}) {
      row.insert((node + step) % nodes);
      row.insert((node + nodes - step) % nodes);
    }
    graph.neighbours.insert(graph.neighbours.end(), row.begin(), row.end());
    graph.edge_offsets.push_back(static_cast<int64_t>(graph.neighbours.size()));
    const int32_t label = node % 2;
    graph.features.columns.push_back(UniformBelow(random, 3) == 0 ? 1 - label : label);
    graph.features.values.push_back(1);
    graph.features.offsets.push_back(node + 1);
    graph.labels.push_back(label);
  }
  return graph;
}

TEST(PredictTest, LearnsThatUnlikeNodesAreLinked) {
  FixedRandom random(1);
  const Graph graph = Heterophilous(1000, random);
  const Model model = LinearModel(2, 2, {0.35F, -0.35F, -0.35F, 0.35F, 0, 0});
  const auto accuracy = [&](const PredictOptions& options) {
    return *Accuracy(MustPredict(model, graph, options), graph.labels);
  };
  EXPECT_NEAR(accuracy(kOwnFeatures), 2.0 / 3, 0.05);
  EXPECT_LT(accuracy({.propagation = Propagation::kPower, .iterations = 1}), 0.5);
  EXPECT_GT(accuracy({}), 0.95);
}

TEST(PredictTest, GivesTiesToTheLowestLabel) {
  const Model model = LinearModel(2, 3, {1, 2, 2, 0, 0, 0, 0, 0, 0});
  for (const PredictOptions& options : {kOwnFeatures, kPower, PredictOptions()}) {
    Graph graph = Path();
    graph.edge_offsets = {0, 0, 0, 0, 0};
    graph.neighbours.clear();
    const auto predictions = MustPredict(model, graph, options);
    EXPECT_EQ(predictions[0].label, 1);
    EXPECT_EQ(predictions[1].label, 0);
    EXPECT_NEAR(predictions[1].probability, 1.0 / 3, 1e-6);
  }
}

TEST(PredictTest, StaysFiniteWithTheLargestWeights) {
  const float huge = std::numeric_limits<float>::max();
  Graph graph = Path();
  graph.features.offsets = {0, 2, 2, 2, 2};
  graph.features.columns = {0, 1};
  graph.features.values = {1, 1};
  const Model agreeing = LinearModel(2, 2, {huge, -huge, huge, -huge, 0, 0});
  const Model cancelling = LinearModel(2, 2, {huge, huge, -huge, -huge, 0, 0});
  Model hidden = agreeing;
  hidden.hidden_size = 2;
  hidden.output_weights = {huge, -huge, -huge, huge};
  Model centered = agreeing;
  centered.center = {huge, -huge};
  for (const Propagation propagation : {Propagation::kNone, Propagation::kPower, Propagation::kMeanField}) {
    for (const Model& model : {agreeing, hidden, centered}) {
      for (const Prediction& prediction : MustPredict(model, graph, {.propagation = propagation})) {
        EXPECT_TRUE(prediction.probability >= 0.5F && prediction.probability <= 1.0F) << prediction.probability;
      }
    }
    for (const Prediction& prediction : MustPredict(cancelling, graph, {.propagation = propagation})) {
      EXPECT_EQ(prediction.probability, 0.5F);
    }
  }
}

TEST(PredictTest, CountsNonFiniteFeaturesAsZero) {
  Graph graph = Path();
  graph.features.values[0] = std::numeric_limits<float>::quiet_NaN();
  graph.features.values[1] = std::numeric_limits<float>::infinity();
  for (const v1::Transform transform : {v1::RAW, v1::UNIT, v1::SQRT_UNIT}) {
    Model model = Speaking();
    model.transform = transform;
    const auto predictions = MustPredict(model, graph, kOwnFeatures);
    ExpectMargin(predictions[0], 0.3);
    ExpectMargin(predictions[1], 0.3);
  }
}

TEST(PredictTest, IsSureOfTheOnlyClass) {
  for (const PredictOptions& options : {kOwnFeatures, kPower, PredictOptions()}) {
    for (const Prediction& prediction : MustPredict(LinearModel(2, 1, {1, 2, 3}), Path(), options)) {
      EXPECT_EQ(prediction.label, 0);
      EXPECT_EQ(prediction.probability, 1.0F);
    }
  }
}

TEST(PredictTest, PredictsNothingForNoNodes) {
  Graph graph;
  graph.sizes = {0, 2, 2};
  for (const PredictOptions& options : {kOwnFeatures, kPower, PredictOptions()}) {
    EXPECT_TRUE(MustPredict(Speaking(), graph, options).empty());
  }
}

TEST(PredictTest, GivesTheSameBitsWhateverTheNumberOfThreads) {
  FixedRandom random(2);
  const Graph graph = Heterophilous(3000, random);
  Model model = LinearModel(2, 3, {});
  model.center = {0.3F, 0.2F};
  model.hidden_size = 5;
  for (int i = 0; i < 3 * 5; ++i) {
    model.weights.push_back(static_cast<float>(UniformReal(random) - 0.5));
    model.output_weights.push_back(static_cast<float>(UniformReal(random) - 0.5));
  }
  const auto always = [] { return true; };
  ASSERT_TRUE(ValidateModel(model).ok());
  const NodeMatrix logits = Logits(model, graph.features, 1, always).value();
  const PredictOptions options = {.iterations = 3, .normalisation = Normalisation::kSymmetric};
  const NodeMatrix propagated = PowerIteration(graph.edges(), logits, options, 1);
  for (const int threads : {2, 3, 8}) {
    EXPECT_EQ(Logits(model, graph.features, threads, always).value(), logits);
    EXPECT_EQ(PowerIteration(graph.edges(), logits, options, threads), propagated);
  }
}

// A cycle large enough for several threads; every node sees the same surroundings, so all predictions are the same.
TEST(PredictTest, GivesTheSameToEveryNodeOfALargeCycle) {
  constexpr int32_t kNodes = 100'000;
  Graph graph;
  graph.sizes = {kNodes, 1, 8};
  for (int32_t node = 0; node < kNodes; ++node) {
    const int32_t before = (node + kNodes - 1) % kNodes;
    const int32_t after = (node + 1) % kNodes;
    graph.neighbours.push_back(std::min(before, after));
    graph.neighbours.push_back(std::max(before, after));
    graph.edge_offsets.push_back(2 * (int64_t{node} + 1));
    graph.features.columns.push_back(0);
    graph.features.values.push_back(1);
    graph.features.offsets.push_back(int64_t{node} + 1);
  }
  const Model model = LinearModel(1, 8, {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const double expected = std::exp(std::sqrt(0.99)) / (7 + std::exp(std::sqrt(0.99)));
  const auto predictions = MustPredict(model, graph, kPower);
  ASSERT_EQ(predictions.size(), static_cast<size_t>(kNodes));
  for (const Prediction& prediction : predictions) {
    ASSERT_EQ(prediction.label, 3);
    ASSERT_NEAR(prediction.probability, expected, 1e-6);
  }
  const auto mean_field = MustPredict(model, graph, {});
  for (const Prediction& prediction : mean_field) {
    ASSERT_EQ(prediction.label, 3);
    ASSERT_EQ(prediction.probability, mean_field[0].probability);
  }
}

TEST(PredictTest, RefusesAGraphOfAnotherWidth) {
  Graph graph = Path();
  graph.sizes.feature_count = 3;
  EXPECT_EQ(Summary(Predict(Speaking(), graph, {}).status()), "INVALID_ARGUMENT INVALID_FIELD field=graph");
}

TEST(PredictTest, RefusesAModelThatIsNotValid) {
  Model model = Speaking();
  model.weights.pop_back();
  EXPECT_EQ(Summary(Predict(model, Path(), {}).status()), "INVALID_ARGUMENT INVALID_FIELD field=model");
  model = Speaking();
  model.center = {1, 2, 3};
  EXPECT_EQ(Summary(Predict(model, Path(), {}).status()), "INVALID_ARGUMENT INVALID_FIELD field=model");
}

TEST(PredictTest, RefusesOptionsOutOfRange) {
  for (const double alpha : {0.0, -0.5, 1.01, std::nan("")}) {
    EXPECT_EQ(Summary(Predict(Speaking(), Path(), {.alpha = alpha}).status()),
              "INVALID_ARGUMENT INVALID_FIELD field=alpha");
  }
  for (const int64_t iterations : {int64_t{-1}, int64_t{1001}}) {
    EXPECT_EQ(Summary(Predict(Speaking(), Path(), {.iterations = iterations}).status()),
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
