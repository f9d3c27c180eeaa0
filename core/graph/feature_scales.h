// Whether the features of a file suit the default transform, for notes to their owner.
#ifndef DPAR_CORE_GRAPH_FEATURE_SCALES_H_
#define DPAR_CORE_GRAPH_FEATURE_SCALES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/graph/graph_file.h"

namespace dpar {

// Of the columns that have entries other than 0; a column's size is its largest magnitude.
struct FeatureScales {
  int64_t columns = 0;
  int64_t negative_columns = 0;  // with an entry below 0
  float smallest = 0;            // size of a column
  float largest = 0;

  bool operator==(const FeatureScales&) const = default;
};

// Time O(entries + d), memory 8 bytes a column.
FeatureScales MeasureFeatures(const GraphView& graph);

// The same of a graph file, of which only the features are read: memory 4 bytes an entry besides, none if the matrix is
// dense. Errors as of ReadGraphFile, as far as features show them.
absl::StatusOr<FeatureScales> ReadFeatureScales(const std::string& path, const GraphLimits& limits);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_FEATURE_SCALES_H_
