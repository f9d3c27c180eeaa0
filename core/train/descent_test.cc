#include "core/train/descent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "core/graph/testing/questions.h"
#include "core/pace.h"
#include "core/random/lattice.h"
#include "core/random/secure_random.h"
#include "core/random/testing/fixed_random.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;

// Records the batches it is asked for, and adds `gradient` to every sum.
class RecordingEngine final : public GradientEngine {
 public:
  explicit RecordingEngine(double gradient) : gradient_(gradient) {}

  absl::Status Sum(std::span<const float> weights, std::span<const int64_t> batch, double clip,
                   std::span<double> sum) override {
    for (size_t i = 0; i < sum.size(); ++i) {
      EXPECT_EQ(sum[i], 0) << "a step starts from 0";
      sum[i] = i + kWeightPadding < sum.size() ? gradient_ : 0;
    }
    first_weights.push_back(weights[0]);
    batches.emplace_back(batch.begin(), batch.end());
    clips.push_back(clip);
    return absl::OkStatus();
  }

  std::vector<std::vector<int64_t>> batches;
  std::vector<float> first_weights;
  std::vector<double> clips;

 private:
  double gradient_;
};

v1::Plan SmallPlan(int64_t steps) {
  v1::Plan plan;
  plan.set_steps(steps);
  plan.set_learning_rate(1);
  plan.set_optimizer(v1::SGD);
  plan.set_gradient_clip(0.5);
  plan.set_noise_multiplier(4);
  plan.set_lattice_bits(24);
  plan.set_batch_size(1);
  plan.set_sampling_rate(1);
  return plan;
}

bool Continue() { return true; }
void Ignore(int64_t /*steps_done*/) {}

