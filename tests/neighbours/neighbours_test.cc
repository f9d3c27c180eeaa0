// Makes one node of a graph null. The server must store both graphs, and others must see the same of both.
// Otherwise a refusal or an answer would tell about the node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "core/graph/edge_list.h"
#include "core/graph/keep_slots.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "google/protobuf/text_format.h"
#include "tests/neighbours/visible.h"

namespace dpar {
namespace {

using testing::FixedRandom;
using ::testing::HasSubstr;
using testing::NeighbourServer;

// A graph by its parts; features are node, column and value in order.
struct Parts {
  PublicSizes sizes;
  std::vector<Edge> edges;
  struct Feature {
    int32_t node;
    int32_t column;
    float value;
  };
  std::vector<Feature> features;
  std::vector<int32_t> labels;
};

Graph Assemble(const Parts& parts) {
  ImportedGraph imported;
  Graph& graph = imported.graph;
  graph.sizes = parts.sizes;
  graph.labels = parts.labels;
  for (int64_t node = 0; node < parts.sizes.node_count; ++node) {
    for (const Parts::Feature& feature : parts.features) {
      if (feature.node == node) {
        graph.features.columns.push_back(feature.column);
        graph.features.values.push_back(feature.value);
      }
    }
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
  }
  FillEdges(parts.edges, imported);
  return graph;
}

Graph WithoutNode(const Graph& graph, int64_t removed) {
  std::vector<int64_t> kept;
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    if (node != removed) {
      kept.push_back(node);
    }
  }
  return *KeepSlots(graph, kept, [] { return true; });
}

v1::TrainingSpec Spec(const std::string& text) {
  v1::TrainingSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("epsilon: 1 " + text, &spec)) << text;
  return spec;
}

// Their plans take about a millisecond: all their noise is Gaussian.
std::vector<v1::TrainingSpec> QuickSpecs() {
  return {Spec(""),
          Spec("options { center: true transform: UNIT }"),
          Spec("options { hidden_size: 3 optimizer: ADAM transform: RAW steps: 3 }"),
          Spec("evaluation { held_out_share: 0.5 budget_share: 0.2 } options { center: true }"),
          Spec("options { node_sampling_rate: 0.5 steps: 3 }"),
          Spec("method: DPAR_GM options { center: true }"),
          Spec("method: GAP")};
}

// Their plans compose privacy losses numerically, which takes a second.
std::vector<v1::TrainingSpec> SlowSpecs() {
  return {Spec("options { batch_size: 1 steps: 3 }"), Spec("method: DPAR_EM0"),
          Spec("method: DPAR_EM1 options { rows: APPR_ONLY }"), Spec("method: SAGE")};
}

// Values from one end of float32 to the other; few of everything, so that nodes are often its only holders.
Graph RandomGraph(RandomSource& random) {
  constexpr float kValues[] = {1.0F,
                               -1.0F,
                               0.5F,
                               1e-30F,
                               1e30F,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::lowest(),
                               std::numeric_limits<float>::denorm_min()};
  const auto below = [&](int64_t bound) {
    return static_cast<int32_t>(UniformBelow(random, static_cast<uint64_t>(bound)));
  };
  Parts parts;
  parts.sizes = {2 + below(6), 1 + below(4), 2 + below(3)};
  const int64_t edge_percent = 10 + below(60);
  for (int32_t node = 0; node < parts.sizes.node_count; ++node) {
    parts.labels.push_back(below(3) == 0 ? kUnlabelled : below(parts.sizes.class_count));
    for (int32_t column = 0; column < parts.sizes.feature_count; ++column) {
      if (below(3) == 0) {
        parts.features.push_back({node, column, kValues[below(std::size(kValues))]});
      }
    }
    for (int32_t other = 0; other < node; ++other) {
      if (below(100) < edge_percent) {
        parts.edges.push_back({other, node});
      }
    }
  }
  return Assemble(parts);
}

class NeighboursTest : public ::testing::Test {
 protected:
  // Expects that nothing visible tells the graph from any neighbour of it; returns how many there are.
  int64_t ExpectAlike(const Graph& graph, const v1::TrainingSpec& spec) {
    const int64_t degree = graph.sizes.node_count;
    const std::string whole = server_.Visible(graph, degree, spec);
    EXPECT_THAT(whole, HasSubstr("state: SUCCEEDED")) << whole;
    for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
      EXPECT_EQ(server_.Visible(WithoutNode(graph, node), degree, spec), whole) << "without node " << node;
    }
    return graph.sizes.node_count;
  }

  NeighbourServer server_;
};

