#include "core/graph/size_bounds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph_error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int64_t kEdgesPerNode = 64;
// Up to this width features are often dense; wider ones are words, pages or groups, of which a node has few.
constexpr int64_t kDenseFeatures = 1024;
constexpr int64_t kSparseEntriesPerNode = 256;
// A MiB of either, when sealed.
constexpr int64_t kLeast = 1 << 17;

int64_t MostEdges(const PublicSizes& sizes) {
  return std::max<int64_t>(1, sizes.node_count * (sizes.node_count - 1) / 2);
}

int64_t MostEntries(const PublicSizes& sizes) { return sizes.node_count * sizes.feature_count; }

// The field's name is the flag's, with another spelling.
absl::Status Exceeded(absl::string_view what, int64_t bound, absl::string_view counted, absl::string_view field,
                      int64_t most) {
  return GraphError(
      what, absl::StrCat("exceed their bound: the graph has more than ", bound, " ", counted,
                         ". Upload it again with a larger ", field, ": --", absl::StrReplaceAll(field, {{"_", "-"}}),
                         " NUMBER (no graph of these sizes has more than ", most,
                         "). The number is public, and memory is set aside by it: take one that is known without the "
                         "data, not a count of the file"));
}

}  // namespace

SizeBounds DefaultSizeBounds(const PublicSizes& sizes, const SizeBounds& limits) {
  const int64_t entries_per_node = sizes.feature_count <= kDenseFeatures ? sizes.feature_count : kSparseEntriesPerNode;
  return {
      std::min({std::max(kLeast, kEdgesPerNode * sizes.node_count), MostEdges(sizes), limits.edges}),
      std::min({std::max(kLeast, entries_per_node * sizes.node_count), MostEntries(sizes), limits.feature_entries})};
}

absl::Status CheckSizeBounds(const GraphView& graph, const SizeBounds& bounds) {
  if (graph.edges.edge_count() > bounds.edges) {
    return Exceeded("edges", bounds.edges, "edges", "edge_bound", MostEdges(graph.sizes));
  }
  if (static_cast<int64_t>(graph.features.columns.size()) > bounds.feature_entries) {
    return Exceeded("features", bounds.feature_entries, "entries other than 0", "entry_bound",
                    MostEntries(graph.sizes));
  }
  return absl::OkStatus();
}

}  // namespace dpar
