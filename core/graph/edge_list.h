// Entries in any order as compressed rows, for readers of text, which learn a row's length at the end of the file only.
#ifndef DPAR_CORE_GRAPH_EDGE_LIST_H_
#define DPAR_CORE_GRAPH_EDGE_LIST_H_

#include <cstdint>
#include <numeric>
#include <vector>

#include "core/graph/graph_file.h"

namespace dpar {

struct Edge {
  int32_t row = 0;
  int32_t column = 0;
};

// The offsets of `row_count` rows that hold these entries. Calls place(position, entry) for each, in their order.
template <typename Entry, typename Place>
std::vector<int64_t> FillRows(int64_t row_count, const std::vector<Entry>& entries, const Place& place) {
  std::vector<int64_t> offsets(static_cast<size_t>(row_count) + 1, 0);
  for (const Entry& entry : entries) {
    ++offsets[static_cast<size_t>(entry.row) + 1];
  }
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
  for (const Entry& entry : entries) {
    place(static_cast<size_t>(next[static_cast<size_t>(entry.row)]++), entry);
  }
  return offsets;
}

// Gives the graph, whose sizes and labels are known, these edges in canonical form, and completes the report.
void FillEdges(const std::vector<Edge>& edges, ImportedGraph& result);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_EDGE_LIST_H_
