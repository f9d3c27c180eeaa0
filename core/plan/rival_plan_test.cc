// Plans of GAP and SAGE.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/plan/plan.h"
#include "core/plan/plan_event.h"
#include "core/privacy/accountant.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr PublicSizes kSizes = {2000, 100, 4};
constexpr int64_t kMaxDegree = 25;

absl::StatusOr<v1::Plan> Planned(v1::Method method, const std::function<void(v1::TrainingSpec&)>& set,
                                 int64_t max_degree = kMaxDegree) {
  v1::TrainingSpec spec;
  spec.set_epsilon(1);
  spec.set_delta(1e-4);
  spec.set_method(method);
  set(spec);
  return MakePlan(spec, kSizes, max_degree);
}

void AsItIs(v1::TrainingSpec& /*spec*/) {}
void Short(v1::TrainingSpec& spec) { spec.mutable_options()->set_steps(20); }

std::string FieldOf(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->metadata().at("field") : "(none)";
}

TEST(RivalPlan, WithoutADegreePromiseIsRefusedUnlessWithoutNoise) {
  for (const v1::Method method : {v1::GAP, v1::SAGE}) {
    const auto refused = Planned(method, Short, 0);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(GetErrorInfo(refused.status())->reason(), "INVALID_FIELD");
    EXPECT_EQ(FieldOf(refused.status()), "method");
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("no degree promise"));
    v1::TrainingSpec open;
    open.set_method(method);
    open.set_non_private(true);
    const auto plan = MakePlan(open, kSizes);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_FALSE(plan->has_max_degree());
    EXPECT_FALSE(plan->has_event());
  }
}

TEST(RivalPlan, OtherMethodsDoNotLookAtThePromise) {
  const auto with = Planned(v1::FEATURES, AsItIs);
  const auto without = Planned(v1::FEATURES, AsItIs, 0);
  EXPECT_EQ(with->SerializeAsString(), without->SerializeAsString());
  EXPECT_FALSE(with->has_max_degree());
}

TEST(RivalPlan, HasTheValuesOfItsPaperUnlessAskedOtherwise) {
  const v1::Plan gap = Planned(v1::GAP, AsItIs).value();
  EXPECT_EQ(gap.aggregation().hops(), 2);
  EXPECT_EQ(gap.aggregation().clip(), 2.5);
  EXPECT_EQ(gap.hidden_size(), 16);
  EXPECT_EQ(gap.batch_size(), 256);
  EXPECT_EQ(gap.steps(), 781);
  EXPECT_EQ(gap.learning_rate(), 0.01);
  EXPECT_EQ(gap.gradient_clip(), 1);
  EXPECT_EQ(gap.optimizer(), v1::ADAM);
  EXPECT_EQ(gap.rows_per_node(), 1);
  EXPECT_EQ(gap.max_degree(), kMaxDegree);
  EXPECT_FALSE(gap.has_mean());
  const v1::Plan sage = Planned(v1::SAGE, AsItIs).value();
  EXPECT_EQ(sage.neighbours(), 5);
  EXPECT_EQ(sage.hidden_size(), 100);
  EXPECT_EQ(sage.batch_size(), 222);
  EXPECT_EQ(sage.steps(), 3000);
  EXPECT_EQ(sage.learning_rate(), 0.003);
  EXPECT_EQ(sage.rows_per_node(), 1 + kMaxDegree);
  EXPECT_EQ(Planned(v1::SAGE, [](v1::TrainingSpec& s) { s.mutable_options()->set_epochs(9); })->steps(), 81);
}

std::vector<std::string> StageNames(const v1::Plan& plan) {
  std::vector<std::string> names;
  for (const Stage& stage : StagesOf(plan.event())) {
    names.push_back(stage.name);
  }
  return names;
}

