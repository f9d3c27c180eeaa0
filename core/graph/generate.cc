#include "core/graph/generate.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/graph/edge_list.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr int64_t kMaxNodes = 20'000'000;
constexpr int64_t kMaxClasses = 1000;
constexpr int64_t kMaxFeatures = 1'000'000;
constexpr double kMaxDegree = 1000;
constexpr double kMinDegreeExponent = 2.1;
constexpr double kMaxDegreeExponent = 10;
// GraphLimits' defaults. An npz file larger than NpzLimits allows cannot be read back; a sealed one can.
constexpr double kMaxEdgeEntries = 400e6;
constexpr double kMaxFeatureEntries = 2e9;

absl::Status Validate(const GeneratorOptions& options) {
  DPAR_RETURN_IF_ERROR(ValidateRange("nodes", options.nodes, int64_t{1}, kMaxNodes));
  DPAR_RETURN_IF_ERROR(ValidateRange("classes", options.classes, int64_t{2}, kMaxClasses));
  DPAR_RETURN_IF_ERROR(ValidateRange("features", options.features, options.classes, kMaxFeatures));
  DPAR_RETURN_IF_ERROR(ValidateRange("average_degree", options.average_degree, 0.0, kMaxDegree));
  if (options.degree_exponent != 0) {
    DPAR_RETURN_IF_ERROR(
        ValidateRange("degree_exponent", options.degree_exponent, kMinDegreeExponent, kMaxDegreeExponent));
  }
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

// The nodes in a random order in which every class is one run of places. Run lengths differ by at most one.
struct Order {
  std::vector<int32_t> nodes;
  std::vector<int64_t> starts;  // class count + 1
  double power = 1;             // a uniform number u stands for the place at the share u^power of a run
};

// Weights x^(-1/(g-1)) give the places up to x the share x^((g-2)/(g-1)) of all weight; its inverse draws by weight.
double PowerOf(double degree_exponent) {
  return degree_exponent == 0 ? 1 : (degree_exponent - 1) / (degree_exponent - 2);
}

Order OrderNodes(const GeneratorOptions& options, RandomSource& random) {
  Order order;
  order.power = PowerOf(options.degree_exponent);
  order.nodes.resize(static_cast<size_t>(options.nodes));
  for (size_t i = 0; i < order.nodes.size(); ++i) {
    const auto other = static_cast<size_t>(Below(random, static_cast<int64_t>(i) + 1));
    order.nodes[i] = order.nodes[other];
    order.nodes[other] = static_cast<int32_t>(i);
  }
  for (int64_t k = 0; k <= options.classes; ++k) {
    order.starts.push_back(k * options.nodes / options.classes);
  }
  return order;
}

std::vector<int32_t> LabelNodes(const Order& order) {
  std::vector<int32_t> labels(order.nodes.size());
  for (size_t label = 0; label + 1 < order.starts.size(); ++label) {
    for (int64_t place = order.starts[label]; place < order.starts[label + 1]; ++place) {
      labels[static_cast<size_t>(order.nodes[static_cast<size_t>(place)])] = static_cast<int32_t>(label);
    }
  }
  return labels;
}

int64_t DrawWithin(const Order& order, size_t label, RandomSource& random) {
  const int64_t start = order.starts[label];
  const int64_t size = order.starts[label + 1] - start;
  const double uniform = UniformReal(random);
  const double share = order.power == 1 ? uniform : std::pow(uniform, order.power);
  return start + std::min(size - 1, static_cast<int64_t>(share * static_cast<double>(size)));
}

int64_t DrawOutside(const Order& order, size_t label, RandomSource& random) {
  const int64_t start = order.starts[label];
  const int64_t size = order.starts[label + 1] - start;
  const int64_t others = static_cast<int64_t>(order.nodes.size()) - size;
  if (others == 0) {
    // A graph of one node: it gets a self loop, which is dropped later.
    return start;
  }
  const int64_t drawn = Below(random, others);
  const int64_t place = drawn < start ? drawn : drawn + size;
  const auto run = std::upper_bound(order.starts.begin(), order.starts.end(), place) - 1;
  return DrawWithin(order, static_cast<size_t>(run - order.starts.begin()), random);
}

std::vector<Edge> DrawEdges(const GeneratorOptions& options, const Order& order, RandomSource& random) {
  const int64_t count = std::llround(static_cast<double>(options.nodes) * options.average_degree / 2);
  std::vector<Edge> edges;
  edges.reserve(static_cast<size_t>(count));
  for (size_t label = 0; label + 1 < order.starts.size(); ++label) {
    // Those that start in this class or one before it.
    const int64_t last = order.starts[label + 1] * count / options.nodes;
    while (static_cast<int64_t>(edges.size()) < last) {
      const int64_t from = DrawWithin(order, label, random);
      const int64_t to =
          Chance(random, options.homophily) ? DrawWithin(order, label, random) : DrawOutside(order, label, random);
      edges.push_back({order.nodes[static_cast<size_t>(from)], order.nodes[static_cast<size_t>(to)]});
    }
  }
  return edges;
}

// A bag of words: the value of a column is how often it was drawn.
void GenerateFeatures(const GeneratorOptions& options, Graph& graph, RandomSource& random) {
  SparseRows& rows = graph.features;
  rows.offsets.reserve(static_cast<size_t>(options.nodes) + 1);
  std::vector<int32_t> drawn(static_cast<size_t>(options.features_per_node));
  for (const int32_t label : graph.labels) {
    const int64_t start = label * options.features / options.classes;
    const int64_t end = (label + 1) * options.features / options.classes;
    for (int32_t& column : drawn) {
      column = static_cast<int32_t>(Chance(random, options.signal) ? start + Below(random, end - start)
                                                                   : Below(random, options.features));
    }
    std::sort(drawn.begin(), drawn.end());
    const auto row_start = static_cast<size_t>(rows.offsets.back());
    for (const int32_t column : drawn) {
      if (rows.columns.size() == row_start || rows.columns.back() != column) {
        rows.columns.push_back(column);
        rows.values.push_back(0);
      }
      rows.values.back() += 1;
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.columns.size()));
  }
}

}  // namespace

absl::StatusOr<Graph> GenerateGraph(const GeneratorOptions& options, RandomSource& random) {
  DPAR_RETURN_IF_ERROR(Validate(options));
  ImportedGraph result;
  Graph& graph = result.graph;
  graph.sizes = {options.nodes, options.features, options.classes};
  const Order order = OrderNodes(options, random);
  graph.labels = LabelNodes(order);
  FillEdges(DrawEdges(options, order, random), result);
  GenerateFeatures(options, graph, random);
  return std::move(graph);
}

}  // namespace dpar
