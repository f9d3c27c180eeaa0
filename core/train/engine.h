// Sums of clipped gradients: what a step of training releases, before its noise.
//
// Row i's gradient is the gradient of the cross-entropy of softmax(logits_i) and its label in all weights. It is never
// formed: its norm follows from the inner products of the inputs that the row lists and of what flows back to them
// ("ghost norm"). With inputs z_k, weights w_k and residual e = softmax(logits) - label,
//   no hidden layer   (sum w_k z_k) e^T, of norm |sum w_k z_k| |e|
//   hidden layer h    first layer sum_k z_k d_k^T with d_k = w_k relu'(z_k W) * (V e), of squared norm
//                     sum_kl (z_k . z_l)(d_k . d_l); second layer a e^T with a = sum w_k relu(z_k W).
// The gradient is scaled to norm at most C, and further where the absolute values of what it is the sum of would
// have a norm above kMaxCancellation C. Bounds hold in exact arithmetic for the numbers that are added up: norms are
// rounded up and the scale is taken below C by a guard factor, so that no rounding carries a row beyond C. A row that
// is dead, or whose gradient is not finite, contributes exactly 0.
//
// What is added up depends on the row's own nodes, the weights and public quantities. Which blocks sums are taken in
// depends on positions in the batch alone: a batch that holds none of a node's rows gives the same bits with and
// without that node.
#ifndef DPAR_CORE_TRAIN_ENGINE_H_
#define DPAR_CORE_TRAIN_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "core/train/rows.h"

namespace dpar {

// Sizes of a model's weights in one array: W, (d + 1) x width, then V, hidden x c.
struct WeightShape {
  int64_t inputs = 0;   // d + 1
  int64_t hidden = 0;   // 0: none
  int64_t classes = 0;  // c

  [[nodiscard]] int64_t width() const { return hidden > 0 ? hidden : classes; }
  [[nodiscard]] int64_t first_layer() const { return inputs * width(); }
  [[nodiscard]] int64_t count() const { return first_layer() + hidden * classes; }
};

// Entries that arrays of weights and sums have behind their last one: vector instructions may touch them.
inline constexpr size_t kWeightPadding = 8;

// Clipping aims below C by this factor: room for roundings of the scale and of what it is multiplied with, to float at
// the coarsest.
inline constexpr double kClipGuard = 1 - 0x1p-22;

// Engines ask whether to go on, from several threads: when they are made, while they copy features, and in every sum,
// at the pace of core/pace.h. An engine that was told to stop when it was made says so at the first sum.
class GradientEngine {
 public:
  virtual ~GradientEngine() = default;
  GradientEngine() = default;
  GradientEngine(const GradientEngine&) = delete;
  GradientEngine& operator=(const GradientEngine&) = delete;

  // Adds the clipped gradients of the rows in `batch` to `sum`, which is all 0. Both arrays have shape.count() entries
  // and kWeightPadding more, which stay 0. An infinite clip bound clips nothing. CANCELLED when told to stop.
  virtual absl::Status Sum(std::span<const float> weights, std::span<const int64_t> batch, double clip,
                           std::span<double> sum) = 0;
};

// Vector instructions, for any number of threads. Memory: one array of sums for each thread, when a batch has more than
// kSummationBlock rows.
std::unique_ptr<GradientEngine> MakeCpuEngine(const PreparedRows& rows, const WeightShape& shape, int threads,
                                              const std::function<bool()>& keep_going);

// Features that the engine below takes.
inline constexpr int64_t kMaxFullBatchColumns = int64_t{1} << 14;

// For batches of all rows at once, where every row is an identity row and there is no hidden layer: holds the inputs by
// row and by column, 4 bytes each for every feature entry, so that a step reads each twice and never goes back and
// forth between sums. Faster than the engine above. A row's input is rounded, by at most 2^-18 of its norm, and
// residuals to floats, before their products, which are exact, are added up in double; bounds are on the rounded ones.
std::unique_ptr<GradientEngine> MakeFullBatchEngine(const PreparedRows& rows, const WeightShape& shape, int threads,
                                                    const std::function<bool()>& keep_going);

// LibTorch tensors on any of its devices, which holds the features.
std::unique_ptr<GradientEngine> MakeTorchEngine(const PreparedRows& rows, const WeightShape& shape,
                                                const std::string& device, const std::function<bool()>& keep_going);

// The engine for a device: "cpu" or one of LibTorch's. `full_batch` promises that every batch is all rows. Which of the
// CPU's engines it is follows from public quantities alone, since two engines do not give the same bits for the same
// rows, and neighbours must get the same engine.
std::unique_ptr<GradientEngine> MakeEngine(const PreparedRows& rows, const WeightShape& shape, bool full_batch,
                                           const std::string& device, int threads,
                                           const std::function<bool()>& keep_going);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_ENGINE_H_
