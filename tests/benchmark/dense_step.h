// A private step as it is usually written: dense inputs, LibTorch's autograd, and the gradient of every row in memory.
#ifndef DPAR_TESTS_BENCHMARK_DENSE_STEP_H_
#define DPAR_TESTS_BENCHMARK_DENSE_STEP_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/graph/graph.h"

namespace dpar {

// softmax(relu(x W) V) on unit rows with a bias input, as Opacus trains it: autograd gives what flows back to each
// layer's output, an outer product makes B x d x h and B x h x c tensors of it, and those are normed, scaled and
// summed. Noise is Gaussian from LibTorch's generator, in float. One thread.
class DenseStep {
 public:
  DenseStep(const GraphView& graph, int64_t hidden);
  ~DenseStep();
  DenseStep(const DenseStep&) = delete;
  DenseStep& operator=(const DenseStep&) = delete;

  // Makes the batch's rows dense. Apart from the step, since such programs hold their inputs dense.
  void Load(std::span<const int64_t> slots);
  // One step over the loaded rows.
  void Run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dpar

#endif  // DPAR_TESTS_BENCHMARK_DENSE_STEP_H_
