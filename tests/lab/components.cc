#include "tests/lab/components.h"

#include <algorithm>

namespace dpar {
namespace {

constexpr int32_t kUnseen = -1;

// Marks what can be reached from `root` with it and returns how many nodes that are. `pending` is scratch memory.
int64_t MarkComponent(const EdgesView& edges, int32_t root, std::vector<int32_t>& component,
                      std::vector<int32_t>& pending) {
  int64_t size = 0;
  component[static_cast<size_t>(root)] = root;
  pending.assign(1, root);
  while (!pending.empty()) {
    const int32_t node = pending.back();
    pending.pop_back();
    ++size;
    for (const int32_t neighbour : edges.neighbours_of(node)) {
      int32_t& mark = component[static_cast<size_t>(neighbour)];
      if (mark == kUnseen) {
        mark = root;
        pending.push_back(neighbour);
      }
    }
  }
  return size;
}

}  // namespace

std::vector<int32_t> LargestComponent(const EdgesView& edges) {
  // A view of nothing has no offsets at all.
  const auto nodes = static_cast<int32_t>(std::max<int64_t>(edges.node_count(), 0));
  std::vector<int32_t> component(static_cast<size_t>(nodes), kUnseen);  // the lowest node of each node's component
  std::vector<int32_t> pending;
  int32_t largest = 0;
  int64_t largest_size = 0;
  for (int32_t root = 0; root < nodes; ++root) {
    if (component[static_cast<size_t>(root)] == kUnseen) {
      const int64_t size = MarkComponent(edges, root, component, pending);
      if (size > largest_size) {
        largest = root;
        largest_size = size;
      }
    }
  }
  std::vector<int32_t> members;
  members.reserve(static_cast<size_t>(largest_size));
  for (int32_t node = 0; node < nodes; ++node) {
    if (component[static_cast<size_t>(node)] == largest) {
      members.push_back(node);
    }
  }
  return members;
}

}  // namespace dpar
