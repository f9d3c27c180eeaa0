#include "tests/lab/region_split.h"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include "tests/lab/slot_hash_split.h"

namespace dpar::lab {
namespace {

constexpr int64_t kRegions = 9;

// The most links first, then the lowest node.
using Candidate = std::pair<int64_t, int32_t>;

}  // namespace

SlotSplit SplitByRegion(const EdgesView& edges, uint64_t seed) {
  const int64_t nodes = edges.node_count();
  const int64_t size = std::max<int64_t>(1, nodes / kRegions);
  const std::vector<int32_t> starts = HashOrder(nodes, seed);
  auto start = starts.begin();
  std::vector<bool> inside(static_cast<size_t>(nodes));
  std::vector<int32_t> links(static_cast<size_t>(nodes));
  std::priority_queue<Candidate> frontier;  // with outdated entries, which have fewer links than the node has by now
  for (int64_t taken = 0; taken < size;) {
    if (frontier.empty()) {
      frontier.emplace(0, -*start++);
    }
    const int32_t node = -frontier.top().second;
    frontier.pop();
    if (inside[static_cast<size_t>(node)]) {
      continue;
    }
    inside[static_cast<size_t>(node)] = true;
    ++taken;
    for (const int32_t other : edges.neighbours_of(node)) {
      if (!inside[static_cast<size_t>(other)]) {
        frontier.emplace(++links[static_cast<size_t>(other)], -other);
      }
    }
  }
  SlotSplit split;
  for (int32_t node = 0; node < nodes; ++node) {
    (inside[static_cast<size_t>(node)] ? split.test : split.train).push_back(node);
  }
  return split;
}

}  // namespace dpar::lab
