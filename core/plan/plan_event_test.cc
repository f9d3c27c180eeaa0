#include "core/plan/plan_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/privacy/accountant.h"
#include "core/privacy/budget.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;

constexpr PublicSizes kSizes = {2000, 100, 4};

v1::Plan PlanOf(v1::Method method, const std::function<void(v1::TrainingSpec&)>& set) {
  v1::TrainingSpec spec;
  spec.set_epsilon(1);
  spec.set_delta(1e-4);
  spec.set_method(method);
  set(spec);
  const auto plan = MakePlan(spec, kSizes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(v1::Plan());
}

TEST(StageUnits, AddUpToThePriceOfTheWhole) {
  const v1::Plan plan = PlanOf(v1::DPAR_GM, [](v1::TrainingSpec&) {});
  constexpr int64_t kOrder = 12;
  const auto costs = StageUnits(plan.event(), kOrder);
  ASSERT_TRUE(costs.ok()) << costs.status();
  int64_t sum = 0;
  std::vector<std::string> names;
  for (const v1::StagePrice& cost : *costs) {
    sum += cost.units();
    names.push_back(cost.stage());
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"dp-appr", "dp-sgd"}));
  EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(*EventUnits(plan.event(), kOrder)), 4.0);
}

TEST(StageUnits, WithoutNoiseThereIsNone) { EXPECT_TRUE(StageUnits(v1::PrivacyEvent(), 5)->empty()); }

std::vector<std::string> NamesOf(const v1::PrivacyEvent& event) {
  std::vector<std::string> names;
  for (const Stage& stage : StagesOf(event)) {
    names.push_back(stage.name);
  }
  return names;
}

TEST(PlanEvent, NamesEveryStageInTheOrderInWhichTheyRun) {
  const v1::Plan plan = PlanOf(v1::DPAR_EM1, [](v1::TrainingSpec& spec) {
    spec.mutable_options()->set_center(true);
    spec.mutable_options()->set_node_sampling_rate(0.5);
    spec.mutable_evaluation()->set_held_out_share(0.2);
    spec.mutable_evaluation()->set_budget_share(0.1);
  });
  EXPECT_THAT(NamesOf(plan.event()), ElementsAre("private-mean", "dp-appr", "dp-sgd", "class-shares", "evaluation"));
  EXPECT_TRUE(plan.event().composition().events(0).has_node_sampling());
  EXPECT_TRUE(plan.event().composition().events(1).has_stage()) << "the evaluation is not sampled";
  EXPECT_LE(*EventEpsilon(plan.event(), 1e-4), 1) << "by the accountant that verifies it, too";
  for (const Stage& stage : StagesOf(plan.event())) {
    EXPECT_EQ(stage.event.has_node_sampling(), stage.name != "evaluation");
    EXPECT_LT(*EventEpsilon(stage.event, 1e-4), 1);
  }
}

TEST(PlanEvent, ABatchIsAMixtureOfAllRowsThatANodeIsIn) {
  const v1::Plan plan = PlanOf(v1::DPAR_GM, [](v1::TrainingSpec& spec) {
    spec.mutable_options()->set_batch_size(200);
    spec.mutable_options()->set_max_occurrence(3);
    spec.mutable_options()->set_center(false);
    spec.mutable_options()->set_shift(false);
  });
  const v1::PrivacyEvent sgd = StagesOf(plan.event()).back().event;
  ASSERT_TRUE(sgd.has_repetition());
  EXPECT_EQ(sgd.repetition().count(), plan.steps());
  const v1::RowMixtureEvent& step = sgd.repetition().event().row_mixture();
  EXPECT_EQ(step.rows(), 4);
  EXPECT_EQ(step.sampling_rate(), 0.1);
  EXPECT_EQ(step.noise_stddev(), plan.noise_multiplier() * plan.gradient_clip());
  EXPECT_GT(step.sensitivity(), plan.gradient_clip() + 2 * plan.summation_error());
  EXPECT_LT(step.sensitivity(), plan.gradient_clip() * 1.001);
}

