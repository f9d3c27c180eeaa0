#include "core/infer/edge_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "core/infer/input_rows.h"
#include "core/infer/predict.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

bool Always() { return true; }

// A path 0-1-2 and a node 3 by itself, with two features. Node 3 has none.
Graph Path() {
  Graph graph;
  graph.sizes = {4, 2, 2};
  graph.edge_offsets = {0, 1, 3, 4, 4};
  graph.neighbours = {1, 0, 2, 1};
  graph.features.offsets = {0, 1, 2, 4, 4};
  graph.features.columns = {0, 1, 0, 1};
  graph.features.values = {2, 4, 6, 8};
  graph.labels = {0, 1, 0, 1};
  return graph;
}

Model HopsModel() {
  Model model;
  model.transform = v1::RAW;
  model.feature_count = 2;
  model.class_count = 2;
  model.reads = ModelInputs::kHops;
  model.hops = 1;
  model.encoder_size = 2;
  model.encoder_weights = {1, 0, 0, 1, 0, 0};           // features as they are, no bias
  model.weights = {1, 0, 0, 1, 10, 0, 0, 10, 0, 0.5F};  // own block once, the hop ten times
  return model;
}

Model MeanModel() {
  Model model;
  model.transform = v1::RAW;
  model.feature_count = 2;
  model.class_count = 2;
  model.reads = ModelInputs::kNeighbourMean;
  model.weights = {1, 0, 0, 1, 10, 0, 0, 10, 0, 0};
  return model;
}

TEST(NeighbourMeanRows, HaveTheOwnInputAndThenTheMeanOfTheListed) {
  const Graph graph = Path();
  const auto rows = NeighbourMeanRows(graph.features, 2, graph.edges(), v1::RAW, Always);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->offsets, ElementsAre(0, 2, 5, 8, 8));
  EXPECT_THAT(rows->columns, ElementsAre(0, 3, 1, 2, 3, 0, 1, 3));
  EXPECT_THAT(rows->values, ElementsAre(2, 4, 4, 4, 4, 6, 8, 4));
}

TEST(NeighbourMeanRows, ScaleEachNodesFeaturesBeforeTheyAreAveraged) {
  const Graph graph = Path();
  const auto rows = NeighbourMeanRows(graph.features, 2, graph.edges(), v1::UNIT, Always);
  const auto unit = static_cast<float>(kRowScale);
  EXPECT_THAT(rows->values, Pointwise(FloatNear(1e-6F),
                                      {unit, unit, unit, 0.8F * unit, 0.4F * unit, 0.6F * unit, 0.8F * unit, unit}));
}

TEST(NeighbourMeanRows, FeaturesThatCancelLeaveNoEntry) {
  Graph graph = Path();
  graph.features.values = {-6, 4, 6, 8};
  const auto rows = NeighbourMeanRows(graph.features, 2, graph.edges(), v1::RAW, Always);
  EXPECT_THAT(rows->columns, ElementsAre(0, 3, 1, 3, 0, 1, 3));
}

