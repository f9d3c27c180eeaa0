#include "core/graph/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/graph_file.h"
#include "core/graph/testing/npz_fixture.h"
#include "core/random/testing/fixed_random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using ::dpar::testing::Summary;
using ::dpar::testing::TestPath;

Graph Generate(const GeneratorOptions& options, uint64_t seed = 1) {
  FixedRandom random(seed);
  absl::StatusOr<Graph> graph = GenerateGraph(options, random);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : Graph();
}

// Large enough for many blocks of nodes and of edges.
GeneratorOptions LargeOptions(double degree_exponent) {
  return {.nodes = 100'000,
          .features = 40,
          .average_degree = 20,
          .degree_exponent = degree_exponent,
          .features_per_node = 3};
}

double MeanDegree(const Graph& graph) {
  return static_cast<double>(graph.neighbours.size()) / static_cast<double>(graph.sizes.node_count);
}

std::vector<double> DescendingDegrees(const Graph& graph) {
  std::vector<double> degrees;
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    degrees.push_back(static_cast<double>(graph.edges().neighbours_of(node).size()));
  }
  std::sort(degrees.rbegin(), degrees.rend());
  return degrees;
}

// Hill's estimate of the exponent of the density's tail, from the `count` largest.
double TailExponent(const std::vector<double>& descending, size_t count) {
  double logarithms = 0;
  for (size_t i = 0; i < count; ++i) {
    logarithms += std::log(descending[i] / descending[count]);
  }
  return 1 + static_cast<double>(count) / logarithms;
}

// Entries that are not as a canonical graph has them: no self loop, ascending, once, and there from the other end too.
int64_t Faults(const Graph& graph) {
  int64_t faults = 0;
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    const auto row = graph.edges().neighbours_of(node);
    for (size_t i = 0; i < row.size(); ++i) {
      const auto back = graph.edges().neighbours_of(row[i]);
      const bool good = row[i] != node && (i == 0 || row[i - 1] < row[i]) &&
                        std::binary_search(back.begin(), back.end(), static_cast<int32_t>(node));
      faults += good ? 0 : 1;
    }
  }
  return faults;
}

double ShareWithinClass(const Graph& graph) {
  int64_t within = 0;
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    for (const int32_t neighbour : graph.edges().neighbours_of(node)) {
      within += graph.labels[static_cast<size_t>(node)] == graph.labels[static_cast<size_t>(neighbour)] ? 1 : 0;
    }
  }
  return static_cast<double>(within) / static_cast<double>(graph.neighbours.size());
}

TEST(GenerateGraphTest, IsCanonicalSoThatReadingItBackChangesNothing) {
  const Graph graph = Generate({});
  const std::string path = TestPath("generated.npz");
  ASSERT_TRUE(WriteGraphFile(path, graph).ok());
  const auto read = ReadGraphFile(path, {}, std::nullopt);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->graph, graph);
  EXPECT_EQ(read->report.edges_symmetrised, 0);
  EXPECT_EQ(read->report.duplicates_merged, 0);
  EXPECT_EQ(read->report.self_loops_dropped, 0);
  EXPECT_EQ(read->report.zero_features_dropped, 0);
}

TEST(GenerateGraphTest, HasTheSizesAskedForAndBalancedClasses) {
  const Graph graph = Generate({.nodes = 1003, .classes = 4, .features = 50, .features_per_node = 10});
  EXPECT_EQ(graph.sizes, (PublicSizes{1003, 50, 4}));
  for (int32_t label = 0; label < 4; ++label) {
    const auto count = std::count(graph.labels.begin(), graph.labels.end(), label);
    EXPECT_GE(count, 250);
    EXPECT_LE(count, 251);
  }
  EXPECT_FALSE(std::is_sorted(graph.labels.begin(), graph.labels.end()));
}

// Of 8000 drawn edges the share within a class has standard deviation 0.0045; six of them are 0.027, exceeded by chance
// with probability below 2e-9. Merging 8000 edges over 2000 nodes takes away well under 2% of them.
TEST(GenerateGraphTest, FollowsDegreeAndHomophily) {
  for (const double homophily : {0.2, 0.8}) {
    const Graph graph = Generate({.homophily = homophily});
    EXPECT_NEAR(ShareWithinClass(graph), homophily, 0.027);
    EXPECT_NEAR(MeanDegree(graph), 8, 0.16);
  }
  EXPECT_EQ(ShareWithinClass(Generate({.homophily = 0})), 0);
  EXPECT_EQ(ShareWithinClass(Generate({.homophily = 1})), 1);
}

// 40000 entries; without signal a quarter is in the own block by chance: 0.5 + 0.5 / 4. The share of drawn entries has
// standard deviation 0.0024, so 0.015 is six of them.
TEST(GenerateGraphTest, PutsSignalIntoTheClassesOwnColumns) {
  const Graph graph = Generate({});
  double own = 0;
  double total = 0;
  for (int64_t node = 0; node < 2000; ++node) {
    const int32_t label = graph.labels[static_cast<size_t>(node)];
    const auto columns = GraphView(graph).features.row_columns(node);
    const auto values = GraphView(graph).features.row_values(node);
    for (size_t i = 0; i < columns.size(); ++i) {
      total += static_cast<double>(values[i]);
      own += columns[i] / 125 == label ? static_cast<double>(values[i]) : 0.0;
    }
  }
  EXPECT_EQ(total, 40000);
  EXPECT_NEAR(own / total, 0.625, 0.015);
}

