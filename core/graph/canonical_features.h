// Makes feature rows canonical: columns strictly ascending, no zeros.
#ifndef DPAR_CORE_GRAPH_CANONICAL_FEATURES_H_
#define DPAR_CORE_GRAPH_CANONICAL_FEATURES_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/stage.h"

namespace dpar {

// A row that names a column twice. Readers refuse it, because its value is ambiguous.
struct RepeatedFeature {
  int64_t row = 0;
  int32_t column = 0;
};

// Works in place and adds to `zeros_dropped`. Returns the first row that repeats a column, zeros included; the rows are
// then unusable. Time O(rows + entries) plus sorting; memory for the longest unsorted row.
std::optional<RepeatedFeature> CanonicaliseFeatures(SparseRows& rows, int64_t& zeros_dropped);
// The same with progress. CANCELLED once `report` says no; the rows are then unusable.
absl::StatusOr<std::optional<RepeatedFeature>> CanonicaliseFeatures(SparseRows& rows, int64_t& zeros_dropped,
                                                                    const StageReport& report);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_CANONICAL_FEATURES_H_
