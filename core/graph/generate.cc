#include "core/graph/generate.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/graph/canonical_edges.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr int64_t kMaxNodes = 20'000'000;
constexpr int64_t kMaxClasses = 1000;
constexpr int64_t kMaxFeatures = 1'000'000;
constexpr double kMaxDegree = 1000;
// So that what is generated can also be read: GraphLimits' defaults.
constexpr double kMaxEdgeEntries = 400e6;
constexpr double kMaxFeatureEntries = 2e9;

absl::Status Validate(const GeneratorOptions& options) {
  DPAR_RETURN_IF_ERROR(ValidateRange("nodes", options.nodes, int64_t{1}, kMaxNodes));
  DPAR_RETURN_IF_ERROR(ValidateRange("classes", options.classes, int64_t{2}, kMaxClasses));
  DPAR_RETURN_IF_ERROR(ValidateRange("features", options.features, options.classes, kMaxFeatures));
  DPAR_RETURN_IF_ERROR(ValidateRange("average_degree", options.average_degree, 0.0, kMaxDegree));
  DPAR_RETURN_IF_ERROR(ValidateRange("homophily", options.homophily, 0.0, 1.0));
  DPAR_RETURN_IF_ERROR(ValidateRange("features_per_node", options.features_per_node, int64_t{1}, options.features));
  DPAR_RETURN_IF_ERROR(ValidateRange("signal", options.signal, 0.0, 1.0));
  const auto nodes = static_cast<double>(options.nodes);
  if (nodes * options.average_degree > kMaxEdgeEntries) {
    return InvalidField("average_degree", "nodes * average_degree must be at most 400 million");
  }
  if (nodes * static_cast<double>(options.features_per_node) > kMaxFeatureEntries) {
    return InvalidField("features_per_node", "nodes * features_per_node must be at most 2 billion");
  }
  return absl::OkStatus();
}

int64_t Below(RandomSource& random, int64_t bound) {
  return static_cast<int64_t>(UniformBelow(random, static_cast<uint64_t>(bound)));
}

bool Chance(RandomSource& random, double probability) { return UniformReal(random) < probability; }

// Nodes in a random order, dealt to the classes in consecutive runs whose lengths differ by at most one.
struct Blocks {
  std::vector<int32_t> members;
  std::vector<int64_t> starts;  // class count + 1
};

Blocks DealNodes(int64_t nodes, int64_t classes, RandomSource& random) {
  Blocks blocks;
  blocks.members.resize(static_cast<size_t>(nodes));
  for (size_t i = 0; i < blocks.members.size(); ++i) {
    const auto other = static_cast<size_t>(Below(random, static_cast<int64_t>(i) + 1));
    blocks.members[i] = blocks.members[other];
    blocks.members[other] = static_cast<int32_t>(i);
  }
  for (int64_t k = 0; k <= classes; ++k) {
    blocks.starts.push_back(k * nodes / classes);
  }
  return blocks;
}

// Draws the other end of an edge. Gives `node` itself, a self loop that is dropped later, when no other node fits.
int32_t DrawNeighbour(int32_t node, int32_t label, const Blocks& blocks, double homophily, RandomSource& random) {
  const int64_t start = blocks.starts[static_cast<size_t>(label)];
  const int64_t end = blocks.starts[static_cast<size_t>(label) + 1];
  const auto nodes = static_cast<int64_t>(blocks.members.size());
  if (Chance(random, homophily)) {
    return blocks.members[static_cast<size_t>(start + Below(random, end - start))];
  }
  const int64_t others = nodes - (end - start);
  if (others == 0) {
    return node;
  }
  const int64_t drawn = Below(random, others);
  return blocks.members[static_cast<size_t>(drawn < start ? drawn : drawn + (end - start))];
}

void GenerateEdges(const GeneratorOptions& options, const Blocks& blocks, Graph& graph, RandomSource& random) {
  const auto nodes = static_cast<size_t>(options.nodes);
  const auto count = static_cast<size_t>(std::llround(static_cast<double>(options.nodes) * options.average_degree / 2));
  std::vector<std::pair<int32_t, int32_t>> edges(count);
  graph.edge_offsets.assign(nodes + 1, 0);
  for (auto& [from, to] : edges) {
    from = static_cast<int32_t>(Below(random, options.nodes));
    to = DrawNeighbour(from, graph.labels[static_cast<size_t>(from)], blocks, options.homophily, random);
    ++graph.edge_offsets[static_cast<size_t>(from) + 1];
  }
  for (size_t row = 1; row <= nodes; ++row) {
    graph.edge_offsets[row] += graph.edge_offsets[row - 1];
  }
  std::vector<int64_t> next(graph.edge_offsets.begin(), graph.edge_offsets.end());
  graph.neighbours.resize(count);
  for (const auto& [from, to] : edges) {
    graph.neighbours[static_cast<size_t>(next[static_cast<size_t>(from)]++)] = to;
  }
  CanonicaliseEdges(graph.edge_offsets, graph.neighbours);
}

// A bag of words: the value of a column is how often it was drawn.
void GenerateFeatures(const GeneratorOptions& options, Graph& graph, RandomSource& random) {
  std::vector<int32_t> drawn(static_cast<size_t>(options.features_per_node));
  for (const int32_t label : graph.labels) {
    const int64_t start = label * options.features / options.classes;
    const int64_t end = (label + 1) * options.features / options.classes;
    for (int32_t& column : drawn) {
      column = static_cast<int32_t>(Chance(random, options.signal) ? start + Below(random, end - start)
                                                                   : Below(random, options.features));
    }
    std::sort(drawn.begin(), drawn.end());
    for (size_t i = 0; i < drawn.size(); ++i) {
      if (i > 0 && drawn[i] == drawn[i - 1]) {
        graph.features.values.back() += 1;
      } else {
        graph.features.columns.push_back(drawn[i]);
        graph.features.values.push_back(1);
      }
    }
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
  }
}

}  // namespace

absl::StatusOr<Graph> GenerateGraph(const GeneratorOptions& options, RandomSource& random) {
  DPAR_RETURN_IF_ERROR(Validate(options));
  Graph graph;
  graph.sizes = {options.nodes, options.features, options.classes};
  graph.labels.resize(static_cast<size_t>(options.nodes));
  const Blocks blocks = DealNodes(options.nodes, options.classes, random);
  for (int64_t k = 0; k < options.classes; ++k) {
    for (int64_t i = blocks.starts[static_cast<size_t>(k)]; i < blocks.starts[static_cast<size_t>(k) + 1]; ++i) {
      graph.labels[static_cast<size_t>(blocks.members[static_cast<size_t>(i)])] = static_cast<int32_t>(k);
    }
  }
  GenerateEdges(options, blocks, graph, random);
  GenerateFeatures(options, graph, random);
  return graph;
}

}  // namespace dpar
