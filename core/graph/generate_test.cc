#include "core/graph/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  return graph.ok() ? *graph : Graph();
}

double ShareWithinClass(const Graph& graph) {
  int64_t within = 0;
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    for (const int32_t neighbour : graph.neighbours_of(node)) {
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
    EXPECT_NEAR(static_cast<double>(graph.neighbours.size()) / 2000, 8, 0.16);
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
    const auto columns = graph.features.row_columns(node);
    const auto values = graph.features.row_values(node);
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

TEST(GenerateGraphTest, AcceptsTheSmallestGraphs) {
  const Graph single = Generate({.nodes = 1, .classes = 2, .features = 2, .features_per_node = 1});
  EXPECT_EQ(single.edge_count(), 0);
  const Graph fewer_nodes_than_classes = Generate({.nodes = 3, .classes = 10, .features = 10, .features_per_node = 2});
  EXPECT_EQ(fewer_nodes_than_classes.sizes.node_count, 3);
  EXPECT_EQ(Generate({.average_degree = 0}).edge_count(), 0);
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
