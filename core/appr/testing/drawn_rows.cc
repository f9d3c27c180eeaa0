#include "core/appr/testing/drawn_rows.h"

#include <algorithm>

#include "core/appr/testing/small_graphs.h"
#include "core/appr/testing/unpriced_rows.h"
#include "core/random/testing/fixed_random.h"

namespace dpar::testing {

PrivateRowsOptions OptionsFor(ApprMechanism mechanism, int64_t rows, int64_t k) {
  PrivateRowsOptions options;
  options.solver.rho = 1e-3;
  options.mechanism = mechanism;
  options.rows = rows;
  options.k = k;
  options.clip = 0.01;
  options.noise = 0.02;
  options.value_noise = mechanism == ApprMechanism::kEm1 ? 0.03 : 0;
  return options;
}

PrivateRowsOptions ClearOptions(ApprMechanism mechanism, int64_t rows, int64_t k, double clip) {
  PrivateRowsOptions options = OptionsFor(mechanism, rows, k);
  options.clip = clip;
  options.noise = clip * kTinyNoise;
  options.value_noise = mechanism == ApprMechanism::kEm1 ? clip * kTinyNoise : 0;
  return options;
}

bool NeverCancel(int64_t /*rows_done*/) { return true; }

ApprRows Drawn(const GraphView& graph, const PrivateRowsOptions& options, uint64_t stream, int threads) {
  FixedRandom random(stream);
  return DrawUnpricedRows(graph, options, threads, random, NeverCancel).value();
}

std::vector<int32_t> ColumnsOf(const ApprRows& rows, size_t row) {
  return {rows.columns.begin() + rows.offsets[row], rows.columns.begin() + rows.offsets[row + 1]};
}

std::vector<double> ValuesOf(const ApprRows& rows, size_t row) {
  return {rows.values.begin() + rows.offsets[row], rows.values.begin() + rows.offsets[row + 1]};
}

std::vector<double> DenseRow(const ApprRows& rows, size_t row) {
  return Dense({ColumnsOf(rows, row), ValuesOf(rows, row)}, rows.node_count);
}

size_t RowOfSeed(const ApprRows& rows, int32_t seed) {
  return static_cast<size_t>(std::find(rows.seeds.begin(), rows.seeds.end(), seed) - rows.seeds.begin());
}

std::vector<std::vector<double>> ExactRows(const EdgesView& edges, const ApprParameters& parameters,
                                           const std::vector<int32_t>& seeds) {
  const ApprRows rows = SolveRows(edges, parameters, seeds, 1, NeverCancel).value();
  std::vector<std::vector<double>> dense;
  for (size_t row = 0; row < seeds.size(); ++row) {
    dense.push_back(DenseRow(rows, row));
  }
  return dense;
}

}  // namespace dpar::testing
