#include "core/graph/canonical_features.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace dpar {
namespace {

void SortRow(std::span<int32_t> columns, std::span<float> values, std::vector<std::pair<int32_t, float>>& scratch) {
  if (std::is_sorted(columns.begin(), columns.end())) {
    return;
  }
  scratch.clear();
  scratch.reserve(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    scratch.emplace_back(columns[i], values[i]);
  }
  std::sort(scratch.begin(), scratch.end());
  for (size_t i = 0; i < columns.size(); ++i) {
    std::tie(columns[i], values[i]) = scratch[i];
  }
}

}  // namespace

std::optional<RepeatedFeature> CanonicaliseFeatures(SparseRows& rows, int64_t& zeros_dropped) {
  return CanonicaliseFeatures(rows, zeros_dropped, AlwaysGoOn).value();
}

absl::StatusOr<std::optional<RepeatedFeature>> CanonicaliseFeatures(SparseRows& rows, int64_t& zeros_dropped,
                                                                    const StageReport& report) {
  StageMeter meter(static_cast<int64_t>(rows.columns.size() + rows.offsets.size()), report);
  StageMeter::Counter counter(meter);
  std::vector<std::pair<int32_t, float>> scratch;
  size_t write = 0;
  size_t read = 0;
  for (size_t row = 0; row + 1 < rows.offsets.size(); ++row) {
    const auto end = static_cast<size_t>(rows.offsets[row + 1]);
    const std::span<int32_t> columns = std::span(rows.columns).subspan(read, end - read);
    SortRow(columns, std::span(rows.values).subspan(read, end - read), scratch);
    const auto repeated = std::adjacent_find(columns.begin(), columns.end());
    if (repeated != columns.end()) {
      return RepeatedFeature{static_cast<int64_t>(row), *repeated};
    }
    for (; read < end; ++read) {
      if (rows.values[read] == 0) {
        ++zeros_dropped;
        continue;
      }
      rows.columns[write] = rows.columns[read];
      rows.values[write] = rows.values[read];
      ++write;
    }
    rows.offsets[row + 1] = static_cast<int64_t>(write);
    if (!counter.GoOn(static_cast<int64_t>(columns.size()))) {
      return absl::CancelledError("making the features canonical was stopped");
    }
  }
  rows.columns.resize(write);
  rows.values.resize(write);
  return std::optional<RepeatedFeature>();
}

}  // namespace dpar