TEST(GenerateGraphTest, RepeatsWithTheSameStreamAndDiffersWithAnother) {
  EXPECT_EQ(Generate({}, 5), Generate({}, 5));
  EXPECT_NE(Generate({}, 5), Generate({}, 6));
}

TEST(GenerateGraphTest, IsCanonicalWhenItIsLarge) {
  for (const double degree_exponent : {0.0, 2.1, 3.0}) {
    const Graph graph = Generate(LargeOptions(degree_exponent));
    EXPECT_EQ(graph.edge_offsets.front(), 0);
    EXPECT_EQ(graph.edge_offsets.back(), static_cast<int64_t>(graph.neighbours.size()));
    EXPECT_EQ(Faults(graph), 0);
    EXPECT_EQ(graph.features.offsets.size(), 100'001U);
    EXPECT_EQ(graph.features.offsets.back(), static_cast<int64_t>(graph.features.columns.size()));
    EXPECT_EQ(std::accumulate(graph.features.values.begin(), graph.features.values.end(), 0.0), 300'000);
  }
}

// The number of drawn edges is exact; what is missing was merged, 0.03% and 0.3% of it.
TEST(GenerateGraphTest, HasTheMeanDegreeAskedFor) {
  EXPECT_NEAR(MeanDegree(Generate(LargeOptions(0))), 20, 0.02);
  EXPECT_NEAR(MeanDegree(Generate(LargeOptions(3))), 20, 0.4);
}

// Degrees of nodes all alike are nearly Poisson: the variance is the mean, estimated with a standard error of 0.09.
TEST(GenerateGraphTest, GivesNodesAllAlikePoissonDegrees) {
  const std::vector<double> degrees = DescendingDegrees(Generate(LargeOptions(0)));
  double square = 0;
  for (const double degree : degrees) {
    square += (degree - 20) * (degree - 20);
  }
  EXPECT_NEAR(square / 100'000, 20, 0.54);
  EXPECT_LT(degrees.front(), 60);
}

// Of 1000 degrees above 100 Hill's estimate has standard error (g - 1) / sqrt(1000), at most 0.064. Merging thins the
// tail a little: 0.2 is three standard errors.
TEST(GenerateGraphTest, FollowsThePowerLawInTheTail) {
  for (const double degree_exponent : {2.5, 3.0}) {
    const Graph graph = Generate(LargeOptions(degree_exponent));
    const std::vector<double> degrees = DescendingDegrees(graph);
    EXPECT_NEAR(TailExponent(degrees, 1000), degree_exponent, 0.2);
    EXPECT_GT(degrees.front(), 50 * MeanDegree(graph));
    EXPECT_NEAR(ShareWithinClass(graph), 0.8, 0.03);
  }
}

TEST(GenerateGraphTest, AcceptsTheSmallestGraphs) {
  const Graph single = Generate({.nodes = 1, .classes = 2, .features = 2, .features_per_node = 1});
  EXPECT_EQ(single.edge_count(), 0);
  const Graph fewer_nodes_than_classes = Generate({.nodes = 3, .classes = 10, .features = 10, .features_per_node = 2});
  EXPECT_EQ(fewer_nodes_than_classes.sizes.node_count, 3);
  EXPECT_EQ(Generate({.average_degree = 0}).edge_count(), 0);
  const Graph pair = Generate(
      {.nodes = 2, .classes = 2, .features = 2, .degree_exponent = 2.1, .homophily = 0, .features_per_node = 1});
  EXPECT_THAT(pair.edge_offsets, ::testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(pair.neighbours, ::testing::ElementsAre(1, 0));
}

TEST(GenerateGraphTest, NamesTheOptionThatIsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<std::string, GeneratorOptions>> bad = {
      {"nodes", {.nodes = 0}},
      {"nodes", {.nodes = 20'000'001}},
      {"classes", {.classes = 1}},
      {"classes", {.classes = 1001}},
      {"features", {.features = 3}},
      {"features", {.features = 1'000'001}},
      {"average_degree", {.average_degree = -1}},
      {"average_degree", {.average_degree = 1001}},
      {"average_degree", {.average_degree = nan}},
      {"average_degree", {.nodes = 20'000'000, .average_degree = 100}},
      {"degree_exponent", {.degree_exponent = nan}},
      {"degree_exponent", {.degree_exponent = 1.5}},
      {"degree_exponent", {.degree_exponent = -1}},
      {"degree_exponent", {.degree_exponent = 11}},
      {"homophily", {.homophily = 1.1}},
      {"homophily", {.homophily = nan}},
      {"features_per_node", {.features_per_node = 0}},
      {"features_per_node", {.features_per_node = 501}},
      {"features_per_node", {.nodes = 20'000'000, .features_per_node = 200}},
      {"signal", {.signal = -0.1}},
      {"signal", {.signal = nan}}};
  FixedRandom random(1);
  for (const auto& [field, options] : bad) {
    EXPECT_EQ(Summary(GenerateGraph(options, random).status()), "INVALID_ARGUMENT INVALID_FIELD field=" + field);
  }
}

}  // namespace
}  // namespace dpar