TEST(NeighbourMeanRows, StopWhenTold) {
  const Graph graph = Path();
  EXPECT_EQ(NeighbourMeanRows(graph.features, 2, graph.edges(), v1::RAW, [] { return false; }).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(ScaleToUnit, NeverGivesMoreThanLengthOneAndZeroForWhatIsNone) {
  for (const std::vector<double>& row : {std::vector<double>{3, 4}, {1e-150, 0}, {1e24, -1e24}, {0.1, 0.1}}) {
    std::vector<float> unit(row.size());
    ScaleToUnit(row, unit.data());
    const double norm = std::hypot(static_cast<double>(unit[0]), static_cast<double>(unit[1]));
    EXPECT_LE(norm, 1) << row[0];
    EXPECT_GT(norm, 1 - 1e-6) << row[0];
  }
  std::vector<float> unit = {7, 7};
  ScaleToUnit(std::vector<double>{0, 0}, unit.data());
  EXPECT_THAT(unit, ElementsAre(0, 0));
  unit = {7, 7};
  ScaleToUnit(std::vector<double>{std::numeric_limits<double>::infinity(), 1}, unit.data());
  EXPECT_THAT(unit, ElementsAre(0, 0));
}

TEST(EncodeRows, AreRectifiedAndOfUnitLength) {
  const Graph graph = Path();
  const auto rows = EncodeRows(graph.features, 2, v1::RAW, {1, -1, 1, -1, 0, 0}, 2, 1, Always);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (int node = 0; node < 3; ++node) {
    EXPECT_NEAR((*rows)(node, 0), 1, 1e-6) << node;
    EXPECT_EQ((*rows)(node, 1), 0) << node;
  }
  EXPECT_EQ((*rows)(3, 0), 0) << "nothing to encode, and no bias";
}

TEST(GraphLogits, OfHopsAddUpUnitSumsOfTheNeighbours) {
  const auto logits = GraphLogits(HopsModel(), Path(), 2, Always);
  ASSERT_TRUE(logits.ok()) << logits.status();
  // Encodings: (1, 0), (0, 1), (0.6, 0.8), (0, 0); the bias gives 0.1 * 0.5 to the second class.
  EXPECT_NEAR((*logits)(0, 0), 1, 1e-5);
  EXPECT_NEAR((*logits)(0, 1), 10 + 0.05, 1e-4);
  const double norm = std::hypot(1.6, 0.8);
  EXPECT_NEAR((*logits)(1, 0), 10 * 1.6 / norm, 1e-4);
  EXPECT_NEAR((*logits)(1, 1), 1 + 10 * 0.8 / norm + 0.05, 1e-4);
  EXPECT_NEAR((*logits)(3, 0), 0, 1e-6);
  EXPECT_NEAR((*logits)(3, 1), 0.05, 1e-6);
}

TEST(GraphLogits, OfNeighbourMeansReadTheMeanOfAllNeighbours) {
  const auto logits = GraphLogits(MeanModel(), Path(), 1, Always);
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_NEAR((*logits)(1, 0), 40, 1e-4);
  EXPECT_NEAR((*logits)(1, 1), 4 + 40, 1e-4);
}

TEST(ModelsThatReadEdges, AreWrittenAndReadBack) {
  const std::string path = ::testing::TempDir() + "/edges_model.npz";
  for (const Model& model : {HopsModel(), MeanModel()}) {
    ASSERT_TRUE(WriteModelFile(path, model).ok());
    const auto read = ReadModelFile(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->reads, model.reads);
    EXPECT_EQ(read->hops, model.hops);
    EXPECT_EQ(read->feature_count, 2);
    EXPECT_EQ(read->class_count, 2);
    EXPECT_EQ(read->encoder_weights, model.encoder_weights);
    EXPECT_EQ(read->weights, model.weights);
    EXPECT_EQ(ModelHeader(*read), ModelHeader(model));
  }
}

TEST(ModelsThatReadEdges, OfOtherShapesAreRefused) {
  const auto refused = [](const std::function<void(Model&)>& change) {
    Model model = HopsModel();
    change(model);
    return ValidateModel(model).code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](Model& m) { m.hops = 0; }));
  EXPECT_TRUE(refused([](Model& m) { m.hops = 2; })) << "weights for one hop";
  EXPECT_TRUE(refused([](Model& m) { m.encoder_weights.pop_back(); }));
  EXPECT_TRUE(refused([](Model& m) { m.encoder_weights[0] = NAN; }));
  EXPECT_TRUE(refused([](Model& m) { m.reads = ModelInputs::kNeighbourMean; }));
  EXPECT_TRUE(refused([](Model& m) { m.reads = ModelInputs::kFeatures; }));
  EXPECT_TRUE(refused([](Model& m) {
    m.transform = v1::UNIT;
    m.center = {0, 0};
  }));
  EXPECT_TRUE(ValidateModel(HopsModel()).ok());
}

TEST(ModelsThatReadEdges, ArePredictedWithNothingOnTopUnlessAskedFor) {
  EXPECT_EQ(DefaultPropagation(HopsModel()), Propagation::kNone);
  EXPECT_EQ(DefaultPropagation(MeanModel()), Propagation::kNone);
  EXPECT_EQ(DefaultPropagation(Model()), Propagation::kMeanField);
  PredictOptions options;
  options.propagation = Propagation::kNone;
  const auto predictions = Predict(HopsModel(), Path(), options);
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  EXPECT_THAT(predictions->at(0).label, 1) << "by its neighbour, against its own features";
  EXPECT_THAT(predictions->at(1).label, 0);
}

}  // namespace
}  // namespace dpar
