#include "core/train/descent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "core/fault.h"
#include "core/pace.h"
#include "core/parallel.h"
#include "core/random/lattice.h"
#include "core/random/repeated_random.h"
#include "core/random/subsets.h"
#include "core/status_macros.h"
#include "core/train/kernels.h"

namespace dpar {
namespace {

constexpr size_t kUpdateBlock = 2048;  // weights that stay in the cache while their noise is drawn and added
// A fixed number of noise streams, so that the result does not depend on the number of threads.
constexpr size_t kStreams = 16;
constexpr size_t kWeightsPerStream = 1 << 16;
constexpr double kAdamFirstDecay = 0.9;
constexpr double kAdamSecondDecay = 0.999;
constexpr double kAdamFloor = 1e-8;

void Initialise(const WeightShape& shape, RandomSource& random, std::vector<float>& weights) {
  if (shape.hidden == 0) {
    return;
  }
  const auto fill = [&](size_t first, size_t count, int64_t fan) {
    const double bound = std::sqrt(6 / static_cast<double>(fan));
    for (size_t i = first; i < first + count; ++i) {
      weights[i] = static_cast<float>(bound * (2 * UniformReal(random) - 1));
    }
  };
  const auto first_layer = static_cast<size_t>(shape.first_layer());
  fill(0, first_layer, shape.inputs + shape.hidden);
  fill(first_layer, static_cast<size_t>(shape.hidden * shape.classes), shape.hidden + shape.classes);
}

class State {
 public:
  State(const v1::Plan& plan, const WeightShape& shape, int threads, RandomSource& random)
      : plan_(plan), count_(static_cast<size_t>(shape.count())), threads_(threads) {
    weights_.resize(count_ + kWeightPadding);
    sum_.resize(count_ + kWeightPadding);
    velocity_.resize(count_);
    if (plan.optimizer() == v1::ADAM) {
      second_.resize(count_);
    }
    Initialise(shape, random, weights_);
    const size_t streams = std::clamp<size_t>(count_ / kWeightsPerStream, 1, kStreams);
    for (size_t i = 0; i < streams; ++i) {
      streams_.push_back(
          DPAR_FAULT(kReusedBatchNoise, std::make_unique<RepeatedRandom>(random.Split()), random.Split()));
    }
  }

  [[nodiscard]] std::span<const float> weights() const { return weights_; }
  [[nodiscard]] std::span<double> sum() { return sum_; }

  // Adds noise to the sum, moves the weights, and leaves the sum at 0. The state is unusable once keep_going said no.
  void Update(int64_t step, const std::function<bool()>& keep_going) {
    ParallelFor(static_cast<int64_t>(streams_.size()), threads_, [&](int /*worker*/, int64_t stream) {
      const size_t streams = streams_.size();
      const auto index = static_cast<size_t>(stream);
      const size_t last = count_ * (index + 1) / streams;
      DPAR_FAULT_DO(kReusedBatchNoise, static_cast<RepeatedRandom&>(*streams_[index]).Rewind());
      Pace pace(keep_going);
      for (size_t first = count_ * index / streams; first < last && pace.GoOn(kUpdateBlock); first += kUpdateBlock) {
        UpdateBlock(step, first, std::min(kUpdateBlock, last - first), *streams_[index]);
      }
    });
  }

  [[nodiscard]] std::vector<float> TakeWeights() {
    weights_.resize(count_);
    return std::move(weights_);
  }

 private:
  void UpdateBlock(int64_t step, size_t first, size_t count, RandomSource& random) {
    if (!DPAR_FAULT(kNoiseBeforeClipping, true, plan_.non_private())) {
      const double noise = plan_.noise_multiplier() * plan_.gradient_clip();
      AddLatticeNoise(random, DPAR_FAULT(kHalfNoise, noise / 2, noise), plan_.lattice_bits(),
                      std::span(sum_).subspan(first, count));
    }
    const double scale = 1 / plan_.batch_size();
    if (plan_.optimizer() == v1::ADAM) {
      const double correction = std::sqrt(1 - std::pow(kAdamSecondDecay, static_cast<double>(step + 1)));
      const double rate =
          plan_.learning_rate() * correction / (1 - std::pow(kAdamFirstDecay, static_cast<double>(step + 1)));
      CpuKernels().adam_update(count, scale, static_cast<float>(rate), static_cast<float>(kAdamFloor * correction),
                               sum_.data() + first, velocity_.data() + first, second_.data() + first,
                               weights_.data() + first);
      return;
    }
    CpuKernels().momentum_update(count, static_cast<float>(plan_.momentum()), scale,
                                 static_cast<float>(plan_.learning_rate()), sum_.data() + first,
                                 velocity_.data() + first, weights_.data() + first);
  }

