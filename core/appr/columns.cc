#include "core/appr/columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

void BoundColumn(std::span<const size_t> column, int64_t max_occurrence, double tau, ApprRows& rows,
                 std::vector<bool>& kept) {
  const size_t count = std::min(column.size(), static_cast<size_t>(max_occurrence));
  double norm = 0;
  for (const size_t entry : column.first(count)) {
    kept[entry] = true;
    norm += std::abs(rows.values[entry]);
  }
  if (norm > tau) {
    for (const size_t entry : column.first(count)) {
      rows.values[entry] *= tau / norm;
    }
  }
}

void RemoveOthers(const std::vector<bool>& kept, ApprRows& rows) {
  size_t write = 0;
  size_t read = 0;
  for (size_t row = 0; row + 1 < rows.offsets.size(); ++row) {
    for (const auto end = static_cast<size_t>(rows.offsets[row + 1]); read < end; ++read) {
      if (kept[read]) {
        rows.columns[write] = rows.columns[read];
        rows.values[write] = rows.values[read];
        ++write;
      }
    }
    rows.offsets[row + 1] = static_cast<int64_t>(write);
  }
  rows.columns.resize(write);
  rows.values.resize(write);
}

}  // namespace

absl::Status BoundColumns(int64_t max_occurrence, double tau, ApprRows& rows) {
  DPAR_RETURN_IF_ERROR(
      ValidateRange("max_occurrence", max_occurrence, int64_t{1}, std::numeric_limits<int64_t>::max()));
  if (!(tau > 0)) {
    return InvalidField("tau", "tau must be above 0");
  }
  std::vector<size_t> order(rows.columns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Entries are stored row by row, so the index puts equal ones in the order of their rows.
  std::sort(order.begin(), order.end(), [&rows](size_t a, size_t b) {
    if (rows.columns[a] != rows.columns[b]) {
      return rows.columns[a] < rows.columns[b];
    }
    const double size_a = std::abs(rows.values[a]);
    const double size_b = std::abs(rows.values[b]);
    return size_a != size_b ? size_a > size_b : a < b;
  });
  std::vector<bool> kept(order.size(), false);
  for (auto first = order.begin(); first != order.end();) {
    const int32_t column = rows.columns[*first];
    const auto last = std::find_if(first, order.end(), [&](size_t entry) { return rows.columns[entry] != column; });
    BoundColumn(std::span<const size_t>(first, last), max_occurrence, tau, rows, kept);
    first = last;
  }
  RemoveOthers(kept, rows);
  return absl::OkStatus();
}

}  // namespace dpar
