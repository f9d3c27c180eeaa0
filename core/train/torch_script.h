// A model as TorchScript.
#ifndef DPAR_CORE_TRAIN_TORCH_SCRIPT_H_
#define DPAR_CORE_TRAIN_TORCH_SCRIPT_H_

#include <string>

#include "absl/status/status.h"
#include "core/infer/model.h"

namespace dpar {

// Writes a module whose forward(x) takes feature rows as uploaded (float, n x d), transforms them
// (core/infer/input_rows.h) and gives logits (n x c). A model that reads edges has forward(x, edges), with every edge
// in both directions in an int64 tensor of 2 x m. ModelHeader is the extra file "metadata.json". Atomic and synced; the
// same model gives the same bytes. UNAVAILABLE when the file cannot be written.
absl::Status WriteTorchScript(const std::string& path, const Model& model);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_TORCH_SCRIPT_H_