  const v1::Plan& plan_;
  const size_t count_;
  const int threads_;
  std::vector<float> weights_;
  std::vector<double> sum_;
  std::vector<float> velocity_;  // Adam: first moment
  std::vector<float> second_;    // Adam only
  std::vector<std::unique_ptr<RandomSource>> streams_;
};

#ifdef DPAR_TEST_SEAMS
// For a fault: noise on each live row's gradient before clipping. Needs an engine for any batch.
absl::Status SumNoisyRows(const v1::Plan& plan, std::span<const float> weights, std::span<const int64_t> batch,
                          GradientEngine& engine, RandomSource& random, std::span<double> sum) {
  const size_t count = sum.size() - kWeightPadding;
  for (const int64_t row : batch) {
    std::vector<double> own(sum.size(), 0.0);
    DPAR_RETURN_IF_ERROR(engine.Sum(weights, std::span(&row, 1), std::numeric_limits<double>::infinity(), own));
    if (std::all_of(own.begin(), own.end(), [](double value) { return value == 0; })) {
      continue;
    }
    AddLatticeNoise(random, plan.noise_multiplier() * plan.gradient_clip(), plan.lattice_bits(),
                    std::span(own).first(count));
    const double norm = std::sqrt(std::inner_product(own.begin(), own.end(), own.begin(), 0.0));
    const double scale = std::min(1.0, plan.gradient_clip() / norm);
    std::transform(sum.begin(), sum.end(), own.begin(), sum.begin(), [&](double a, double b) { return a + scale * b; });
  }
  return absl::OkStatus();
}

// For a fault: as many rows as a batch is expected to have.
std::vector<int64_t> FixedBatch(RandomSource& random, int64_t row_count, double rate) {
  return SampleWithoutReplacement(random, row_count, std::llround(rate * static_cast<double>(row_count)));
}
#endif

std::vector<int64_t> DrawBatch(const v1::Plan& plan, int64_t row_count, RandomSource& random) {
  return DPAR_FAULT(kShuffledBatches, FixedBatch(random, row_count, plan.sampling_rate()),
                    PoissonSubset(random, row_count, plan.sampling_rate()));
}

}  // namespace

absl::StatusOr<std::vector<float>> Descend(const v1::Plan& plan, const WeightShape& shape, int64_t row_count,
                                           GradientEngine& engine, int threads, RandomSource& random,
                                           const std::function<bool()>& keep_going,
                                           const std::function<void(int64_t steps_done)>& on_step) {
  KeepGoing until_told(keep_going);
  State state(plan, shape, threads, random);
  const double clip = DPAR_FAULT(kNoClipping, true, plan.non_private()) ? std::numeric_limits<double>::infinity()
                                                                        : plan.gradient_clip();
  std::vector<int64_t> batch = DrawBatch(plan, row_count, random);
  for (int64_t step = 0; step < plan.steps(); ++step) {
    if (step > 0 && plan.sampling_rate() < 1) {
      batch = DrawBatch(plan, row_count, random);
    }
    DPAR_RETURN_IF_ERROR(DPAR_FAULT(kNoiseBeforeClipping,
                                    SumNoisyRows(plan, state.weights(), batch, engine, random, state.sum()),
                                    engine.Sum(state.weights(), batch, clip, state.sum())));
    state.Update(step, std::ref(until_told));
    if (!until_told()) {
      return absl::CancelledError("training was cancelled");
    }
    on_step(step + 1);
  }
  return state.TakeWeights();
}

}  // namespace dpar