TEST_F(NeighboursTest, AllNeighboursOfRandomGraphsAreTakenAndAnsweredAlike) {
  constexpr int64_t kPairs = 2000;
  FixedRandom random(7);
  const std::vector<v1::TrainingSpec> specs = QuickSpecs();
  int64_t pairs = 0;
  for (size_t round = 0; pairs < kPairs && !HasFailure(); ++round) {
    pairs += ExpectAlike(RandomGraph(random), specs[round % specs.size()]);
  }
}

// Node 0 of each is the only holder of something, so that a graph without it has nothing of the kind.
std::map<std::string, Graph> SoleHolders() {
  const std::vector<int32_t> labels = {0, 1, 1, 0, kUnlabelled};
  const Parts whole = {{5, 2, 3}, {{0, 1}, {1, 2}}, {{0, 0, 1.0F}, {1, 1, 2.0F}, {3, 0, 1.0F}}, labels};
  std::map<std::string, Graph> graphs;
  Parts parts = whole;
  parts.labels[0] = 2;
  graphs["a class"] = Assemble(parts);
  parts.labels = {1, kUnlabelled, kUnlabelled, kUnlabelled, kUnlabelled};
  graphs["the last label"] = Assemble(parts);
  parts = whole;
  parts.features[1].column = 0;
  parts.features[0].column = 1;
  graphs["a feature column"] = Assemble(parts);
  parts.features.resize(1);
  graphs["the last feature"] = Assemble(parts);
  parts = whole;
  parts.edges.resize(1);
  graphs["the last edge"] = Assemble(parts);
  parts = whole;
  parts.features[0].value = std::numeric_limits<float>::max();
  graphs["the largest value"] = Assemble(parts);
  graphs["everything"] = Assemble({{2, 2, 3}, {}, {{0, 1, 1.0F}}, {2, kUnlabelled}});
  return graphs;
}

TEST_F(NeighboursTest, TheOnlyHolderOfSomethingDoesNotShow) {
  for (const auto& [what, graph] : SoleHolders()) {
    SCOPED_TRACE(what);
    for (const v1::TrainingSpec& spec : QuickSpecs()) {
      ExpectAlike(graph, spec);
    }
  }
}

TEST_F(NeighboursTest, EveryMethodTrainsWhereOneNodeHoldsEverything) {
  for (const v1::TrainingSpec& spec : SlowSpecs()) {
    SCOPED_TRACE(spec.ShortDebugString());
    ExpectAlike(SoleHolders().at("everything"), spec);
  }
}

// Sealed, this takes more than 1 MiB, and without any one node no more: all of 32 nodes have all of 4,096 features.
Graph FullOfFeatures() {
  Parts parts;
  parts.sizes = {32, 4096, 2};
  for (int32_t node = 0; node < parts.sizes.node_count; ++node) {
    parts.labels.push_back(node % 2);
    for (int32_t column = 0; column < parts.sizes.feature_count; ++column) {
      parts.features.push_back({node, column, 1.0F});
    }
  }
  return Assemble(parts);
}

// The same border by edges: all pairs of 507 nodes.
Graph FullOfEdges() {
  Parts parts;
  parts.sizes = {507, 1, 2};
  for (int32_t node = 0; node < parts.sizes.node_count; ++node) {
    parts.labels.push_back(node % 2);
    parts.features.push_back({node, 0, 1.0F});
    for (int32_t other = 0; other < node; ++other) {
      parts.edges.push_back({other, node});
    }
  }
  return Assemble(parts);
}

int64_t MemoryIn(const std::string& visible) {
  std::smatch found;
  EXPECT_TRUE(std::regex_search(visible, found, std::regex("memory_bytes: ([0-9]+)"))) << visible;
  return found.empty() ? 0 : std::stoll(found[1]);
}

// Graphs above and below a MiB: their sizes show in no figure, and decide on no job at the server's limit of memory.
TEST_F(NeighboursTest, ANodeThatTakesAGraphAcrossAPowerOfTwoDoesNotShow) {
  constexpr int64_t kAmple = int64_t{8} << 30;
  for (const Graph& graph : {FullOfFeatures(), FullOfEdges()}) {
    for (const v1::TrainingSpec& spec : QuickSpecs()) {
      SCOPED_TRACE(spec.ShortDebugString());
      server_.set_max_job_bytes(kAmple);
      const auto visible = [&](const Graph& seen) { return server_.Visible(seen, graph.sizes.node_count, spec); };
      const Graph without = WithoutNode(graph, 0);
      const std::string whole = visible(graph);
      EXPECT_THAT(whole, HasSubstr("state: SUCCEEDED"));
      EXPECT_EQ(visible(without), whole);
      server_.set_max_job_bytes(MemoryIn(whole) - 1);
      const std::string refused = visible(graph);
      EXPECT_THAT(refused, HasSubstr("max_job_bytes"));
      EXPECT_EQ(visible(without), refused);
    }
  }
}

}  // namespace
}  // namespace dpar
