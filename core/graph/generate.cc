#include "core/graph/generate.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
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

// Every block draws from a stream of its own, so these sizes are part of what a source's stream means.
constexpr int64_t kEdgesPerBlock = int64_t{1} << 16U;
constexpr int64_t kNodesPerBlock = int64_t{1} << 12U;

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

// Adds to an entry that other threads add to as well; returns what it was.
template <typename Integer>
Integer AddShared(Integer& entry, Integer amount) {
  return std::atomic_ref<Integer>(entry).fetch_add(amount, std::memory_order_relaxed);
}

struct Block {
  int64_t index;
  int64_t first;
  int64_t last;  // not in the block
};

int64_t BlockCount(int64_t items, int64_t per_block) { return (items + per_block - 1) / per_block; }

void ForEachBlock(int64_t items, int64_t per_block, int threads, const std::function<void(const Block&)>& body) {
  ParallelFor(BlockCount(items, per_block), threads, [&](int /*worker*/, int64_t index) {
    body({index, index * per_block, std::min(items, (index + 1) * per_block)});
  });
}

// The same with a stream for every block, split off in the order of the blocks: what a block draws does not depend on
// the thread that takes it.
void ForEachRandomBlock(int64_t items, int64_t per_block, int threads, RandomSource& random,
                        const std::function<void(const Block&, RandomSource&)>& body) {
  std::vector<std::unique_ptr<RandomSource>> streams(static_cast<size_t>(BlockCount(items, per_block)));
  for (auto& stream : streams) {
    stream = random.Split();
  }
  ForEachBlock(items, per_block, threads,
               [&](const Block& block) { body(block, *streams[static_cast<size_t>(block.index)]); });
}

// The nodes in a random order in which every class is one run of places. Run lengths differ by at most one.
struct Order {
  std::vector<int32_t> nodes;
  std::vector<int64_t> starts;  // class count + 1
  double power = 1;             // a uniform number u stands for the place at the share u^power of a run
};

// With weights x^(-1/(g-1)) at the share x of a run, the places up to x hold the share x^((g-2)/(g-1)) of all weight.
// The inverse of that draws places by weight.
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

int64_t PlaceAt(const Order& order, size_t label, double uniform) {
  const int64_t start = order.starts[label];
  const int64_t size = order.starts[label + 1] - start;
  const double share = order.power == 1 ? uniform : std::pow(uniform, order.power);
  return start + std::min(size - 1, static_cast<int64_t>(share * static_cast<double>(size)));
}

