#include "core/plan/plan.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/plan/method.h"
#include "core/plan/plan_event.h"
#include "core/privacy/accountant.h"
#include "core/privacy/gaussian.h"

namespace dpar {
namespace {

using ::google::protobuf::util::MessageDifferencer;

constexpr PublicSizes kSizes = {2396, 2879, 7};

v1::TrainingSpec Spec(double epsilon, double delta, v1::Method method = v1::METHOD_UNSPECIFIED) {
  v1::TrainingSpec spec;
  spec.set_epsilon(epsilon);
  spec.set_delta(delta);
  spec.set_method(method);
  return spec;
}

v1::Plan MustPlan(const v1::TrainingSpec& spec, const PublicSizes& sizes) {
  const absl::StatusOr<v1::Plan> plan = MakePlan(spec, sizes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(v1::Plan());
}

std::string Reason(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : "";
}

// The field that an invalid request is refused for; the message names it too.
std::string RefusedField(const v1::TrainingSpec& spec, const PublicSizes& sizes = kSizes) {
  const absl::Status status = MakePlan(spec, sizes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  const auto info = GetErrorInfo(status);
  return info.has_value() && info->metadata().contains("field") ? info->metadata().at("field") : "";
}

std::string RefusedOption(v1::Method method, const std::function<void(v1::TrainingOptions&)>& set) {
  v1::TrainingSpec spec = Spec(1, 1e-5, method);
  set(*spec.mutable_options());
  return RefusedField(spec);
}

TEST(MakePlan, FollowsTheRuleForPublicQuantities) {
  // sqrt(2879) = 53.7 is above 0.02 n mu = 18: no private mean.
  const v1::Plan plan = MustPlan(Spec(1, 2e-3), kSizes);
  const double whole = *GaussianMu(1, 2e-3);
  const double mu = whole * std::sqrt(0.99);
  const double reach = 0.38 * std::pow(2396 * mu, 0.85);
  EXPECT_EQ(plan.method(), v1::FEATURES);
  EXPECT_EQ(plan.training_slots(), 2396);
  EXPECT_EQ(plan.steps(), std::lround(3 * std::sqrt(reach)));
  EXPECT_EQ(plan.gradient_clip(), 0.3);
  EXPECT_EQ(plan.momentum(), 0.9);
  EXPECT_EQ(plan.transform(), v1::SQRT_UNIT);
  EXPECT_EQ(plan.hidden_size(), 0);
  EXPECT_EQ(plan.optimizer(), v1::SGD);
  EXPECT_EQ(plan.sampling_rate(), 1);
  EXPECT_EQ(plan.batch_size(), 2396);
  EXPECT_EQ(plan.rows_per_node(), 1);
  EXPECT_EQ(plan.node_sampling_rate(), 1);
  EXPECT_FALSE(plan.has_mean());
  EXPECT_NEAR(plan.class_shares().noise_stddev(), 1 / (0.1 * whole), 1e-3 / whole);
  EXPECT_FALSE(plan.has_structure());
  EXPECT_DOUBLE_EQ(plan.learning_rate(), reach / (static_cast<double>(plan.steps()) * 0.3));
  EXPECT_NEAR(plan.logit_noise(), 10 * reach / (mu * 2396), 1e-3 * plan.logit_noise()) << "the lattice costs a little";
  EXPECT_EQ(plan.accountant(), v1::SOUND);
}

TEST(MakePlan, ReleasesAMeanWhereItPays) {
  const PublicSizes sizes = {14'666, 6805, 15};
  const v1::Plan plan = MustPlan(Spec(1, 8e-4), sizes);
  const double mu = *GaussianMu(1, 8e-4);
  ASSERT_TRUE(plan.has_mean()) << "sqrt(6805) = 82.5 is below 0.02 n mu = " << 0.02 * 14'666 * mu;
  EXPECT_NEAR(plan.mean().noise_stddev(), 1 / (0.2 * mu), 1e-3 / mu);
  const double reach = 0.38 * std::pow(14'666 * mu * std::sqrt(0.95), 0.85);
  EXPECT_EQ(plan.steps(), std::min(150L, std::lround(3 * std::sqrt(reach))));
  const double stddev = plan.noise_multiplier() * plan.gradient_clip();
  const double expected = std::sqrt(static_cast<double>(plan.steps())) * 0.3 / (mu * std::sqrt(0.95));
  EXPECT_NEAR(stddev, expected, 1e-3 * expected);
  v1::TrainingSpec without = Spec(1, 8e-4);
  without.mutable_options()->set_center(false);
  EXPECT_FALSE(MustPlan(without, sizes).has_mean());
}

TEST(MakePlan, ReleasesClassSharesUnlessToldNotToOrTheMethodCannot) {
  EXPECT_TRUE(MustPlan(Spec(1, 1e-5), kSizes).has_class_shares());
  EXPECT_TRUE(MustPlan(Spec(1, 1e-5, v1::DPAR_GM), kSizes).has_class_shares());
  v1::TrainingSpec off = Spec(1, 1e-5);
  off.mutable_options()->set_shift(false);
  const v1::Plan without = MustPlan(off, kSizes);
  EXPECT_FALSE(without.has_class_shares());
  EXPECT_LT(without.noise_multiplier() / std::sqrt(static_cast<double>(without.steps())),
            MustPlan(Spec(1, 1e-5), kSizes).noise_multiplier() /
                std::sqrt(static_cast<double>(MustPlan(Spec(1, 1e-5), kSizes).steps())))
      << "what the class shares do not take is left for training";
  v1::TrainingSpec paper = Spec(1, 1e-5);
  paper.set_preset(v1::PAPER);
  EXPECT_FALSE(MustPlan(paper, kSizes).has_class_shares());
  EXPECT_EQ(RefusedOption(v1::GAP, [](v1::TrainingOptions& o) { o.set_shift(true); }), "options.shift");
  EXPECT_EQ(RefusedOption(v1::SAGE, [](v1::TrainingOptions& o) { o.set_shift(false); }), "options.shift");
  v1::TrainingSpec published = Spec(1, 1e-5);
  published.set_accountant(v1::AS_PUBLISHED);
  EXPECT_EQ(RefusedField(published), "accountant") << "no paper has a theorem for them";
  v1::TrainingSpec open = Spec(0, 1e-5);
  open.set_non_private(true);
  EXPECT_TRUE(MustPlan(open, kSizes).has_class_shares());
  EXPECT_EQ(MustPlan(open, kSizes).class_shares().noise_stddev(), 0);
}

TEST(MakePlan, ChargesLatticeAndSummationErrorAndIsTight) {
  for (const double epsilon : {0.001, 0.1, 1.0, 8.0, 100.0}) {
    const v1::Plan plan = MustPlan(Spec(epsilon, 1e-5), {5000, 50, 3});
    const auto stages = StagesOf(plan.event());
    ASSERT_FALSE(stages.empty());
    EXPECT_EQ(stages.back().name, "class-shares");
    EXPECT_EQ(stages[stages.size() - 2].name, "dp-sgd");
    const v1::GaussianEvent& event = stages[stages.size() - 2].event.gaussian();
    const double stddev = plan.noise_multiplier() * plan.gradient_clip();
    const double step = stddev * std::ldexp(1.0, -plan.lattice_bits());
    EXPECT_EQ(event.count(), plan.steps());
    EXPECT_EQ(event.noise_stddev(), stddev);
    EXPECT_GT(plan.summation_error(), 0);
    EXPECT_GE(event.sensitivity() * (1 + 1e-15), 0.3 + step * std::sqrt(51.0 * 3) + 2 * plan.summation_error());
    const double spent = *EventEpsilon(plan.event(), 1e-5);
    EXPECT_LE(spent, epsilon);
    EXPECT_GT(spent, epsilon * (1 - 1e-8));
  }
}

TEST(MakePlan, StepsStayBetweenTheirBounds) {
  EXPECT_EQ(MustPlan(Spec(0.1, 1e-5), {10, 5, 2}).steps(), 30);
  EXPECT_EQ(MustPlan(Spec(8, 1e-5), {1'000'000, 5, 2}).steps(), 150);
}

TEST(MakePlan, TakesTheOptionsItReads) {
  v1::TrainingSpec spec = Spec(1, 1e-5);
  v1::TrainingOptions& options = *spec.mutable_options();
  options.set_steps(40);
  options.set_learning_rate(2);
  options.set_gradient_clip(0.5);
  options.set_momentum(0);
  options.set_batch_size(100);
  options.set_hidden_size(16);
  options.set_transform(v1::UNIT);
  const v1::Plan plan = MustPlan(spec, kSizes);
  EXPECT_EQ(plan.steps(), 40);
  EXPECT_EQ(plan.learning_rate(), 2);
  EXPECT_EQ(plan.gradient_clip(), 0.5);
  EXPECT_EQ(plan.momentum(), 0);
  EXPECT_EQ(plan.batch_size(), 100);
  EXPECT_DOUBLE_EQ(plan.sampling_rate(), 100.0 / 2396);
  EXPECT_EQ(plan.hidden_size(), 16);
  EXPECT_EQ(plan.transform(), v1::UNIT);
  EXPECT_EQ(ParameterCount(plan, kSizes), 2880 * 16 + 16 * 7);
  EXPECT_LE(*EventEpsilon(plan.event(), 1e-5), 1);
  EXPECT_GT(*EventEpsilon(plan.event(), 1e-5), 0.999);
}

TEST(MakePlan, TurnsEpochsIntoSteps) {
  v1::TrainingSpec spec = Spec(1, 1e-5);
  spec.mutable_options()->set_epochs(10);
  spec.mutable_options()->set_batch_size(60);
  EXPECT_EQ(MustPlan(spec, kSizes).steps(), std::lround(10.0 * 2396 / 60));
  spec.mutable_options()->set_node_sampling_rate(0.5);
  EXPECT_EQ(MustPlan(spec, kSizes).steps(), std::lround(10.0 * 0.5 * 2396 / 60)) << "from expectations";
  spec.mutable_options()->set_steps(5);
  EXPECT_EQ(RefusedField(spec), "options.epochs");
}

TEST(MakePlan, StructureMethodsReleaseTheirStagesAndChargeEveryRowThatListsANode) {
  for (const v1::Method method : {v1::DPAR_EM0, v1::DPAR_EM1, v1::DPAR_GM}) {
    const v1::Plan plan = MustPlan(Spec(2, 1e-4, method), kSizes);
    EXPECT_EQ(plan.method(), method);
    ASSERT_TRUE(plan.has_structure());
    EXPECT_EQ(plan.structure().appr_nodes(), 70);
    EXPECT_EQ(plan.structure().top_k(), 2);
    EXPECT_EQ(plan.structure().max_occurrence(), 1);
    EXPECT_EQ(plan.structure().rows(), v1::APPR_AND_IDENTITY);
    EXPECT_EQ(plan.structure().clip(), method == v1::DPAR_GM ? 0.01 : 0.001);
    EXPECT_EQ(plan.structure().value_noise() > 0, method == v1::DPAR_EM1);
    EXPECT_EQ(plan.rows_per_node(), 2);
    std::vector<std::string> names;
    for (const Stage& stage : StagesOf(plan.event())) {
      names.push_back(stage.name);
    }
    EXPECT_THAT(names, ::testing::ElementsAre("dp-appr", "dp-sgd", "class-shares"));
    const v1::GaussianEvent& steps = StagesOf(plan.event())[1].event.gaussian();
    EXPECT_GE(steps.sensitivity(), 2 * plan.gradient_clip());
    const double appr = *EventEpsilon(StagesOf(plan.event())[0].event, 1e-4);
    EXPECT_LE(appr, 0.2);
    EXPECT_GT(appr, 0.19) << "the tenth of epsilon that it has";
    const double spent = *EventEpsilon(plan.event(), 1e-4);
    EXPECT_LE(spent, 2);
    EXPECT_GT(spent, 1.999);
  }
}

TEST(MakePlan, WithoutAShareForStructureOnlyIdentityRowsAreLeft) {
  v1::TrainingSpec spec = Spec(1, 1e-5, v1::DPAR_EM0);
  spec.mutable_options()->set_structure_share(0);
  v1::Plan plan = MustPlan(spec, kSizes);
  EXPECT_FALSE(plan.has_structure());
  EXPECT_EQ(plan.rows_per_node(), 1);
  plan.set_method(v1::FEATURES);
  EXPECT_TRUE(MessageDifferencer::Equals(plan, MustPlan(Spec(1, 1e-5), kSizes)));
}

TEST(MakePlan, ApprOnlyDrawsBatchesFromItsRows) {
  v1::TrainingSpec spec = Spec(1, 1e-5, v1::DPAR_GM);
  spec.mutable_options()->set_rows(v1::APPR_ONLY);
  spec.mutable_options()->set_appr_nodes(500);
  spec.mutable_options()->set_batch_size(50);
  const v1::Plan plan = MustPlan(spec, kSizes);
  EXPECT_EQ(RowCount(plan), 500);
  EXPECT_DOUBLE_EQ(plan.sampling_rate(), 0.1);
  spec.mutable_options()->set_batch_size(501);
  EXPECT_EQ(RefusedField(spec), "options.batch_size");
  spec.mutable_options()->set_structure_share(0);
  spec.mutable_options()->clear_batch_size();
  EXPECT_EQ(RefusedField(spec), "options.rows");
}

TEST(MakePlan, SamplesNodesAroundEverythingButTheEvaluation) {
  v1::TrainingSpec spec = Spec(1, 1e-4, v1::DPAR_GM);
  spec.mutable_options()->set_node_sampling_rate(0.25);
  const v1::Plan plan = MustPlan(spec, kSizes);
  ASSERT_TRUE(plan.event().has_node_sampling());
  EXPECT_EQ(plan.event().node_sampling().sampling_rate(), 0.25);
  EXPECT_DOUBLE_EQ(plan.batch_size(), 0.25 * 2396);
  EXPECT_EQ(plan.sampling_rate(), 1);
  EXPECT_LE(*EventEpsilon(plan.event(), 1e-4), 1);
}

TEST(MakePlan, ChargesAnEvaluationAndTrainsOnTheOtherSlots) {
  v1::TrainingSpec spec = Spec(2, 1e-5);
  spec.mutable_evaluation()->set_held_out_share(0.25);
  spec.mutable_evaluation()->set_budget_share(0.1);
  const v1::Plan plan = MustPlan(spec, kSizes);
  EXPECT_EQ(plan.evaluation().held_out_slots(), 599);
  EXPECT_EQ(plan.training_slots(), 2396 - 599);
  EXPECT_NEAR(plan.evaluation().noise_stddev(), 1 / *GaussianMu(0.2, 1e-5), 1e-3);
  EXPECT_EQ(StagesOf(plan.event()).back().name, "evaluation");
  const double spent = *EventEpsilon(plan.event(), 1e-5);
  EXPECT_LE(spent, 2);
  EXPECT_GT(spent, 2 * (1 - 1e-8));
}

TEST(MakePlan, RefusesEvaluationsThatLeaveNothing) {
  const auto refused = [](double held_out, double share) {
    v1::TrainingSpec spec = Spec(1, 1e-5);
    spec.mutable_evaluation()->set_held_out_share(held_out);
    spec.mutable_evaluation()->set_budget_share(share);
    return RefusedField(spec, {20, 5, 2});
  };
  EXPECT_EQ(refused(0, 0.1), "evaluation.held_out_share");
  EXPECT_EQ(refused(1, 0.1), "evaluation.held_out_share");
  EXPECT_EQ(refused(0.01, 0.1), "evaluation.held_out_share");
  EXPECT_EQ(refused(0.99, 0.1), "evaluation.held_out_share");
  EXPECT_EQ(refused(std::nan(""), 0.1), "evaluation.held_out_share");
  EXPECT_EQ(refused(0.5, 0), "evaluation.budget_share");
  EXPECT_EQ(refused(0.5, 1), "evaluation.budget_share");
}

TEST(MakePlan, ThePaperPresetHasThePapersValuesAndItsClaim) {
  v1::TrainingSpec spec = Spec(1, 2e-3, v1::DPAR_EM0);
  spec.set_preset(v1::PAPER);
  const v1::Plan plan = MustPlan(spec, kSizes);
  EXPECT_EQ(plan.accountant(), v1::AS_PUBLISHED);
  EXPECT_NEAR(plan.published_epsilon(), 1, 1e-6);
  EXPECT_GT(plan.epsilon(), 5) << "what the same noise really costs";
  EXPECT_GE(plan.epsilon(), *EventEpsilon(plan.event(), 2e-3));
  EXPECT_EQ(plan.node_sampling_rate(), 0.09);
  EXPECT_EQ(plan.batch_size(), 60);
  EXPECT_EQ(plan.steps(), std::lround(200 * 0.09 * 2396 / 60));
  EXPECT_EQ(plan.hidden_size(), 32);
  EXPECT_EQ(plan.optimizer(), v1::ADAM);
  EXPECT_EQ(plan.learning_rate(), 0.005);
  EXPECT_EQ(plan.gradient_clip(), 1);
  EXPECT_EQ(plan.structure().share(), 0.5);
  EXPECT_EQ(plan.structure().appr_nodes(), 70);
  EXPECT_EQ(plan.structure().top_k(), 2);
  EXPECT_EQ(plan.structure().clip(), 0.001);
  spec.mutable_options()->set_steps(100);
  spec.mutable_options()->set_hidden_size(0);
  const v1::Plan changed = MustPlan(spec, kSizes);
  EXPECT_EQ(changed.steps(), 100);
  EXPECT_EQ(changed.hidden_size(), 0);
}

TEST(MakePlan, ThePaperPresetKnowsEveryMethod) {
  for (const MethodTraits& method : Methods()) {
    v1::TrainingSpec spec = Spec(4, 2e-3, method.method);
    spec.set_preset(v1::PAPER);
    if (method.reads_edges) {
      continue;  // rival_plan_test.cc
    }
    const v1::Plan plan = MustPlan(spec, kSizes);
    EXPECT_NEAR(plan.published_epsilon(), 4, 1e-5) << method.name;
    EXPECT_GT(plan.epsilon(), 4) << method.name;
  }
}

TEST(MakePlan, AsPublishedShowsTheClaimForTheSameNoise) {
  v1::TrainingSpec spec = Spec(1, 1e-4, v1::DPAR_EM0);
  spec.mutable_options()->set_shift(false);
  const v1::Plan sound = MustPlan(spec, kSizes);
  spec.set_accountant(v1::AS_PUBLISHED);
  v1::Plan published = MustPlan(spec, kSizes);
  EXPECT_GT(published.published_epsilon(), 0);
  published.clear_published_epsilon();
  published.set_accountant(v1::SOUND);
  EXPECT_TRUE(MessageDifferencer::Equals(published, sound));
  v1::TrainingSpec centered = Spec(1, 1e-4);
  centered.set_accountant(v1::AS_PUBLISHED);
  centered.mutable_options()->set_center(true);
  centered.mutable_options()->set_shift(false);
  EXPECT_EQ(RefusedField(centered), "accountant");
}

TEST(MakePlan, WithoutNoiseThereIsNoEventAndNoEpsilon) {
  v1::TrainingSpec spec;
  spec.set_non_private(true);
  for (const MethodTraits& method : Methods()) {
    spec.set_method(method.method);
    const v1::Plan plan = MustPlan(spec, kSizes);
    EXPECT_TRUE(plan.non_private());
    EXPECT_FALSE(plan.has_event());
    EXPECT_EQ(plan.noise_multiplier(), 0);
    EXPECT_EQ(plan.epsilon(), 0);
    EXPECT_EQ(plan.logit_noise(), 0);
    EXPECT_EQ(plan.has_structure() ? plan.structure().appr_nodes() : 2396, 2396) << "nothing is saved by few rows";
  }
  spec.set_epsilon(1);
  EXPECT_EQ(RefusedField(spec), "non_private");
}

TEST(MakePlan, RefusesBadEpsilonAndDeltaByName) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double epsilon : {0.0, -1.0, 0.0009, 100.1, 1e9, infinity, nan}) {
    EXPECT_EQ(RefusedField(Spec(epsilon, 1e-5)), "epsilon") << epsilon;
  }
  for (const double delta : {0.0, -1e-5, 1.0, 2.0, 1e-16, nan}) {
    EXPECT_EQ(RefusedField(Spec(1, delta)), "delta") << delta;
  }
}

TEST(MakePlan, RefusesSizesNoModelCanHave) {
  EXPECT_EQ(RefusedField(Spec(1, 1e-5), {0, 5, 2}), "node_count");
  EXPECT_EQ(RefusedField(Spec(1, 1e-5), {5, 0, 2}), "feature_count");
  EXPECT_EQ(RefusedField(Spec(1, 1e-5), {5, 5, 1}), "class_count");
  EXPECT_EQ(RefusedField(Spec(1, 1e-5), {1000, 1'000'000, 10'000}), "options.hidden_size") << "too many weights";
}

TEST(MakePlan, RefusesOptionsThatTheMethodDoesNotRead) {
  EXPECT_EQ(RefusedOption(v1::FEATURES, [](auto& o) { o.set_top_k(2); }), "options.top_k");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_rho(1e-4); }), "options.rho");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_rows(v1::APPR_ONLY); }), "options.rows");
  EXPECT_EQ(RefusedOption(v1::DPAR_EM0, [](auto& o) { o.set_row_clip(0.1); }), "options.row_clip");
  EXPECT_EQ(RefusedOption(v1::DPAR_GM, [](auto& o) { o.set_entry_clip(0.1); }), "options.entry_clip");
  EXPECT_EQ(RefusedOption(v1::AUTO,
                          [](auto& o) {
                            o.set_optimizer(v1::ADAM);
                            o.set_momentum(0.5);
                          }),
            "options.momentum");
}

TEST(MakePlan, RefusesOptionsOutOfRange) {
  const double nan = std::nan("");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_steps(0); }), "options.steps");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_epochs(0); }), "options.epochs");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_learning_rate(-1); }), "options.learning_rate");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_gradient_clip(0); }), "options.gradient_clip");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_gradient_clip(-1); }), "options.gradient_clip");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_momentum(1); }), "options.momentum");
  EXPECT_EQ(RefusedOption(v1::AUTO, [=](auto& o) { o.set_momentum(nan); }), "options.momentum");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_batch_size(0); }), "options.batch_size");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_batch_size(2397); }), "options.batch_size");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_hidden_size(-1); }), "options.hidden_size");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_node_sampling_rate(0); }), "options.node_sampling_rate");
  EXPECT_EQ(RefusedOption(v1::AUTO, [](auto& o) { o.set_node_sampling_rate(1.1); }), "options.node_sampling_rate");
  EXPECT_EQ(RefusedOption(v1::AUTO,
                          [](auto& o) {
                            o.set_transform(v1::RAW);
                            o.set_center(true);
                          }),
            "options.center");
  for (const double share : {-0.1, 1.0, 1.5, nan}) {
    EXPECT_EQ(RefusedOption(v1::DPAR_GM, [=](auto& o) { o.set_structure_share(share); }), "options.structure_share");
  }
  EXPECT_EQ(RefusedOption(v1::DPAR_GM, [](auto& o) { o.set_top_k(0); }), "options.top_k");
  EXPECT_EQ(RefusedOption(v1::DPAR_GM, [](auto& o) { o.set_appr_nodes(2397); }), "options.appr_nodes");
  EXPECT_EQ(RefusedOption(v1::DPAR_GM, [](auto& o) { o.set_row_clip(0); }), "options.row_clip");
  EXPECT_EQ(RefusedOption(v1::DPAR_EM0, [=](auto& o) { o.set_entry_clip(nan); }), "options.entry_clip");
  EXPECT_EQ(RefusedOption(v1::DPAR_EM0, [](auto& o) { o.set_column_clip(0); }), "options.column_clip");
  EXPECT_EQ(RefusedOption(v1::DPAR_EM0, [](auto& o) { o.set_max_occurrence(0); }), "options.max_occurrence");
  EXPECT_EQ(RefusedOption(v1::DPAR_EM0, [](auto& o) { o.set_alpha(1); }), "options.alpha");
  EXPECT_EQ(RefusedOption(v1::DPAR_EM0, [](auto& o) { o.set_rho(0); }), "options.rho");
  EXPECT_EQ(RefusedOption(v1::DPAR_EM0, [](auto& o) { o.set_gamma(-1); }), "options.gamma");
  EXPECT_EQ(RefusedOption(v1::DPAR_EM0,
                          [](auto& o) {
                            o.set_hidden_size(32);
                            o.set_top_k(1000);
                            o.set_appr_nodes(2000);
                          }),
            "options.top_k");
}

TEST(MakePlan, KnowsEveryMethodOfTheApi) {
  for (int number = v1::FEATURES; number <= v1::Method_MAX; ++number) {
    EXPECT_NE(FindMethod(static_cast<v1::Method>(number)), nullptr) << number;
  }
}

TEST(MakePlan, SaysWhenNoNoiseCanMeetTheRequest) {
  v1::TrainingSpec spec = Spec(0.001, 1e-15);
  spec.mutable_options()->set_steps(1'000'000);
  const absl::Status status = MakePlan(spec, {1000, 1'000'000, 1000}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(Reason(status), "PRIVACY_UNREACHABLE");
}

}  // namespace
}  // namespace dpar
