// The released model and its torch-free file.
#ifndef DPAR_CORE_INFER_MODEL_H_
#define DPAR_CORE_INFER_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"

namespace dpar {

// A linear softmax model. Rows of `weights` are features, the last one the bias; columns are classes. Logits of a node
// are TransformedRow(x) * weights.
struct LinearModel {
  int64_t feature_count = 0;   // d
  int64_t class_count = 0;     // c
  std::vector<float> weights;  // (d + 1) * c, row-major
  std::string metadata;        // a JSON object: method, plan, names; all of it public
};

// The row-wise transform that training and prediction share: x <- sqrt(max(x, 0)), scaled so that |x| = sqrt(0.99),
// then one more entry, the bias input 0.1. A row without a positive entry becomes (0, 0.1). |row| <= 1 always.
inline constexpr double kRowScale = 0.99498743710661995;  // sqrt(0.99)
inline constexpr double kBiasInput = 0.1;

// The transform of every feature row (without the bias input), in double.
struct TransformedRows {
  std::vector<int64_t> offsets;
  std::vector<int32_t> columns;
  std::vector<double> values;
};
TransformedRows TransformRows(const SparseRowsView& features);

// Writes an npz with `weights` (float32, (d+1) x c) and `header` (the metadata), atomically and deterministically.
absl::Status WriteModelFile(const std::string& path, const LinearModel& model);

// Reads and validates it: shapes agree, weights finite, header is a JSON object. INVALID_ARGUMENT otherwise.
absl::StatusOr<LinearModel> ReadModelFile(const std::string& path);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_MODEL_H_
