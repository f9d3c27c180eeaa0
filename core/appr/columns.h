// Bounds how often, and with how much weight, one slot may be listed in DP-APPR rows. It reads released rows only, so
// it is post-processing. Training pays for the cap: removing a node takes away the rows that list it, at most
// max_occurrence besides its own. The l1 clip is the paper's (Algorithm 2, lines 2 to 4); it bounds weights, not
// gradients, and no price relies on it.
#ifndef DPAR_CORE_APPR_COLUMNS_H_
#define DPAR_CORE_APPR_COLUMNS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/appr/private_rows.h"

namespace dpar {

// Keeps in each column the max_occurrence entries of largest absolute value (ties: the earlier row), then scales
// columns of l1 norm above tau down to it. INVALID_ARGUMENT unless max_occurrence >= 1 and tau > 0 (infinite: no clip).
// Time O(entries log entries).
absl::Status BoundColumns(int64_t max_occurrence, double tau, ApprRows& rows);

}  // namespace dpar

#endif  // DPAR_CORE_APPR_COLUMNS_H_