TEST(GapPlan, IsChargedForTwoTrainingsOfOneRowAndForEveryHopWithItsOwnSum) {
  const v1::Plan plan = Planned(v1::GAP, [](v1::TrainingSpec& spec) {
                          Short(spec);
                          spec.mutable_options()->set_hops(3);
                          spec.mutable_options()->set_aggregation_clip(12);
                        }).value();
  EXPECT_THAT(StageNames(plan), ElementsAre("encoder", "aggregation", "dp-sgd"));
  const auto& stages = plan.event().composition().events();
  const v1::GaussianEvent& hops = stages[1].stage().event().gaussian();
  EXPECT_EQ(hops.count(), 3);
  EXPECT_NEAR(hops.sensitivity(), 13, 2e-4) << "sqrt(25 + 144), and the lattice";
  EXPECT_GT(hops.sensitivity(), 13);
  EXPECT_NEAR(hops.noise_stddev(), 13 * plan.noise_multiplier(), 1e-9);
  for (const int i : {0, 2}) {
    const v1::RepetitionEvent& steps = stages[i].stage().event().repetition();
    EXPECT_EQ(steps.count(), 20);
    EXPECT_EQ(steps.event().row_mixture().rows(), 1);
    EXPECT_EQ(steps.event().row_mixture().sampling_rate(), 0.128);
  }
  const double cost = *EventEpsilon(plan.event(), 1e-4);
  EXPECT_LE(cost, 1);
  EXPECT_GT(cost, 0.999);
}

TEST(GapPlan, ChargesForTheRoundingOfASumWithoutBlocksHoweverManyNeighboursThereAre) {
  v1::Plan plan;
  plan.mutable_aggregation()->set_clip(1);
  for (const int64_t degree : {1, 4'096, 100'000, 1'000'000}) {
    plan.set_max_degree(degree);
    const auto terms = static_cast<double>(degree);
    // Each of D - 1 additions rounds a partial sum of at most D to the nearest double.
    EXPECT_GE(AggregationRowError(plan), 0x1p-53 * (terms - 1) * terms) << degree;
  }
}

TEST(SagePlan, OfFullBatchesIsChargedOnceForTheOwnRowAndTwiceForEachOfTheNeighbours) {
  const v1::Plan plan = Planned(v1::SAGE, [](v1::TrainingSpec& spec) {
                          Short(spec);
                          spec.mutable_options()->set_batch_size(2000);
                          spec.mutable_options()->set_gradient_clip(0.5);
                        }).value();
  const v1::GaussianEvent& steps = plan.event().composition().events(0).stage().event().gaussian();
  EXPECT_NEAR(steps.sensitivity(), 0.5 * (1 + 2 * kMaxDegree), 0.05);
  EXPECT_GT(steps.sensitivity(), 0.5 * (1 + 2 * kMaxDegree));
  EXPECT_EQ(steps.count(), 20);
}

TEST(SagePlan, OfBatchesIsChargedForRowsThatChange) {
  const v1::Plan plan = Planned(v1::SAGE, Short).value();
  const v1::RepetitionEvent& steps = plan.event().composition().events(0).stage().event().repetition();
  const v1::RowChangeEvent& step = steps.event().row_change();
  EXPECT_EQ(steps.count(), 20);
  EXPECT_EQ(step.changed_rows(), kMaxDegree);
  EXPECT_EQ(step.sampling_rate(), 0.111);
  EXPECT_EQ(step.sensitivity(), 1);
  EXPECT_GT(step.rounding(), 0);
  EXPECT_LE(*EventEpsilon(plan.event(), 1e-4), 1);
}

TEST(RivalPlan, EpsilonSoFarRisesToThatOfTheWhole) {
  const v1::Plan plan = Planned(v1::GAP, Short).value();
  double last = 0;
  for (const int64_t steps : {0, 1, 19, 20, 21, 39, 40}) {
    const double epsilon = EpsilonAfter(plan, kSizes, steps).value();
    EXPECT_GE(epsilon, last) << steps;
    last = epsilon;
  }
  EXPECT_EQ(EpsilonAfter(plan, kSizes, 0).value(), 0);
  EXPECT_NEAR(last, *EventEpsilon(plan.event(), 1e-4), 1e-9);
  EXPECT_GT(EpsilonAfter(plan, kSizes, 20).value(), 1.2 * EpsilonAfter(plan, kSizes, 19).value())
      << "the hops count from the encoder's last step on";
}

