// DP-APPR: top-K rows of approximate personalised PageRank under node-level differential privacy (the DPAR paper's
// Algorithms 1 and 3, with the accounting of docs/privacy.md).
//
// Neighbours: node removal in zero-out form. One node can change every one of the M rows, by anything that clipping
// leaves; nothing else is assumed about the graph, so no bound on degrees is needed.
//  - GM. A row is not negative, scaled to l2 norm at most C1 and truncated to the lattice of its noise, which keeps
//  both.
//    Two such rows are at most sqrt(2) C1 apart, so the M rows together are one Gaussian mechanism of sensitivity
//    sqrt(2 M) C1. Which K entries are shown, with the noisy values they have, is post-processing.
//  - EM0. Entries are clipped to [0, C2]. The K largest of entry plus Gumbel noise of scale beta are K exponential
//    mechanisms, each on the slots that are left, each of bounded range 2 C2 / beta: M K of them compose adaptively. A
//    chosen entry has the value 1 / K.
//  - EM1. The same, and to each chosen entry's clipped value, truncated to the lattice and so still in [0, C2], Laplace
//    noise of scale b: M K Laplace mechanisms of sensitivity C2.
//
// The M seeds are distinct slots, drawn uniformly over all N before the graph is looked at. A null slot's row is the
// zero vector, noised like any other. Candidates are always all N slots.
//
// Time O(M (volume of a row's support + K log K)), memory the same without M, for each thread; neither grows with N.
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

// Noise is released in steps of 2^-24 of its scale.
inline constexpr int kApprLatticeBits = 24;

struct PrivateRowsOptions {
  ApprParameters solver;
  ApprMechanism mechanism = ApprMechanism::kGm;
  int64_t rows = 70;       // M, 1..N
  int64_t k = 4;           // K, 1..N
  double clip = 0.01;      // C1 of GM, C2 of EM; 1e-12..1e6
  double noise = 0;        // sigma of GM, beta of EM; clip / 2^20 to 1e9 clip
  double value_noise = 0;  // b of EM1, within the same; 0 for the others
};

// A sparse matrix with one row for each seed. Columns of a row are distinct slots, ascending.
struct ApprRows {
  int64_t node_count = 0;
  std::vector<int32_t> seeds;
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> columns;
  std::vector<double> values;
};

// Tells that `rows_done` rows are finished, or that somebody works and none has been since. False cancels. Called from
// several threads at once. How fast it is called follows the data: not for the eyes of anyone but the data's owner.
using RowsCallback = std::function<bool(int64_t rows_done)>;

// What such rows cost, from the options alone. INVALID_ARGUMENT names the option that is out of range for a graph of
// `node_count` slots.
absl::StatusOr<v1::PrivacyEvent> PrivateRowsEvent(const PrivateRowsOptions& options, int64_t node_count);

// The M seeds: distinct, uniform over all slots, in the order drawn. 1 <= rows <= node_count.
std::vector<int32_t> DrawSeeds(int64_t node_count, int64_t rows, RandomSource& random);

// Rows and what they cost.
struct PrivateRows {
  ApprRows rows;
  v1::PrivacyEvent event;  // PrivateRowsEvent of the options
};

// Draws the rows. Every row has its own stream, so the result does not depend on `threads` (at least 1). Errors: those
// of PrivateRowsEvent, and CANCELLED.
absl::StatusOr<PrivateRows> DrawPrivateRows(const GraphView& graph, const PrivateRowsOptions& options, int threads,
                                            RandomSource& random, const RowsCallback& callback);

// The exact vectors of these seeds, entries ascending: not private. Seeds need not be distinct.
absl::StatusOr<ApprRows> SolveRows(const EdgesView& edges, const ApprParameters& parameters,
                                   const std::vector<int32_t>& seeds, int threads, const RowsCallback& callback);

}  // namespace dpar

#endif  // DPAR_CORE_APPR_PRIVATE_ROWS_H_
