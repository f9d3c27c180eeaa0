#include "core/graph/canonical_edges.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>

#include "core/parallel.h"

namespace dpar {
namespace {

// Neighbouring rows that a thread takes at once.
constexpr int64_t kBlockRows = int64_t{1} << 14;

// An entry whose reverse is missing carries the sign bit until the reverse is there.
constexpr int32_t kMark = std::numeric_limits<int32_t>::min();
constexpr int32_t kNodeBits = std::numeric_limits<int32_t>::max();

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

// Threads mark and fill entries that others look at. No order between them matters, only that there is no data race.
int32_t Load(int32_t& entry) { return std::atomic_ref<int32_t>(entry).load(std::memory_order_relaxed); }
void Store(int32_t& entry, int32_t value) { std::atomic_ref<int32_t>(entry).store(value, std::memory_order_relaxed); }

// Calls body(row) for every row, on every core.
template <typename Body>
void ForEachRow(const std::vector<int64_t>& offsets, const Body& body) {
  const int64_t rows = static_cast<int64_t>(offsets.size()) - 1;
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  ParallelFor(blocks, HardwareThreads(), [&](int /*worker*/, int64_t block) {
    const int64_t end = std::min(rows, (block + 1) * kBlockRows);
    for (int64_t row = block * kBlockRows; row < end; ++row) {
      body(static_cast<size_t>(row));
    }
  });
}

std::span<int32_t> RowOf(const std::vector<int64_t>& offsets, std::vector<int32_t>& columns, size_t row) {
  return std::span(columns).subspan(static_cast<size_t>(offsets[row]),
                                    static_cast<size_t>(offsets[row + 1] - offsets[row]));
}

bool Holds(std::span<int32_t> row, int32_t node) {
  const auto found =
      std::partition_point(row.begin(), row.end(), [node](int32_t& entry) { return (Load(entry) & kNodeBits) < node; });
  return found != row.end() && (Load(*found) & kNodeBits) == node;
}

// Marks the entries whose reverse is missing, and counts for each row the entries that it lacks.
std::vector<int32_t> MarkOneWayEntries(const std::vector<int64_t>& offsets, std::vector<int32_t>& columns) {
  std::vector<int32_t> missing(offsets.size() - 1, 0);
  ForEachRow(offsets, [&](size_t row) {
    for (int32_t& entry : RowOf(offsets, columns, row)) {
      const auto node = static_cast<size_t>(entry);
      if (!Holds(RowOf(offsets, columns, node), static_cast<int32_t>(row))) {
        Store(entry, entry | kMark);
        std::atomic_ref<int32_t>(missing[node]).fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
  return missing;
}

// Leaves a gap at the end of each row for what it lacks. A row moves towards the end or stays, so that going from the
// last to the first overwrites none that has yet to move.
void OpenGaps(const std::vector<int32_t>& missing, int64_t total, std::vector<int64_t>& offsets,
              std::vector<int32_t>& columns) {
  int64_t end = offsets.back() + total;
  columns.reserve(static_cast<size_t>(end));
  columns.resize(static_cast<size_t>(end));
  for (size_t row = missing.size(); row-- > 0;) {
    const auto first = columns.begin() + offsets[row];
    const auto last = columns.begin() + offsets[row + 1];
    const int64_t length = last - first;
    const auto row_end = columns.begin() + end;
    if (last != row_end - missing[row]) {
      std::copy_backward(first, last, row_end - missing[row]);
    }
    std::fill(row_end - missing[row], row_end, 0);  // no mark, so that FillGaps passes over it
    offsets[row + 1] = end;
    end -= length + missing[row];
  }
}

// Puts the reverse of each marked entry into the gap of its row, and takes the mark away.
void FillGaps(const std::vector<int64_t>& offsets, std::vector<int32_t>& missing, std::vector<int32_t>& columns) {
  ForEachRow(offsets, [&](size_t row) {
    for (int32_t& entry : RowOf(offsets, columns, row)) {
      const int32_t marked = Load(entry);
      if (marked >= 0) {
        continue;
      }
      const auto node = static_cast<size_t>(marked & kNodeBits);
      Store(entry, marked & kNodeBits);
      const int32_t left = std::atomic_ref<int32_t>(missing[node]).fetch_sub(1, std::memory_order_relaxed);
      Store(columns[static_cast<size_t>(offsets[node + 1] - left)], static_cast<int32_t>(row));
    }
  });
}

// In place, and without the buffer that std::inplace_merge would take.
void SortRows(const std::vector<int64_t>& offsets, std::vector<int32_t>& columns) {
  ForEachRow(offsets, [&](size_t row) {
    const std::span<int32_t> entries = RowOf(offsets, columns, row);
    if (!std::is_sorted(entries.begin(), entries.end())) {
      std::sort(entries.begin(), entries.end());
    }
  });
}

}  // namespace

EdgeChanges CanonicaliseEdges(std::vector<int64_t>& offsets, std::vector<int32_t>& columns) {
  EdgeChanges changes;
  CleanRows(offsets, columns, changes);
  std::vector<int32_t> missing = MarkOneWayEntries(offsets, columns);
  changes.edges_symmetrised = std::accumulate(missing.begin(), missing.end(), int64_t{0});
  if (changes.edges_symmetrised > 0) {
    OpenGaps(missing, changes.edges_symmetrised, offsets, columns);
    FillGaps(offsets, missing, columns);
    SortRows(offsets, columns);
  }
  return changes;
}

}  // namespace dpar
