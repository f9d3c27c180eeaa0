// DP-APPR: top-K rows of approximate personalised PageRank under node-level differential privacy (the DPAR paper's
// Algorithms 1 and 3, with the accounting of docs/privacy.md).
//
// Neighbours: node removal in zero-out form. One node can change all M rows, by anything that clipping leaves; no bound
// on degrees is needed.
//  - GM. A row is not negative, is scaled to l2 norm at most C1 and truncated to the noise's lattice, which keeps both.
//    Two such rows are at most sqrt(2) C1 apart, so the M rows together are one Gaussian mechanism of sensitivity
//    sqrt(2 M) C1. Which K entries are shown, with their noisy values, is post-processing.
//  - EM0. Entries are clipped to [0, C2]. The K largest of entry plus Gumbel noise of scale beta are K exponential
//    mechanisms on the slots that are left, each of bounded range 2 C2 / beta: M K of them compose adaptively. A chosen
//    entry has the value 1 / K.
//  - EM1. EM0, and Laplace noise of scale b on each chosen entry's clipped value, truncated to the lattice and so in
//    [0, C2]: M K Laplace mechanisms of sensitivity C2.
// The M seeds are distinct slots, drawn uniformly over all N before the graph is read. A null slot's row is the zero
// vector, noised like any other. Candidates are always all N slots.
//
// For each thread, time O(M (volume of a row's support + K log K)) and memory the same without M; neither grows with N.
// A row visits at most RowEdgeCeiling edges. The proofs above hold for any solver: whatever vector it returns is
// clipped before noise is added, so a row that ends at the ceiling costs what any other does.
#ifndef DPAR_CORE_APPR_PRIVATE_ROWS_H_
#define DPAR_CORE_APPR_PRIVATE_ROWS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/appr/solver.h"
#include "core/graph/graph.h"
#include "core/random/random.h"
#include "dpar/v1/privacy.pb.h"

namespace dpar {

enum class ApprMechanism { kEm0, kEm1, kGm };

inline constexpr int kApprLatticeBits = 24;  // noise in steps of 2^-24 of its scale

struct PrivateRowsOptions {
  ApprParameters solver;
  ApprMechanism mechanism = ApprMechanism::kGm;
  int64_t rows = 70;       // M, 1..N
  int64_t k = 4;           // K, 1..N
  double clip = 0.01;      // C1 of GM, C2 of EM; 1e-12..1e6
  double noise = 0;        // sigma of GM, beta of EM; clip / 2^20 to 1e9 clip
  double value_noise = 0;  // b of EM1, within the same; 0 for the others
};

// A row for each seed. Columns of a row are distinct slots, ascending.
struct ApprRows {
  int64_t node_count = 0;
  std::vector<int32_t> seeds;
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> columns;
  std::vector<double> values;
};

// Gets the number of finished rows, also at intervals in which none finished. False cancels. Called from several
// threads at once. The timing of calls follows the data: show it to the data's owner only.
using RowsCallback = std::function<bool(int64_t rows_done)>;

// Most edges that one row visits, from public quantities: (2 / alpha) min(1 / rho, 8 N^2). That is twice what Andersen,
// Chung and Lang (2006) prove of their push method. At the defaults, rows of real graphs need up to half of it.
int64_t RowEdgeCeiling(const ApprParameters& parameters, int64_t node_count);

// The rows' event, from the options alone. INVALID_ARGUMENT names the option out of range for `node_count` slots.
absl::StatusOr<v1::PrivacyEvent> PrivateRowsEvent(const PrivateRowsOptions& options, int64_t node_count);

// Distinct, uniform over all slots, in the order drawn. 1 <= rows <= node_count.
std::vector<int32_t> DrawSeeds(int64_t node_count, int64_t rows, RandomSource& random);

struct PrivateRows {
  ApprRows rows;
  v1::PrivacyEvent event;  // PrivateRowsEvent of the options
};

// Every row has its own stream, so `threads` (>= 1) does not change the result. Errors: PrivateRowsEvent's, CANCELLED.
absl::StatusOr<PrivateRows> DrawPrivateRows(const GraphView& graph, const PrivateRowsOptions& options, int threads,
                                            RandomSource& random, const RowsCallback& callback);

// The exact vectors, entries ascending: not private. Seeds need not be distinct.
absl::StatusOr<ApprRows> SolveRows(const EdgesView& edges, const ApprParameters& parameters,
                                   const std::vector<int32_t>& seeds, int threads, const RowsCallback& callback);

}  // namespace dpar

#endif  // DPAR_CORE_APPR_PRIVATE_ROWS_H_
