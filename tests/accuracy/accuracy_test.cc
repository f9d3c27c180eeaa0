// Accuracy under privacy, inductive: 80 % of the slots train, 20 % are the query graph, edges between the two removed.
//
// The splits are fixed and the noise is fresh, so the means over the ten splits vary from run to run. The figures are
// means over five other splits. One is met when our mean is at most one point and two standard errors of such a mean
// below it. In 10 runs the closest to its mark was citeseer_planetoid with mean-field: 0.667, with a standard deviation
// of 0.005 from run to run, against a mark of about 0.646. Four standard deviations: false alarms are rare, at a rate
// that ten runs cannot tell.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/graph/generate.h"
#include "core/graph/graph_file.h"
#include "core/graph/split.h"
#include "core/infer/predict.h"
#include "core/parallel.h"
#include "core/plan/plan.h"
#include "core/random/secure_random.h"
#include "core/random/testing/fixed_random.h"
#include "core/train/train.h"
#include "tests/lab/region_split.h"

namespace dpar {
namespace {

constexpr uint64_t kSeeds[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

struct Split {
  Graph training;
  Graph query;
};

Split RandomSplit(const Graph& graph, uint64_t seed) {
  dpar::testing::FixedRandom random(seed);
  const SlotSplit slots = *SplitSlots(graph.sizes.node_count, /*test_share=*/0.2, random);
  return {.training = InducedSubgraph(graph, slots.train), .query = InducedSubgraph(graph, slots.test)};
}

Split RegionSplit(const Graph& graph, uint64_t seed) {
  const SlotSplit slots = lab::SplitByRegion(graph.edges(), seed);
  return {.training = InducedSubgraph(graph, slots.train), .query = InducedSubgraph(graph, slots.test)};
}

// One accuracy for each split.
struct Series {
  std::vector<double> values;

  [[nodiscard]] double mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  // Of a mean over five splits.
  [[nodiscard]] double standard_error() const {
    double square = 0;
    for (const double value : values) {
      square += (value - mean()) * (value - mean());
    }
    return std::sqrt(square / static_cast<double>(values.size() - 1) / 5);
  }
};

struct Accuracies {
  Series none;
  Series power;
  Series mean_field;
};

void AddAccuracy(const Model& model, const Graph& query, Propagation propagation, Series& series) {
  const auto predictions = Predict(model, query, {.propagation = propagation});
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  const auto accuracy = Accuracy(*predictions, query.labels);
  ASSERT_TRUE(accuracy.ok()) << accuracy.status();
  series.values.push_back(*accuracy);
}

// The `auto` plan at (epsilon, delta) on ten splits, with noise from the production source.
Accuracies Measure(const std::string& name, const Graph& graph, double epsilon, double delta,
                   Split (*split_by)(const Graph&, uint64_t) = RandomSplit) {
  Accuracies result;
  for (const uint64_t seed : kSeeds) {
    const Split split = split_by(graph, seed);
    v1::TrainingSpec spec;
    spec.set_epsilon(epsilon);
    spec.set_delta(delta);
    const auto plan = MakePlan(spec, split.training.sizes);
    EXPECT_TRUE(plan.ok()) << plan.status();
    SecureRandom random;
    const auto trained = Train(*plan, split.training, {.device = "cpu", .threads = HardwareThreads()}, random,
                               {[] { return true; }, [](TrainingStage, int64_t, int64_t) {}});
    EXPECT_TRUE(trained.ok()) << trained.status();
    if (!trained.ok()) {
      continue;
    }
    AddAccuracy(trained->model, split.query, Propagation::kNone, result.none);
    AddAccuracy(trained->model, split.query, Propagation::kPower, result.power);
    AddAccuracy(trained->model, split.query, Propagation::kMeanField, result.mean_field);
  }
  std::printf("%s, epsilon %g, delta %.3g: none %.4f, power %.4f, mean-field %.4f (standard errors %.4f, %.4f, %.4f)\n",
              name.c_str(), epsilon, delta, result.none.mean(), result.power.mean(), result.mean_field.mean(),
              result.none.standard_error(), result.power.standard_error(), result.mean_field.standard_error());
  return result;
}

void ExpectMeets(const Series& series, double figure, const std::string& what) {
  EXPECT_GE(series.mean(), figure - 0.01 - 2 * series.standard_error()) << what;
}

// What the plan is known to reach on a public graph.
struct Figure {
  const char* graph;
  std::optional<double> delta;  // none: 1/N
  double epsilon;
  double none;
  double mean_field;
};

void PrintTo(const Figure& figure, std::ostream* out) { *out << figure.graph << " at epsilon " << figure.epsilon; }

// Nothing where the file is missing.
std::optional<Graph> PublicGraph(const std::string& name) {
  const char* source = std::getenv("DPAR_SOURCE_DIR");
  const std::string path = absl::StrCat(source != nullptr ? source : ".", "/../shared/data/", name, ".npz");
  if (!std::filesystem::exists(path)) {
    std::printf("%s is not there; the generated graphs below stand for it\n", path.c_str());
    return std::nullopt;
  }
  auto imported = ReadGraphFile(path, GraphLimits{}, std::nullopt);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? std::optional<Graph>(std::move(imported->graph)) : std::nullopt;
}

double DeltaOf(const Figure& figure, const Graph& graph) {
  return figure.delta.value_or(1 / static_cast<double>(graph.sizes.node_count));
}

class PublicGraphTest : public ::testing::TestWithParam<Figure> {};

TEST_P(PublicGraphTest, ReachesItsFigures) {
  const Figure& figure = GetParam();
  const std::optional<Graph> graph = PublicGraph(figure.graph);
  if (!graph.has_value()) {
    GTEST_SKIP();
  }
  const Accuracies measured = Measure(figure.graph, *graph, figure.epsilon, DeltaOf(figure, *graph));
  ExpectMeets(measured.none, figure.none, "none");
  ExpectMeets(measured.mean_field, figure.mean_field, "mean-field");
}

INSTANTIATE_TEST_SUITE_P(Figures, PublicGraphTest,
                         ::testing::Values(Figure{"cora_ml", 2e-3, 0.5, 0.574, 0.648},
                                           Figure{"cora_ml", 2e-3, 1, 0.684, 0.731},
                                           Figure{"cora_ml", 2e-3, 8, 0.800, 0.821},
                                           Figure{"coauthor_cs", 8e-4, 1, 0.921, 0.928},
                                           Figure{"coauthor_phy", 1e-4, 1, 0.951, 0.954},
                                           Figure{"citeseer_planetoid", std::nullopt, 1, 0.646, 0.673},
                                           Figure{"musae_facebook", std::nullopt, 1, 0.847, 0.862},
                                           Figure{"fb100_Amherst41_year", std::nullopt, 1, 0.545, 0.815}));

// The query graph is a connected region, whose classes are mixed differently than those of training. Without the weight
// of neighbours (core/infer/neighbour_weight.h), mean-field had 0.80 on musae_facebook, where it has 0.93.
class RegionTest : public ::testing::TestWithParam<Figure> {};

TEST_P(RegionTest, ReachesItsFigureWithMeanField) {
  const Figure& figure = GetParam();
  const std::optional<Graph> graph = PublicGraph(figure.graph);
  if (!graph.has_value()) {
    GTEST_SKIP();
  }
  const Accuracies measured =
      Measure(absl::StrCat(figure.graph, ", regions"), *graph, figure.epsilon, DeltaOf(figure, *graph), RegionSplit);
  EXPECT_GE(measured.mean_field.mean(), figure.mean_field);
}

INSTANTIATE_TEST_SUITE_P(Figures, RegionTest,
                         ::testing::Values(Figure{"cora_ml", 2e-3, 1, 0, 0.50},
                                           Figure{"citeseer_planetoid", std::nullopt, 1, 0, 0.60},
                                           Figure{"musae_facebook", std::nullopt, 1, 0, 0.88}));

// Weak features and a homophilous graph, so that the figures above have a counterpart without their files.
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

// Measured over 60 runs without a private mean: 0.724 (standard deviation 0.0084) without propagation and 0.789
// (0.0076) with power iteration; each mark stands four standard deviations or more below.
TEST(GeneratedGraphTest, ReachesItsMarksAtEpsilonOne) {
  const Accuracies measured = Measure("generated", GeneratedGraph(), 1, 2e-3);
  EXPECT_GE(measured.none.mean(), 0.69);
  EXPECT_GE(measured.power.mean(), 0.755);
  EXPECT_GE(measured.mean_field.mean(), 0.755);
}

TEST(GeneratedGraphTest, MorePrivacyCostsAccuracyAndLessGivesItBack) {
  const Graph graph = GeneratedGraph();
  const double tight = Measure("generated", graph, 0.25, 2e-3).none.mean();
  const double middle = Measure("generated", graph, 1, 2e-3).none.mean();
  const double loose = Measure("generated", graph, 4, 2e-3).none.mean();
  EXPECT_LT(tight + 0.05, middle);
  EXPECT_LT(middle + 0.05, loose);
}

}  // namespace
}  // namespace dpar
