#include "core/train/testing/random_rows.h"

#include <array>
#include <numeric>

#include "core/random/testing/plain_noise.h"

namespace dpar::testing {
namespace {

double Normal(RandomSource& random) {
  std::array<double, 2> pair{};
  FillGaussian(random, pair);
  return pair[0];
}

}  // namespace

Graph RandomFeatures(int64_t nodes, int64_t features, int64_t classes, double density, RandomSource& random) {
  Graph graph;
  graph.sizes = {nodes, features, classes};
  graph.edge_offsets.assign(static_cast<size_t>(nodes) + 1, 0);
  for (int64_t node = 0; node < nodes; ++node) {
    for (int64_t column = 0; column < features; ++column) {
      if (UniformReal(random) < density) {
        graph.features.columns.push_back(static_cast<int32_t>(column));
        graph.features.values.push_back(static_cast<float>(Normal(random) + 0.5));
      }
    }
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
    graph.labels.push_back(static_cast<int32_t>(UniformBelow(random, static_cast<uint64_t>(classes))));
  }
  return graph;
}

RowList RandomRows(const Graph& graph, int64_t rows, int64_t k, RandomSource& random) {
  RowList list;
  const auto slots = static_cast<uint64_t>(graph.sizes.node_count);
  for (int64_t row = 0; row < rows; ++row) {
    list.labels.push_back(graph.labels[UniformBelow(random, slots)]);
    for (int64_t entry = 0; entry < k; ++entry) {
      // From few slots, so that some are listed twice.
      list.slots.push_back(static_cast<int32_t>(UniformBelow(random, std::min<uint64_t>(slots, 40))));
      list.weights.push_back(UniformBelow(random, 5) == 0 ? 0 : Normal(random));
    }
    list.offsets.push_back(static_cast<int64_t>(list.slots.size()));
  }
  return list;
}

std::vector<float> RandomWeights(const WeightShape& shape, double scale, RandomSource& random) {
  std::vector<float> weights(static_cast<size_t>(shape.count()) + kWeightPadding, 0.0F);
  for (size_t i = 0; i < static_cast<size_t>(shape.count()); ++i) {
    weights[i] = static_cast<float>(scale * Normal(random));
  }
  return weights;
}

std::vector<int64_t> AllRows(int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

Graph WithNull(const Graph& graph, int64_t v) {
  Graph null;
  null.sizes = graph.sizes;
  null.labels = graph.labels;
  null.labels[static_cast<size_t>(v)] = kUnlabelled;
  for (int64_t slot = 0; slot < graph.sizes.node_count; ++slot) {
    const auto at = static_cast<size_t>(slot);
    for (auto i = static_cast<size_t>(graph.edge_offsets[at]); i < static_cast<size_t>(graph.edge_offsets[at + 1]);
         ++i) {
      if (slot != v && graph.neighbours[i] != v) {
        null.neighbours.push_back(graph.neighbours[i]);
      }
    }
    null.edge_offsets.push_back(static_cast<int64_t>(null.neighbours.size()));
    const auto last = static_cast<size_t>(graph.features.offsets[slot == v ? at : at + 1]);
    for (auto i = static_cast<size_t>(graph.features.offsets[at]); i < last; ++i) {
      null.features.columns.push_back(graph.features.columns[i]);
      null.features.values.push_back(graph.features.values[i]);
    }
    null.features.offsets.push_back(static_cast<int64_t>(null.features.columns.size()));
  }
  return null;
}

}  // namespace dpar::testing
