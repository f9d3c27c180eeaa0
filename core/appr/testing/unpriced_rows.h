// Private rows without a price, for tests that look through the noise at what was clipped.
#ifndef DPAR_CORE_APPR_TESTING_UNPRICED_ROWS_H_
#define DPAR_CORE_APPR_TESTING_UNPRICED_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/appr/private_rows.h"
#include "core/appr/selection.h"
#include "core/appr/solver.h"
#include "core/graph/graph.h"
#include "core/random/random.h"

namespace dpar {

// What DrawPrivateRows draws, also where EM's noise is so small that no accountant prices it (below clip / 500, values
// below clip / 1000). Defined in core/appr/private_rows.cc and declared here alone, where programs cannot reach it.
absl::StatusOr<ApprRows> DrawUnpricedRows(const GraphView& graph, const PrivateRowsOptions& options, int threads,
                                          RandomSource& random, const RowsCallback& callback);

// One row of them, from its exact vector: what is drawn for any vector at all, also one that no small graph has.
std::vector<SelectedEntry> PrivateRow(const PrivateRowsOptions& options, int64_t node_count, SparseVector row,
                                      RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_APPR_TESTING_UNPRICED_ROWS_H_
