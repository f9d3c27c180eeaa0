// Private training. No torch type appears here, so that only this room's sources pay for LibTorch's headers.
#ifndef DPAR_CORE_TRAIN_TRAIN_H_
#define DPAR_CORE_TRAIN_TRAIN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/infer/model.h"
#include "core/random/random.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// Called after every step with the number of steps done (a public counter). Returning false cancels training.
using StepCallback = std::function<bool(int64_t steps_done)>;

// Runs `plan` on the graph. Total: a non-finite row or gradient counts as 0, and the only errors are CANCELLED and a
// plan that does not belong to a graph of these sizes (INVALID_ARGUMENT). `device` is "cpu" or "cuda:i".
absl::StatusOr<LinearModel> Train(const v1::Plan& plan, const GraphView& graph, const std::string& device,
                                  RandomSource& random, const StepCallback& on_step);

// Devices on this machine, best first: "cuda:0", ..., "cpu".
std::vector<std::string> AvailableDevices();

// Writes the model as TorchScript, whose forward(x) takes rows of the transformed features with the bias input and
// gives logits; the metadata is the extra file "metadata.json". Written atomically.
absl::Status WriteTorchScript(const std::string& path, const LinearModel& model);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_TRAIN_H_
