// What tests of private rows share: options, rows drawn from a fixed stream, and parts of them.
#ifndef DPAR_CORE_APPR_TESTING_DRAWN_ROWS_H_
#define DPAR_CORE_APPR_TESTING_DRAWN_ROWS_H_

#include <cstdint>
#include <vector>

#include "core/appr/private_rows.h"
#include "core/graph/graph.h"

namespace dpar::testing {

inline constexpr ApprMechanism kMechanisms[] = {ApprMechanism::kEm0, ApprMechanism::kEm1, ApprMechanism::kGm};

// The smallest noise that is allowed, over the clip: what is released is what was clipped, to within kTolerance of the
// clip even for the largest Laplace noise there is, 44.4 scales.
inline constexpr double kTinyNoise = 0x1p-20;
inline constexpr double kTolerance = 1e-4;

// Clip 0.01, noise 0.02, value noise 0.03 where it belongs, rho 1e-3.
PrivateRowsOptions OptionsFor(ApprMechanism mechanism, int64_t rows, int64_t k);
// The same where noise hides nothing.
PrivateRowsOptions ClearOptions(ApprMechanism mechanism, int64_t rows, int64_t k, double clip);

// Goes on for ever.
bool NeverCancel(int64_t rows_done);

// Throws unless the rows are drawn.
ApprRows Drawn(const GraphView& graph, const PrivateRowsOptions& options, uint64_t stream, int threads = 1);

std::vector<int32_t> ColumnsOf(const ApprRows& rows, size_t row);
std::vector<double> ValuesOf(const ApprRows& rows, size_t row);
// With its zeros.
std::vector<double> DenseRow(const ApprRows& rows, size_t row);
// Which row belongs to this seed.
size_t RowOfSeed(const ApprRows& rows, int32_t seed);

// The solver's vectors of these seeds, with their zeros.
std::vector<std::vector<double>> ExactRows(const EdgesView& edges, const ApprParameters& parameters,
                                           const std::vector<int32_t>& seeds);

}  // namespace dpar::testing

#endif  // DPAR_CORE_APPR_TESTING_DRAWN_ROWS_H_
