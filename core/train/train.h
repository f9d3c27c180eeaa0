// Private training. No torch type appears here, so that only this room's sources pay for LibTorch's headers.
#ifndef DPAR_CORE_TRAIN_TRAIN_H_
#define DPAR_CORE_TRAIN_TRAIN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/infer/model.h"
#include "core/random/random.h"
#include "dpar/v1/training.pb.h"

namespace dpar {

// The only device that runs plans with noise (core/train/engine.h says why).
inline constexpr char kPrivateDevice[] = "cpu";

// The result depends on the device, as floating point does, but not on the number of threads.
struct TrainOptions {
  std::string device = kPrivateDevice;  // "cuda:i" for plans without noise alone
  int threads = 1;
};

enum class TrainingStage {
  kStructure,   // DP-APPR: one stage without counters, because its speed follows the data
  kTraining,    // steps
  kEvaluating,  // the charged evaluation
};

// All of it is public.
struct TrainingCallbacks {
  // False cancels. Asked every few milliseconds of work (core/pace.h), from several threads at once.
  std::function<bool()> keep_going;
  // Units completed of the stage, from 0; total is 0 for stages without counters.
  std::function<void(TrainingStage stage, int64_t completed, int64_t total)> on_progress;
  // Waits until the stage is so old, or keep_going says no. Called at the end of a stage whose work follows private
  // data, with a public age. May be missing.
  std::function<void(double seconds)> await_stage_age = nullptr;
};

struct TrainedModel {
  Model model;
  std::optional<v1::Evaluation> evaluation;
};

// Runs `plan` on the graph. A non-finite row or gradient counts as 0. The only errors are CANCELLED and
// INVALID_ARGUMENT for a plan that does not fit a graph of these sizes, or this device.
absl::StatusOr<TrainedModel> Train(const v1::Plan& plan, const GraphView& graph, const TrainOptions& options,
                                   RandomSource& random, const TrainingCallbacks& callbacks);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_TRAIN_H_
