// The one place where feature rows become canonical: columns strictly ascending, no zeros.
#ifndef DPAR_CORE_GRAPH_CANONICAL_FEATURES_H_
#define DPAR_CORE_GRAPH_CANONICAL_FEATURES_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/stage.h"

namespace dpar {

// A row that names a column twice. Which of the values is meant nobody can say, so readers refuse it.
struct RepeatedFeature {
  int64_t row = 0;
  int32_t column = 0;
};

// Sorts the rows and drops zeros in place, and adds to `zeros_dropped`. Gives the first row that repeats a column,
// zeros included; the rows are then good for nothing. Time O(rows + entries) besides the sort of unsorted rows. Besides
// the rows it takes memory for the longest row that is not sorted.
std::optional<RepeatedFeature> CanonicaliseFeatures(SparseRows& rows, int64_t& zeros_dropped);
// The same, told how far it is. CANCELLED once `report` says no; the rows are then good for nothing.
absl::StatusOr<std::optional<RepeatedFeature>> CanonicaliseFeatures(SparseRows& rows, int64_t& zeros_dropped,
                                                                    const StageReport& report);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_CANONICAL_FEATURES_H_
