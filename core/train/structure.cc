#include "core/train/structure.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/appr/columns.h"
#include "core/fault.h"
#include "core/plan/plan_event.h"
#include "core/plan/structure_work.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

void AppendLargest(const ApprRows& exact, size_t k, bool equal_weights, ApprRows& rows) {
  for (size_t i = 0; i < exact.seeds.size(); ++i) {
    std::vector<std::pair<double, int32_t>> entries;
    for (auto at = static_cast<size_t>(exact.offsets[i]); at < static_cast<size_t>(exact.offsets[i + 1]); ++at) {
      entries.emplace_back(-exact.values[at], exact.columns[at]);
    }
    std::sort(entries.begin(), entries.end());
    entries.resize(std::min(entries.size(), k));
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const auto& [negative, column] : entries) {
      rows.columns.push_back(column);
      rows.values.push_back(equal_weights ? 1 / static_cast<double>(k) : -negative);
    }
    rows.seeds.push_back(exact.seeds[i]);
    rows.offsets.push_back(static_cast<int64_t>(rows.columns.size()));
  }
}

absl::StatusOr<ApprRows> ExactRows(const v1::Plan& plan, const GraphView& graph, int threads, RandomSource& random,
                                   const RowsCallback& callback) {
  const PrivateRowsOptions options = StructureOptions(plan);
  const std::vector<int32_t> seeds = DrawSeeds(graph.sizes.node_count, options.rows, random);
  ApprRows rows;
  rows.node_count = graph.sizes.node_count;
  for (size_t first = 0; first < seeds.size(); first += static_cast<size_t>(kExactRowsAtOnce)) {
    const size_t last = std::min(first + static_cast<size_t>(kExactRowsAtOnce), seeds.size());
    const std::vector<int32_t> some(seeds.begin() + static_cast<std::ptrdiff_t>(first),
                                    seeds.begin() + static_cast<std::ptrdiff_t>(last));
    DPAR_ASSIGN_OR_RETURN(const ApprRows exact, SolveRows(graph.edges, options.solver, some, threads, callback));
    AppendLargest(exact, static_cast<size_t>(options.k), options.mechanism == ApprMechanism::kEm0, rows);
  }
  return rows;
}

absl::StatusOr<ApprRows> PricedRows(const v1::Plan& plan, const GraphView& graph, int threads, RandomSource& random,
                                    const RowsCallback& callback) {
  DPAR_ASSIGN_OR_RETURN(PrivateRows drawn, DrawPrivateRows(graph, StructureOptions(plan), threads, random, callback));
  return std::move(drawn.rows);
}

}  // namespace

absl::StatusOr<ApprRows> DrawStructure(const v1::Plan& plan, const GraphView& graph, int offered, RandomSource& random,
                                       const std::function<bool()>& keep_going) {
  const int threads = WorkOfStructure(plan, offered).threads;
  // The number of rows done follows the data, so it is not reported.
  const RowsCallback callback = [&keep_going](int64_t /*rows_done*/) { return keep_going(); };
  DPAR_ASSIGN_OR_RETURN(ApprRows rows, plan.non_private() ? ExactRows(plan, graph, threads, random, callback)
                                                          : PricedRows(plan, graph, threads, random, callback));
  const int64_t occurrences =
      DPAR_FAULT(kNoColumnCap, std::numeric_limits<int64_t>::max(), plan.structure().max_occurrence());
  DPAR_RETURN_IF_ERROR(BoundColumns(occurrences, plan.structure().column_clip(), rows));
  return rows;
}

}  // namespace dpar
