// Sums of clipped gradients: what a step of training releases, before its noise.
//
// Row i's gradient, of the cross-entropy of softmax(logits_i) and its label in all weights, is never formed: its norm
// follows from inner products of the row's inputs and of what flows back to them ("ghost norm"). With inputs z_k,
// weights w_k and residual e = softmax(logits) - label,
//   no hidden layer   (sum w_k z_k) e^T, of norm |sum w_k z_k| |e|
//   hidden layer h    first layer sum_k z_k d_k^T with d_k = w_k relu'(z_k W) * (V e), of squared norm
//                     sum_kl (z_k . z_l)(d_k . d_l); second layer a e^T with a = sum w_k relu(z_k W).
// The gradient is scaled to norm at most C, and further where the absolute values of its parts would have a norm above
// kMaxCancellation C. Bounds hold in exact arithmetic for the numbers added up: norms are rounded up and the scale
// stays below C by a guard factor. A row that is dead, or whose gradient is not finite, contributes exactly 0.
//
// What is added up depends on the row's own nodes, the weights and public quantities, and blocks of sums on positions
// in the batch alone: a batch without a node's rows gives the same bits with and without that node. This is what
// private jobs are priced for. It does not hold for LibTorch's engine, so that one runs plans without noise alone.
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

// In one array: W, (d + 1) x width, then V, hidden x c.
struct WeightShape {
  int64_t inputs = 0;   // d + 1
  int64_t hidden = 0;   // 0: none
  int64_t classes = 0;  // c

  [[nodiscard]] int64_t width() const { return hidden > 0 ? hidden : classes; }
  [[nodiscard]] int64_t first_layer() const { return inputs * width(); }
  [[nodiscard]] int64_t count() const { return first_layer() + hidden * classes; }
};

// Entries behind the last one of weights and sums that vector instructions may touch.
inline constexpr size_t kWeightPadding = 8;

// Clipping aims below C by this factor, for roundings of the scale and its products, to float at the coarsest.
inline constexpr double kClipGuard = 1 - 0x1p-22;

// Engines ask whether to go on, from several threads: when made, while they copy features, and in every sum, at the
// pace of core/pace.h. An engine that was stopped when it was made says so at the first sum.
class GradientEngine {
 public:
  virtual ~GradientEngine() = default;
  GradientEngine() = default;
  GradientEngine(const GradientEngine&) = delete;
  GradientEngine& operator=(const GradientEngine&) = delete;

  // Adds the clipped gradients of `batch` to `sum`, which is all 0. Both arrays have shape.count() entries and
  // kWeightPadding more, which stay 0. An infinite clip bound clips nothing. CANCELLED when told to stop.
  virtual absl::Status Sum(std::span<const float> weights, std::span<const int64_t> batch, double clip,
                           std::span<double> sum) = 0;
};

// Vector instructions, any number of threads. One array of sums per thread if a batch exceeds kSummationBlock rows.
std::unique_ptr<GradientEngine> MakeCpuEngine(const PreparedRows& rows, const WeightShape& shape, int threads,
                                              const std::function<bool()>& keep_going);

inline constexpr int64_t kMaxFullBatchColumns = int64_t{1} << 14;

// For batches of all rows, where every row is an identity row and there is no hidden layer. Faster: holds the inputs by
// row and by column, 4 bytes each for every feature entry. A row's input is rounded, by at most 2^-18 of its norm, and
// residuals to floats, before their exact products are added up in double; bounds are on the rounded ones.
std::unique_ptr<GradientEngine> MakeFullBatchEngine(const PreparedRows& rows, const WeightShape& shape, int threads,
                                                    const std::function<bool()>& keep_going);

// LibTorch tensors; the device holds the features. Not for private jobs: products are of the live rows alone, and their
// low bits follow the shape, on CUDA also the order in which threads add.
std::unique_ptr<GradientEngine> MakeTorchEngine(const PreparedRows& rows, const WeightShape& shape,
                                                const std::string& device, const std::function<bool()>& keep_going);

// The engine for a device: "cpu" or one of LibTorch's. `full_batch`: every batch is all rows. The choice follows from
// public quantities alone: engines do not give the same bits, and neighbours must get the same engine.
std::unique_ptr<GradientEngine> MakeEngine(const PreparedRows& rows, const WeightShape& shape, bool full_batch,
                                           const std::string& device, int threads,
                                           const std::function<bool()>& keep_going);

}  // namespace dpar

#endif  // DPAR_CORE_TRAIN_ENGINE_H_
