#include "core/graph/canonical_edges.h"

#include <algorithm>
#include <iterator>

namespace dpar {
namespace {

// Sorts each row and drops its self loops and repetitions, in place.
void CleanRows(std::vector<int64_t>& offsets, std::vector<int32_t>& columns, EdgeChanges& changes) {
  auto write = columns.begin();
  int64_t row_start = 0;
  for (size_t row = 0; row + 1 < offsets.size(); ++row) {
    const auto first = columns.begin() + row_start;
    const auto last = columns.begin() + offsets[row + 1];
    row_start = offsets[row + 1];
    if (!std::is_sorted(first, last)) {
      std::sort(first, last);
    }
    const auto row_write = write;
    for (auto entry = first; entry != last; ++entry) {
      if (*entry == static_cast<int32_t>(row)) {
        ++changes.self_loops_dropped;
      } else if (write != row_write && *std::prev(write) == *entry) {
        ++changes.duplicates_merged;
      } else {
        *write++ = *entry;
      }
    }
    offsets[row + 1] = write - columns.begin();
  }
  columns.erase(write, columns.end());
}

struct Rows {
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
};

// Counting sort by column. Rows come out ascending because they are visited in order.
Rows Transpose(const std::vector<int64_t>& offsets, const std::vector<int32_t>& columns) {
  Rows result;
  result.offsets.assign(offsets.size(), 0);
  result.columns.resize(columns.size());
  for (const int32_t column : columns) {
    ++result.offsets[static_cast<size_t>(column) + 1];
  }
  for (size_t row = 1; row < result.offsets.size(); ++row) {
    result.offsets[row] += result.offsets[row - 1];
  }
  std::vector<int64_t> next(result.offsets.begin(), result.offsets.end());
  for (size_t row = 0; row + 1 < offsets.size(); ++row) {
    for (int64_t at = offsets[row]; at < offsets[row + 1]; ++at) {
      int64_t& target = next[static_cast<size_t>(columns[static_cast<size_t>(at)])];
      result.columns[static_cast<size_t>(target++)] = static_cast<int32_t>(row);
    }
  }
  return result;
}

}  // namespace

EdgeChanges CanonicaliseEdges(std::vector<int64_t>& offsets, std::vector<int32_t>& columns) {
  EdgeChanges changes;
  CleanRows(offsets, columns, changes);
  const Rows reversed = Transpose(offsets, columns);
  if (reversed.offsets == offsets && reversed.columns == columns) {
    return changes;
  }
  Rows merged;
  merged.offsets.reserve(offsets.size());
  merged.offsets.push_back(0);
  merged.columns.reserve(columns.size());
  for (size_t row = 0; row + 1 < offsets.size(); ++row) {
    std::set_union(columns.begin() + offsets[row], columns.begin() + offsets[row + 1],
                   reversed.columns.begin() + reversed.offsets[row],
                   reversed.columns.begin() + reversed.offsets[row + 1], std::back_inserter(merged.columns));
    merged.offsets.push_back(static_cast<int64_t>(merged.columns.size()));
  }
  changes.edges_symmetrised = static_cast<int64_t>(merged.columns.size() - columns.size());
  offsets = std::move(merged.offsets);
  columns = std::move(merged.columns);
  return changes;
}

}  // namespace dpar
