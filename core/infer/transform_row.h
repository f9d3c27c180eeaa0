// The row-wise transform of model.h for one row, so that prediction need not hold a transformed copy of all rows.
#ifndef DPAR_CORE_INFER_TRANSFORM_ROW_H_
#define DPAR_CORE_INFER_TRANSFORM_ROW_H_

#include <cmath>
#include <cstdint>
#include <span>

#include "core/infer/model.h"

namespace dpar {

// Calls `emit(column, value)` for every entry of the transformed row that is not 0. Entries that are negative or not
// finite count as 0.
template <typename Emit>
void TransformRow(std::span<const int32_t> columns, std::span<const float> values, const Emit& emit) {
  const auto counts = [](float value) { return value > 0 && std::isfinite(value); };
  double sum = 0;  // of the squares of the square roots
  for (const float value : values) {
    sum += counts(value) ? static_cast<double>(value) : 0.0;
  }
  if (sum == 0) {
    return;
  }
  const double scale = kRowScale / std::sqrt(sum);
  for (size_t i = 0; i < values.size(); ++i) {
    if (counts(values[i])) {
      emit(columns[i], std::sqrt(static_cast<double>(values[i])) * scale);
    }
  }
}

}  // namespace dpar

#endif  // DPAR_CORE_INFER_TRANSFORM_ROW_H_
