#include "core/graph/feature_scales.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace dpar {

FeatureScales MeasureFeatures(const GraphView& graph) {
  const auto width = static_cast<size_t>(graph.sizes.feature_count);
  std::vector<float> sizes(width, 0);
  std::vector<float> lowest(width, 0);
  for (size_t i = 0; i < graph.features.columns.size(); ++i) {
    const auto column = static_cast<size_t>(graph.features.columns[i]);
    const float value = graph.features.values[i];
    sizes[column] = std::max(sizes[column], std::fabs(value));
    lowest[column] = std::min(lowest[column], value);
  }
  FeatureScales scales;
  for (size_t column = 0; column < width; ++column) {
    if (sizes[column] > 0) {
      scales.smallest = scales.columns == 0 ? sizes[column] : std::min(scales.smallest, sizes[column]);
      scales.largest = std::max(scales.largest, sizes[column]);
      ++scales.columns;
      scales.negative_columns += lowest[column] < 0 ? 1 : 0;
    }
  }
  return scales;
}

}  // namespace dpar