TEST(Descend, TheNoiseThatReachesTheWeightsHasThePlannedVarianceAndLiesOnTheLattice) {
  const v1::Plan plan = SmallPlan(1);
  const WeightShape shape{20'001, 0, 10};
  RecordingEngine engine(0);
  FixedRandom random(3);
  const auto weights = Descend(plan, shape, 5, engine, 2, random, Continue, Ignore);
  ASSERT_TRUE(weights.ok()) << weights.status();
  const double stddev = 2;
  double square = 0;
  double lag = 0;
  for (size_t i = 0; i < weights->size(); ++i) {
    const auto value = static_cast<double>((*weights)[i]);
    square += value * value;
    lag += i > 0 ? value * static_cast<double>((*weights)[i - 1]) : 0;
  }
  const auto count = static_cast<double>(weights->size());
  // Five standard errors of a chi-square with 200,010 degrees, and of the sum of products of neighbours: false-alarm
  // rate 6e-7 each, had the seed not been fixed.
  EXPECT_NEAR(square / (stddev * stddev), count, 5 * std::sqrt(2 * count));
  EXPECT_NEAR(lag / (stddev * stddev), 0, 5 * std::sqrt(count));
  const double step = LatticeStep(stddev, 24);
  std::set<float> distinct;
  for (const float value : *weights) {
    distinct.insert(value);
    // A float holds multiples of the step exactly up to 2^24 of them.
    if (std::fabs(value) < stddev) {
      EXPECT_EQ(std::remainder(static_cast<double>(value), step), 0);
    }
  }
  EXPECT_GT(distinct.size(), weights->size() * 98 / 100);
}

TEST(Descend, NoiseIsFreshInEveryStepAndEveryRun) {
  const v1::Plan plan = SmallPlan(2);
  RecordingEngine engine(0);
  SecureRandom random;
  const auto first = Descend(plan, {11, 0, 2}, 5, engine, 1, random, Continue, Ignore);
  const auto second = Descend(plan, {11, 0, 2}, 5, engine, 1, random, Continue, Ignore);
  EXPECT_NE(*first, *second);
  EXPECT_NE(engine.first_weights[1], engine.first_weights[0]);
}

TEST(Descend, TheResultDoesNotDependOnTheNumberOfThreads) {
  const v1::Plan plan = SmallPlan(2);
  const WeightShape shape{50'001, 0, 6};
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 5}) {
    RecordingEngine engine(0.5);
    FixedRandom random(4);
    results.push_back(*Descend(plan, shape, 5, engine, threads, random, Continue, Ignore));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Descend, DrawsEveryBatchAnewAndDividesByItsExpectedSize) {
  v1::Plan plan = SmallPlan(400);
  plan.set_non_private(true);
  plan.set_sampling_rate(0.1);
  plan.set_batch_size(10);
  plan.set_learning_rate(1e-3);
  RecordingEngine engine(1);
  FixedRandom random(5);
  const auto weights = Descend(plan, {3, 0, 2}, 100, engine, 1, random, Continue, Ignore);
  ASSERT_TRUE(weights.ok());
  EXPECT_NEAR(weights->front(), -400 * 1e-3 / 10, 1e-6) << "by the expected size, whatever was drawn";
  double total = 0;
  std::set<size_t> sizes;
  for (const std::vector<int64_t>& batch : engine.batches) {
    total += static_cast<double>(batch.size());
    sizes.insert(batch.size());
    EXPECT_TRUE(std::is_sorted(batch.begin(), batch.end()));
  }
  // 40,000 draws at 0.1: five standard errors are 300; false-alarm rate 6e-7.
  EXPECT_NEAR(total, 4000, 300);
  EXPECT_GT(sizes.size(), 5);
  EXPECT_TRUE(std::isinf(engine.clips[0])) << "without noise nothing is clipped";
}

TEST(Descend, AnEmptyBatchIsAStepOfNoiseAlone) {
  v1::Plan plan = SmallPlan(3);
  plan.set_sampling_rate(1e-12);
  RecordingEngine engine(0);
  FixedRandom random(6);
  const auto weights = Descend(plan, {11, 0, 2}, 5, engine, 1, random, Continue, Ignore);
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(engine.batches.size(), 3);
  EXPECT_TRUE(engine.batches[0].empty());
  EXPECT_NE(weights->front(), 0);
}

TEST(Descend, MomentumAndAdamMoveTheWeightsAsTheyShould) {
  v1::Plan plan = SmallPlan(3);
  plan.set_non_private(true);
  plan.set_momentum(0.5);
  RecordingEngine engine(1);
  FixedRandom random(7);
  // Velocities 1, 1.5, 1.75.
  EXPECT_FLOAT_EQ(Descend(plan, {3, 0, 2}, 5, engine, 1, random, Continue, Ignore)->front(), -4.25F);
  plan.set_optimizer(v1::ADAM);
  plan.set_momentum(0);
  plan.set_learning_rate(0.01);
  // A constant gradient moves Adam by the learning rate in every step.
  EXPECT_NEAR(Descend(plan, {3, 0, 2}, 5, engine, 1, random, Continue, Ignore)->front(), -0.03, 1e-5);
}

TEST(Descend, StartsAHiddenLayerFromSmallRandomWeights) {
  v1::Plan plan = SmallPlan(1);
  plan.set_non_private(true);
  plan.set_learning_rate(1e-9);
  RecordingEngine engine(0);
  FixedRandom random(8);
  const WeightShape shape{101, 20, 4};
  const auto weights = Descend(plan, shape, 5, engine, 1, random, Continue, Ignore);
  ASSERT_TRUE(weights.ok());
  const double bound = std::sqrt(6.0 / 121);
  double largest = 0;
  double sum = 0;
  for (int64_t i = 0; i < shape.first_layer(); ++i) {
    largest = std::fmax(largest, std::fabs((*weights)[static_cast<size_t>(i)]));
    sum += static_cast<double>((*weights)[static_cast<size_t>(i)]);
  }
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.95 * bound);
  EXPECT_NEAR(sum, 0, 5 * bound * std::sqrt(2020.0 / 3)) << "false-alarm rate 6e-7, had the seed not been fixed";
}

TEST(Descend, TellsEveryStep) {
  RecordingEngine engine(0);
  FixedRandom random(9);
  std::vector<int64_t> seen;
  EXPECT_TRUE(Descend(SmallPlan(3), {11, 0, 2}, 5, engine, 1, random, Continue, [&](int64_t steps) {
                seen.push_back(steps);
              }).ok());
  EXPECT_THAT(seen, ::testing::ElementsAre(1, 2, 3));
}

TEST(Descend, IsCancelledWheneverItAsksWhichIsOftenEnough) {
  constexpr int64_t kSteps = 3;
  for (const int64_t inputs : {11, 200'000}) {
    const WeightShape shape{inputs, 0, 2};
    for (const v1::Optimizer optimizer : {v1::SGD, v1::ADAM}) {
      v1::Plan plan = SmallPlan(kSteps);
      plan.set_optimizer(optimizer);
      const int64_t questions = testing::CancelAtEveryQuestion([&](const std::function<bool()>& keep_going) {
        RecordingEngine engine(0);
        FixedRandom random(10);
        return Descend(plan, shape, 5, engine, 2, random, keep_going, Ignore).status();
      });
      EXPECT_GE(questions, kSteps * (2 + shape.count() / (kEntriesPerQuestion + 2048)));
    }
  }
}

}  // namespace
}  // namespace dpar