TEST(RivalPlan, ThePaperPresetIsCalibratedToTheClaimAndSaysWhatThatCosts) {
  for (const v1::Method method : {v1::GAP, v1::SAGE}) {
    const auto plan = Planned(method, [](v1::TrainingSpec& spec) {
      Short(spec);
      spec.set_preset(v1::PAPER);
    });
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_NEAR(plan->published_epsilon(), 1, 1e-6);
    EXPECT_NEAR(plan->epsilon(), *EventEpsilon(plan->event(), 1e-4), 1e-9);
    EXPECT_EQ(plan->transform(), v1::RAW);
  }
  const v1::Plan gap = Planned(v1::GAP, [](v1::TrainingSpec& spec) {
                         Short(spec);
                         spec.set_preset(v1::PAPER);
                       }).value();
  EXPECT_NEAR(gap.aggregation().noise_stddev(), 5 * gap.noise_multiplier(), 1e-9) << "sqrt(D), as the paper has it";
}

TEST(RivalPlan, RefusesWhatItDoesNotReadAndWhatIsOutOfRange) {
  const auto field = [](v1::Method method, const std::function<void(v1::TrainingOptions&)>& set) {
    const auto plan = Planned(method, [&](v1::TrainingSpec& spec) {
      Short(spec);
      set(*spec.mutable_options());
    });
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    return FieldOf(plan.status());
  };
  using Options = v1::TrainingOptions;
  EXPECT_EQ(field(v1::GAP, [](Options& o) { o.set_hops(0); }), "options.hops");
  EXPECT_EQ(field(v1::GAP, [](Options& o) { o.set_hops(6); }), "options.hops");
  EXPECT_EQ(field(v1::GAP, [](Options& o) { o.set_hidden_size(0); }), "options.hidden_size");
  EXPECT_EQ(field(v1::GAP, [](Options& o) { o.set_aggregation_clip(0); }), "options.aggregation_clip");
  EXPECT_EQ(field(v1::GAP, [](Options& o) { o.set_neighbours(3); }), "options.neighbours");
  EXPECT_EQ(field(v1::GAP, [](Options& o) { o.set_center(true); }), "options.center");
  EXPECT_EQ(field(v1::GAP, [](Options& o) { o.set_top_k(2); }), "options.top_k");
  EXPECT_EQ(field(v1::SAGE, [](Options& o) { o.set_neighbours(0); }), "options.neighbours");
  EXPECT_EQ(field(v1::SAGE, [](Options& o) { o.set_hops(1); }), "options.hops");
  EXPECT_EQ(field(v1::FEATURES, [](Options& o) { o.set_hops(1); }), "options.hops");
  EXPECT_EQ(field(v1::DPAR_GM, [](Options& o) { o.set_neighbours(1); }), "options.neighbours");
  EXPECT_EQ(field(v1::DPAR_GM, [](Options& o) { o.set_aggregation_clip(1); }), "options.aggregation_clip");
}

TEST(RivalPlan, HasNoChargedEvaluation) {
  const auto plan = Planned(v1::GAP, [](v1::TrainingSpec& spec) {
    spec.mutable_evaluation()->set_held_out_share(0.2);
    spec.mutable_evaluation()->set_budget_share(0.1);
  });
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(plan.status()), "evaluation");
}

TEST(RivalPlan, APlanOfAnotherMethodsPartsHasNoEvent) {
  v1::Plan plan = Planned(v1::GAP, Short).value();
  v1::Plan without = plan;
  without.clear_max_degree();
  EXPECT_FALSE(PlanEvent(without, kSizes).ok());
  v1::Plan features = Planned(v1::FEATURES, Short).value();
  features.set_max_degree(3);
  EXPECT_FALSE(PlanEvent(features, kSizes).ok());
  plan.set_method(v1::SAGE);
  EXPECT_FALSE(PlanEvent(plan, kSizes).ok());
}

}  // namespace
}  // namespace dpar
