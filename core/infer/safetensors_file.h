// A model as safetensors: the arrays of the npz (core/infer/model.h) under their names, as F32. The metadata has
// `dpar`, which is ModelHeader, and where the model has one, `schema`.
#ifndef DPAR_CORE_INFER_SAFETENSORS_FILE_H_
#define DPAR_CORE_INFER_SAFETENSORS_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "core/infer/model.h"

namespace dpar {

// Atomic and synced; the same model gives the same bytes. INVALID_ARGUMENT for a model that is not valid.
absl::Status WriteSafetensorsFile(const std::string& path, const Model& model);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_SAFETENSORS_FILE_H_
