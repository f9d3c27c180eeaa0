// Bounds on the columns of DP-APPR rows: how often, and with how much weight, one slot may be listed. The one place
// where this is done. It reads released rows only, so it is post-processing and costs nothing.
//
// The cap is what training pays for: removing a node takes away the rows that list it, at most max_occurrence of them
// besides its own. The l1 clip is the paper's (Algorithm 2, lines 2 to 4); it bounds weights, not gradients, and no
// price relies on it.
#ifndef DPAR_CORE_APPR_COLUMNS_H_
#define DPAR_CORE_APPR_COLUMNS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/appr/private_rows.h"

namespace dpar {

// Keeps in each column the max_occurrence entries of largest absolute value, the earlier row of equal ones, then scales
// columns whose l1 norm is above tau down to it. INVALID_ARGUMENT unless max_occurrence >= 1 and tau > 0 (infinite
// means no clip). Time O(entries log entries).
absl::Status BoundColumns(int64_t max_occurrence, double tau, ApprRows& rows);

}  // namespace dpar

#endif  // DPAR_CORE_APPR_COLUMNS_H_
