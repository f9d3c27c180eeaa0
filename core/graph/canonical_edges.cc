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

constexpr int64_t kBlockRows = int64_t{1} << 14;

// An entry whose reverse is missing carries the sign bit until the reverse is there.
constexpr int32_t kMark = std::numeric_limits<int32_t>::min();
constexpr int32_t kNodeBits = std::numeric_limits<int32_t>::max();

// Every entry is looked at in CleanRows, MarkOneWayEntries, OpenGaps, FillGaps and SortRows.
constexpr int64_t kPasses = 5;

// Sorts each row and drops its self loops and repetitions, in place.
void CleanRows(std::vector<int64_t>& offsets, std::vector<int32_t>& columns, StageMeter& meter, EdgeChanges& changes) {
  StageMeter::Counter counter(meter);
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
    if (!counter.GoOn(last - first)) {
      return;
    }
  }
  columns.erase(write, columns.end());
}

// Threads mark and fill entries that others look at. No order between them matters, only that there is no data race.
int32_t Load(int32_t& entry) { return std::atomic_ref<int32_t>(entry).load(std::memory_order_relaxed); }
void Store(int32_t& entry, int32_t value) { std::atomic_ref<int32_t>(entry).store(value, std::memory_order_relaxed); }

// Calls body(row) for every row, on every core, until the meter is stopped.
template <typename Body>
void ForEachRow(const std::vector<int64_t>& offsets, StageMeter& meter, const Body& body) {
  const int64_t rows = static_cast<int64_t>(offsets.size()) - 1;
  const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
  ParallelFor(blocks, HardwareThreads(), [&](int /*worker*/, int64_t block) {
    const int64_t end = std::min(rows, (block + 1) * kBlockRows);
    StageMeter::Counter counter(meter);
    for (int64_t row = block * kBlockRows; row < end && !meter.stopped(); ++row) {
      body(static_cast<size_t>(row));
      counter.GoOn(offsets[static_cast<size_t>(row) + 1] - offsets[static_cast<size_t>(row)]);
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
std::vector<int32_t> MarkOneWayEntries(const std::vector<int64_t>& offsets, StageMeter& meter,
                                       std::vector<int32_t>& columns) {
  std::vector<int32_t> missing(offsets.size() - 1, 0);
  ForEachRow(offsets, meter, [&](size_t row) {
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

// Leaves a gap at the end of each row for what it lacks. Rows only move towards the end, so the last moves first.
void OpenGaps(const std::vector<int32_t>& missing, int64_t total, StageMeter& meter, std::vector<int64_t>& offsets,
              std::vector<int32_t>& columns) {
  StageMeter::Counter counter(meter);
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
    if (!counter.GoOn(length)) {
      return;
    }
  }
}

void FillGaps(const std::vector<int64_t>& offsets, StageMeter& meter, std::vector<int32_t>& missing,
              std::vector<int32_t>& columns) {
  ForEachRow(offsets, meter, [&](size_t row) {
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
void SortRows(const std::vector<int64_t>& offsets, StageMeter& meter, std::vector<int32_t>& columns) {
  ForEachRow(offsets, meter, [&](size_t row) {
    const std::span<int32_t> entries = RowOf(offsets, columns, row);
    if (!std::is_sorted(entries.begin(), entries.end())) {
      std::sort(entries.begin(), entries.end());
    }
  });
}

}  // namespace

EdgeChanges CanonicaliseEdges(std::vector<int64_t>& offsets, std::vector<int32_t>& columns) {
  return CanonicaliseEdges(offsets, columns, AlwaysGoOn).value();
}

absl::StatusOr<EdgeChanges> CanonicaliseEdges(std::vector<int64_t>& offsets, std::vector<int32_t>& columns,
                                              const StageReport& report) {
  const absl::Status stopped = absl::CancelledError("making the edges canonical was stopped");
  StageMeter meter(kPasses * static_cast<int64_t>(columns.size() + offsets.size()), report);
  EdgeChanges changes;
  CleanRows(offsets, columns, meter, changes);
  if (meter.stopped()) {
    return stopped;
  }
  std::vector<int32_t> missing = MarkOneWayEntries(offsets, meter, columns);
  if (meter.stopped()) {
    return stopped;
  }
  changes.edges_symmetrised = std::accumulate(missing.begin(), missing.end(), int64_t{0});
  if (changes.edges_symmetrised == 0) {
    return changes;
  }
  OpenGaps(missing, changes.edges_symmetrised, meter, offsets, columns);
  if (meter.stopped()) {
    return stopped;
  }
  FillGaps(offsets, meter, missing, columns);
  if (meter.stopped()) {
    return stopped;
  }
  SortRows(offsets, meter, columns);
  if (meter.stopped()) {
    return stopped;
  }
  return changes;
}

}  // namespace dpar