int64_t DrawWithin(const Order& order, size_t label, RandomSource& random) {
  return PlaceAt(order, label, UniformReal(random));
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

// Edges with their sources implied: those from place p of the order have their targets, nodes, at
// first[p]..first[p+1]-1.
struct DrawnEdges {
  std::vector<int32_t> first;  // node count + 1
  std::vector<int32_t> targets;
};

// A target depends on its source through the source's class alone. So the edges of a class need not be drawn in the
// order of their sources: sources are counted, targets are stored, and whichever source a target falls to is as good as
// any.
DrawnEdges DrawEdges(const GeneratorOptions& options, const Order& order, int threads, RandomSource& random) {
  const int64_t count = std::llround(static_cast<double>(options.nodes) * options.average_degree / 2);
  std::vector<int64_t> class_starts;  // by the class of the source
  for (const int64_t start : order.starts) {
    class_starts.push_back(start * count / options.nodes);
  }
  DrawnEdges edges;
  edges.first.assign(order.nodes.size() + 1, 0);
  edges.targets.resize(static_cast<size_t>(count));
  ForEachRandomBlock(count, kEdgesPerBlock, threads, random, [&](const Block& block, RandomSource& stream) {
    size_t label = 0;
    for (int64_t first = block.first; first < block.last;) {
      while (first >= class_starts[label + 1]) {
        ++label;
      }
      const int64_t last = std::min(block.last, class_starts[label + 1]);
      const auto class_count = static_cast<double>(class_starts[label + 1] - class_starts[label]);
      // The block's part of the class's edges takes its sources from the same part of the class's weight: they lie
      // close together in memory then, and how many a node gets is still left to chance.
      const double low = static_cast<double>(first - class_starts[label]) / class_count;
      const double width = static_cast<double>(last - first) / class_count;
      for (; first < last; ++first) {
        const int64_t from = PlaceAt(order, label, low + width * UniformReal(stream));
        const int64_t to =
            Chance(stream, options.homophily) ? DrawWithin(order, label, stream) : DrawOutside(order, label, stream);
        AddShared(edges.first[static_cast<size_t>(from) + 1], 1);
        edges.targets[static_cast<size_t>(first)] = order.nodes[static_cast<size_t>(to)];
      }
    }
  });
  for (size_t place = 0; place < order.nodes.size(); ++place) {
    edges.first[place + 1] += edges.first[place];
  }
  return edges;
}

// Sets every entry but the first to where its row starts: one place early, so that filling the rows moves each entry on
// to where its row ends, as offsets should be.
void StartRows(const DrawnEdges& edges, const Order& order, int threads, std::vector<int64_t>& offsets) {
  offsets.assign(order.nodes.size() + 1, 0);
  ForEachBlock(static_cast<int64_t>(edges.targets.size()), kEdgesPerBlock, threads, [&](const Block& block) {
    for (int64_t edge = block.first; edge < block.last; ++edge) {
      AddShared(offsets[static_cast<size_t>(edges.targets[static_cast<size_t>(edge)]) + 1], int64_t{1});
    }
  });
  for (size_t place = 0; place < order.nodes.size(); ++place) {
    offsets[static_cast<size_t>(order.nodes[place]) + 1] += edges.first[place + 1] - edges.first[place];
  }
  int64_t start = 0;
  for (size_t row = 1; row < offsets.size(); ++row) {
    const int64_t size = offsets[row];
    offsets[row] = start;
    start += size;
  }
}

// Writes both directions of every edge. The order within a row depends on the threads until the row is sorted.
void FillRows(const DrawnEdges& edges, const Order& order, int threads, Graph& graph) {
  std::vector<int64_t>& offsets = graph.edge_offsets;
  std::vector<int32_t>& neighbours = graph.neighbours;
  StartRows(edges, order, threads, offsets);
  neighbours.resize(2 * edges.targets.size());
  ForEachBlock(static_cast<int64_t>(edges.targets.size()), kEdgesPerBlock, threads, [&](const Block& block) {
    const auto after = std::upper_bound(edges.first.begin(), edges.first.end(), block.first);
    auto place = static_cast<size_t>(after - edges.first.begin()) - 1;
    for (int64_t edge = block.first; edge < block.last; ++place) {
      const int64_t end = std::min<int64_t>(block.last, edges.first[place + 1]);
      const int32_t from = order.nodes[place];
      int64_t at = AddShared(offsets[static_cast<size_t>(from) + 1], end - edge);
      for (; edge < end; ++edge, ++at) {
        const int32_t to = edges.targets[static_cast<size_t>(edge)];
        neighbours[static_cast<size_t>(at)] = to;
        neighbours[static_cast<size_t>(AddShared(offsets[static_cast<size_t>(to) + 1], int64_t{1}))] = from;
      }
    }
  });
}

// From the length of every row, in the entry after the row's own, to where it ends.
void SumLengths(std::vector<int64_t>& offsets) {
  for (size_t row = 1; row < offsets.size(); ++row) {
    offsets[row] += offsets[row - 1];
  }
}

// Moves the rows of each block of nodes, which follow each other from block_starts on, to where the offsets say.
template <typename Entry>
void CloseGaps(const std::vector<int64_t>& block_starts, const std::vector<int64_t>& offsets,
               std::vector<Entry>& entries) {
  for (size_t block = 0; block < block_starts.size(); ++block) {
    const size_t row = block * static_cast<size_t>(kNodesPerBlock);
    const size_t end_row = std::min(offsets.size() - 1, row + static_cast<size_t>(kNodesPerBlock));
    const auto from = entries.begin() + block_starts[block];
    if (block_starts[block] != offsets[row]) {
      std::copy(from, from + (offsets[end_row] - offsets[row]), entries.begin() + offsets[row]);
    }
  }
  entries.resize(static_cast<size_t>(offsets.back()));
}

// Sorts every row and drops its self loops and repetitions.
void CleanRows(int threads, Graph& graph) {
  std::vector<int64_t>& offsets = graph.edge_offsets;
  std::vector<int32_t>& neighbours = graph.neighbours;
  // Read before the blocks turn offsets into lengths: where a block starts is the last offset of the one before.
  std::vector<int64_t> block_starts;
  for (int64_t row = 0; row < graph.sizes.node_count; row += kNodesPerBlock) {
    block_starts.push_back(offsets[static_cast<size_t>(row)]);
  }
  ForEachBlock(graph.sizes.node_count, kNodesPerBlock, threads, [&](const Block& block) {
    auto first = neighbours.begin() + block_starts[static_cast<size_t>(block.index)];
    auto write = first;
    for (int64_t row = block.first; row < block.last; ++row) {
      int64_t& offset = offsets[static_cast<size_t>(row) + 1];
      const auto last = neighbours.begin() + offset;
      std::sort(first, last);
      const auto row_write = write;
      for (; first != last; ++first) {
        if (*first != row && (write == row_write || *(write - 1) != *first)) {
          *write++ = *first;
        }
      }
      offset = write - row_write;
    }
  });
  SumLengths(offsets);
  CloseGaps(block_starts, offsets, neighbours);
}

// A bag of words: the value of a column is how often it was drawn.
void GenerateFeatures(const GeneratorOptions& options, int threads, Graph& graph, RandomSource& random) {
  SparseRows& rows = graph.features;
  const auto drawn_entries = static_cast<size_t>(options.nodes * options.features_per_node);
  rows.offsets.assign(static_cast<size_t>(options.nodes) + 1, 0);
  rows.columns.resize(drawn_entries);
  rows.values.resize(drawn_entries);
  std::vector<int64_t> block_starts;
  for (int64_t node = 0; node < options.nodes; node += kNodesPerBlock) {
    block_starts.push_back(node * options.features_per_node);
  }
  ForEachRandomBlock(options.nodes, kNodesPerBlock, threads, random, [&](const Block& block, RandomSource& stream) {
    std::vector<int32_t> drawn(static_cast<size_t>(options.features_per_node));
    auto write = static_cast<size_t>(block_starts[static_cast<size_t>(block.index)]);
    for (int64_t node = block.first; node < block.last; ++node) {
      const int32_t label = graph.labels[static_cast<size_t>(node)];
      const int64_t start = label * options.features / options.classes;
      const int64_t end = (label + 1) * options.features / options.classes;
      for (int32_t& column : drawn) {
        column = static_cast<int32_t>(Chance(stream, options.signal) ? start + Below(stream, end - start)
                                                                     : Below(stream, options.features));
      }
      std::sort(drawn.begin(), drawn.end());
      const size_t row_write = write;
      for (const int32_t column : drawn) {
        if (write == row_write || rows.columns[write - 1] != column) {
          rows.columns[write] = column;
          rows.values[write++] = 0;
        }
        rows.values[write - 1] += 1;
      }
      rows.offsets[static_cast<size_t>(node) + 1] = static_cast<int64_t>(write - row_write);
    }
  });
  SumLengths(rows.offsets);
  CloseGaps(block_starts, rows.offsets, rows.columns);
  CloseGaps(block_starts, rows.offsets, rows.values);
}

}  // namespace

absl::StatusOr<Graph> GenerateGraph(const GeneratorOptions& options, RandomSource& random, int threads) {
  DPAR_RETURN_IF_ERROR(Validate(options));
  Graph graph;
  graph.sizes = {options.nodes, options.features, options.classes};
  {
    const Order order = OrderNodes(options, random);
    graph.labels = LabelNodes(order);
    FillRows(DrawEdges(options, order, threads, random), order, threads, graph);
  }
  CleanRows(threads, graph);
  GenerateFeatures(options, threads, graph, random);
  return graph;
}

}  // namespace dpar
