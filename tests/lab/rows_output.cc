#include "tests/lab/rows_output.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace dpar::lab {
namespace {

constexpr size_t kMaxEntriesShown = 10;

// The entries of row `row`, largest first, the lower id of equal ones.
std::vector<size_t> EntriesByValue(const ApprRows& rows, size_t row) {
  const auto first = static_cast<size_t>(rows.offsets[row]);
  std::vector<size_t> entries(static_cast<size_t>(rows.offsets[row + 1]) - first);
  std::iota(entries.begin(), entries.end(), first);
  std::stable_sort(entries.begin(), entries.end(),
                   [&rows](size_t a, size_t b) { return rows.values[a] > rows.values[b]; });
  return entries;
}

void AppendRow(const ApprRows& rows, size_t row, std::string& table) {
  const std::vector<size_t> entries = EntriesByValue(rows, row);
  std::string seed = absl::StrCat(rows.seeds[row]);
  if (entries.empty()) {
    absl::StrAppendFormat(&table, "%10s  %10s  no entries\n", seed, "-");
  }
  for (size_t i = 0; i < std::min(kMaxEntriesShown, entries.size()); ++i) {
    absl::StrAppendFormat(&table, "%10s  %10d  %.6g\n", seed, rows.columns[entries[i]], rows.values[entries[i]]);
    seed.clear();
  }
  if (entries.size() > kMaxEntriesShown) {
    absl::StrAppendFormat(&table, "%10s  %10s  and %d smaller ones\n", "", "...", entries.size() - kMaxEntriesShown);
  }
}

}  // namespace

nlohmann::ordered_json RowsJson(const ApprRows& rows) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (size_t row = 0; row < rows.seeds.size(); ++row) {
    const auto first = static_cast<ptrdiff_t>(rows.offsets[row]);
    const auto last = static_cast<ptrdiff_t>(rows.offsets[row + 1]);
    json.push_back({{"seed", rows.seeds[row]},
                    {"ids", std::vector<int32_t>(rows.columns.begin() + first, rows.columns.begin() + last)},
                    {"values", std::vector<double>(rows.values.begin() + first, rows.values.begin() + last)}});
  }
  return json;
}

std::string RowsTable(const ApprRows& rows, size_t max_rows) {
  std::string table = absl::StrFormat("%10s  %10s  %s\n", "SEED", "NODE", "VALUE");
  for (size_t row = 0; row < std::min(max_rows, rows.seeds.size()); ++row) {
    AppendRow(rows, row, table);
  }
  if (rows.seeds.size() > max_rows) {
    absl::StrAppend(&table, "and ", rows.seeds.size() - max_rows, " more rows; --json prints all\n");
  }
  return table;
}

std::string JsonText(const nlohmann::ordered_json& json) { return json.dump() + "\n"; }

}  // namespace dpar::lab
