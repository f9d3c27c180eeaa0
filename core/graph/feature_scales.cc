#include "core/graph/feature_scales.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/graph/graph_error.h"
#include "core/graph/graph_layout.h"
#include "core/graph/npz.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

class ColumnSizes {
 public:
  explicit ColumnSizes(int64_t feature_count)
      : sizes_(static_cast<size_t>(feature_count), 0), lowest_(static_cast<size_t>(feature_count), 0) {}

  void Add(size_t column, float value) {
    sizes_[column] = std::max(sizes_[column], std::fabs(value));
    lowest_[column] = std::min(lowest_[column], value);
  }

  [[nodiscard]] FeatureScales Scales() const {
    FeatureScales scales;
    for (size_t column = 0; column < sizes_.size(); ++column) {
      if (sizes_[column] > 0) {
        scales.smallest = scales.columns == 0 ? sizes_[column] : std::min(scales.smallest, sizes_[column]);
        scales.largest = std::max(scales.largest, sizes_[column]);
        ++scales.columns;
        scales.negative_columns += lowest_[column] < 0 ? 1 : 0;
      }
    }
    return scales;
  }

 private:
  std::vector<float> sizes_;
  std::vector<float> lowest_;
};

absl::Status AddSparse(NpzFile& file, const GraphLayout& layout, const GraphLimits& limits, ColumnSizes& sizes) {
  const SparseNames& names = *layout.sparse_features;
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, file.ReadShape(names.indices));
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> data_shape, file.ReadShape(names.data));
  if (shape.size() != 1 || data_shape != shape) {
    return GraphError(names.data, absl::StrCat("must have one dimension, as ", names.indices, " must"));
  }
  if (shape[0] > limits.max_feature_entries) {
    return LimitError("max_feature_entries", limits.max_feature_entries);
  }
  std::vector<int32_t> columns;
  columns.reserve(static_cast<size_t>(shape[0]));
  DPAR_RETURN_IF_ERROR(ReadInt32(file, names.indices, 0, layout.feature_count - 1, columns));
  auto column = columns.begin();
  return ReadFloats(file, names.data, [&](float value) { sizes.Add(static_cast<size_t>(*column++), value); });
}

absl::Status AddDense(NpzFile& file, const GraphLayout& layout, ColumnSizes& sizes) {
  const auto width = static_cast<size_t>(layout.feature_count);
  size_t column = 0;
  return ReadFloats(file, layout.dense_features, [&](float value) {
    sizes.Add(column, value);
    column = column + 1 == width ? 0 : column + 1;
  });
}

}  // namespace

FeatureScales MeasureFeatures(const GraphView& graph) {
  ColumnSizes sizes(graph.sizes.feature_count);
  for (size_t i = 0; i < graph.features.columns.size(); ++i) {
    sizes.Add(static_cast<size_t>(graph.features.columns[i]), graph.features.values[i]);
  }
  return sizes.Scales();
}

absl::StatusOr<FeatureScales> ReadFeatureScales(const std::string& path, const GraphLimits& limits) {
  DPAR_ASSIGN_OR_RETURN(NpzFile file, NpzFile::Open(path, limits.npz));
  DPAR_ASSIGN_OR_RETURN(const GraphLayout layout, ReadGraphLayout(file, limits));
  ColumnSizes sizes(layout.feature_count);
  DPAR_RETURN_IF_ERROR(layout.sparse_features.has_value() ? AddSparse(file, layout, limits, sizes)
                                                          : AddDense(file, layout, sizes));
  return sizes.Scales();
}

}  // namespace dpar
