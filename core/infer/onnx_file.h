// A model as ONNX: input `x`, feature rows as uploaded (float, n x d), output `logits` (float, n x c). Rows are
// transformed in the graph (core/infer/input_rows.h), in double as prediction does. A model that reads edges has an
// input `edges` besides, every edge in both directions in two rows of slots (int64, 2 x m).
//
// Opset 13, and 16 for models that read edges, which need a scattered sum. The metadata has `dpar`, which is
// ModelHeader, and where the model has one, `schema`.
#ifndef DPAR_CORE_INFER_ONNX_FILE_H_
#define DPAR_CORE_INFER_ONNX_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "core/infer/model.h"

namespace dpar {

// A file of ONNX is one protocol buffer, which holds less than 2 GiB.
bool FitsOnnx(const Model& model);

// Atomic and synced; the same model gives the same bytes. INVALID_ARGUMENT for a model that is not valid or does not
// fit.
absl::Status WriteOnnxFile(const std::string& path, const Model& model);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_ONNX_FILE_H_
