// Whether the features of a file suit the default transform, for notes to their owner.
#ifndef DPAR_CORE_GRAPH_FEATURE_SCALES_H_
#define DPAR_CORE_GRAPH_FEATURE_SCALES_H_

#include <cstdint>

#include "core/graph/graph.h"

namespace dpar {

// Of the columns that have entries; a column's size is its largest magnitude.
struct FeatureScales {
  int64_t columns = 0;
  int64_t negative_columns = 0;  // with an entry below 0
  float smallest = 0;            // size of a column
  float largest = 0;
};

// Time O(entries + d), memory 8 bytes a column.
FeatureScales MeasureFeatures(const GraphView& graph);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_FEATURE_SCALES_H_