TEST(PlanEvent, RefusesAPlanWithoutAPrice) {
  v1::Plan plan = PlanOf(v1::FEATURES, [](v1::TrainingSpec& /*spec*/) {});
  plan.set_noise_multiplier(0);
  EXPECT_EQ(PlanEvent(plan, kSizes).status().code(), absl::StatusCode::kInvalidArgument);
  plan.set_noise_multiplier(std::nan(""));
  EXPECT_EQ(PlanEvent(plan, kSizes).status().code(), absl::StatusCode::kInvalidArgument);
  plan = PlanOf(v1::FEATURES, [](v1::TrainingSpec& /*spec*/) {});
  plan.mutable_structure();
  EXPECT_EQ(PlanEvent(plan, kSizes).status().code(), absl::StatusCode::kInvalidArgument);
  plan.clear_structure();
  plan.set_method(v1::SAGE);
  EXPECT_EQ(PlanEvent(plan, kSizes).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SummationError, GrowsWithBlocksNotWithTheirProduct) {
  EXPECT_DOUBLE_EQ(SummationError(1, 1, 1), 0x1p-52 * (1 + 1 + 16));
  EXPECT_DOUBLE_EQ(SummationError(4096, 1, 2), 0x1p-52 * (4096 + 1 + 16) * 4096 * 2);
  EXPECT_DOUBLE_EQ(SummationError(1'000'000, 2, 1), 0x1p-52 * (8192 + 245 + 16) * 1e6);
}

// The bound holds for sums taken as it says, of values that round badly.
TEST(SummationError, BoundsTheErrorOfABlockedSum) {
  constexpr int64_t kRows = 3 * kSummationBlock + 17;
  double sum = 0;
  long double exact = 0;
  for (int64_t first = 0; first < kRows; first += kSummationBlock) {
    double block = 0;
    for (int64_t row = first; row < std::min(first + kSummationBlock, kRows); ++row) {
      const double value = std::sin(static_cast<double>(row) * 0.7) + 0.1;
      block += value;
      exact += value;
    }
    sum += block;
  }
  EXPECT_LE(std::fabs(static_cast<double>(sum - exact)), SummationError(kRows, 1, 1.1));
  EXPECT_GT(std::fabs(static_cast<double>(sum - exact)), 0);
}

TEST(EpsilonAfter, RisesFromNothingToTheWholePrice) {
  const v1::Plan plan = PlanOf(v1::FEATURES, [](v1::TrainingSpec& spec) { spec.mutable_options()->set_center(false); });
  EXPECT_EQ(*EpsilonAfter(plan, kSizes, 0), 0);
  double before = 0;
  for (int64_t step = 1; step <= plan.steps(); ++step) {
    const double epsilon = *EpsilonAfter(plan, kSizes, step);
    EXPECT_GE(epsilon, before);
    before = epsilon;
  }
  EXPECT_NEAR(before, 1, 1e-8);
  EXPECT_LE(before, 1);
}

TEST(EpsilonAfter, CountsTheStagesBeforeTheFirstStepAndNotTheEvaluation) {
  const v1::Plan plan = PlanOf(v1::DPAR_EM0, [](v1::TrainingSpec& spec) {
    spec.mutable_evaluation()->set_held_out_share(0.2);
    spec.mutable_evaluation()->set_budget_share(0.1);
    spec.mutable_options()->set_center(false);
  });
  const double structure = *EventEpsilon(StagesOf(plan.event())[0].event, plan.delta());
  EXPECT_DOUBLE_EQ(*EpsilonAfter(plan, kSizes, 0), structure);
  EXPECT_GT(*EpsilonAfter(plan, kSizes, 1), structure);
  EXPECT_LT(*EpsilonAfter(plan, kSizes, plan.steps()), 1);
  EXPECT_EQ(*EpsilonAfter(plan, kSizes, plan.steps() + 5), *EpsilonAfter(plan, kSizes, plan.steps()));
}

TEST(EpsilonAfter, CountsTheClassSharesFromTheLastStepOn) {
  const v1::Plan plan = PlanOf(v1::FEATURES, [](v1::TrainingSpec& spec) { spec.mutable_options()->set_steps(100); });
  const double first = *EpsilonAfter(plan, kSizes, 98);
  const double second = *EpsilonAfter(plan, kSizes, 99);
  const double last = *EpsilonAfter(plan, kSizes, 100);
  EXPECT_GT(last - second, 1.5 * (second - first)) << "a hundredth of mu squared, where a step has 0.0095 of it";
  EXPECT_NEAR(last, 1, 1e-8);
}

}  // namespace
}  // namespace dpar
