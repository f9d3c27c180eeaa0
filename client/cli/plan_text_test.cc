#include "client/cli/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "client/cli/watching.h"
#include "core/plan/plan.h"
#include "core/privacy/budget.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;

constexpr PublicSizes kSizes = {2000, 100, 4};

v1::TrainingSpec Spec(v1::Method method) {
  v1::TrainingSpec spec;
  spec.set_method(method);
  spec.set_epsilon(2);
  spec.set_delta(1e-5);
  return spec;
}

v1::Plan PlanOf(const v1::TrainingSpec& spec) {
  const absl::StatusOr<v1::Plan> plan = MakePlan(spec, kSizes);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(v1::Plan());
}

std::map<std::string, std::string> LinesOf(const v1::Plan& plan) {
  const auto lines = PlanLines(plan);
  return {lines.begin(), lines.end()};
}

TEST(PlanText, AStructurePlanSaysItsRowsNoiseAndEvaluation) {
  v1::TrainingSpec spec = Spec(v1::DPAR_EM1);
  spec.mutable_evaluation()->set_held_out_share(0.2);
  spec.mutable_evaluation()->set_budget_share(0.1);
  const auto lines = LinesOf(PlanOf(spec));
  EXPECT_EQ(lines.at("method"), "dpar-em1");
  EXPECT_THAT(lines.at("steps"), HasSubstr("each on all 1,600 rows"));
  EXPECT_THAT(lines.at("structure"), HasSubstr("M 70, K 2, clip 0.001, noise Gumbel "));
  EXPECT_THAT(lines.at("structure"), HasSubstr(", Laplace "));
  EXPECT_THAT(lines.at("evaluation"), HasSubstr("on 400 held-out slots, noise "));
  EXPECT_EQ(lines.at("guarantee"), "epsilon 2 at delta 1e-05");
  EXPECT_EQ(lines.count("published"), 0U);
}

TEST(PlanText, ThePapersClaimIsMarkedAsSuch) {
  v1::TrainingSpec spec = Spec(v1::DPAR_GM);
  spec.set_preset(v1::PAPER);
  const auto lines = LinesOf(PlanOf(spec));
  EXPECT_THAT(lines.at("published"), HasSubstr("the paper's claim, not a bound"));
  EXPECT_EQ(lines.at("node sampling"), "rate 0.09");
  EXPECT_THAT(lines.at("steps"), HasSubstr("each on about 60 rows, a row with probability 0.3333"));
}

TEST(PlanText, WithoutNoiseNothingIsGuaranteed) {
  v1::TrainingSpec spec;
  spec.set_method(v1::DPAR_EM0);
  spec.set_non_private(true);
  const v1::Plan plan = PlanOf(spec);
  EXPECT_EQ(LinesOf(plan).at("guarantee"), "none: no noise is drawn");
  EXPECT_EQ(LinesOf(plan).count("noise multiplier"), 0U);
  EXPECT_THAT(PlanText(plan), HasSubstr("no noise, no privacy"));
}

TEST(PlanText, AnAccuracySaysHowSureItIsAndWhetherItWasPaidFor) {
  v1::Plan plan;
  plan.mutable_evaluation()->set_noise_stddev(3);
  plan.set_price_units(100);
  v1::Evaluation evaluation;
  evaluation.set_accuracy(0.714);
  evaluation.set_low(0.66);
  evaluation.set_high(0.76);
  evaluation.set_held_out_slots(400);
  EXPECT_EQ(EvaluationText(plan, evaluation), "0.71 (95%: 0.66 to 0.76) on 400 held-out nodes, noisy, charged");
  plan.mutable_evaluation()->set_noise_stddev(0);
  plan.set_price_units(0);
  EXPECT_EQ(EvaluationText(plan, evaluation), "0.71 (95%: 0.66 to 0.76) on 400 held-out nodes");
}

TEST(PlanJson, HasEveryFieldOfAPlanWithItsEnumeratorsAsPeopleTypeThem) {
  v1::TrainingSpec spec = Spec(v1::DPAR_EM0);
  spec.mutable_evaluation()->set_held_out_share(0.2);
  spec.mutable_evaluation()->set_budget_share(0.1);
  spec.mutable_options()->set_center(true);
  v1::Plan plan = PlanOf(spec);
  plan.set_published_epsilon(0.5);
  // Of other methods.
  plan.set_max_degree(50);
  plan.mutable_aggregation()->set_hops(2);
  plan.set_neighbours(5);
  const nlohmann::ordered_json json = ResourceJson(plan);
  const google::protobuf::Descriptor* type = v1::Plan::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    EXPECT_TRUE(json.contains(type->field(i)->name())) << type->field(i)->name();
  }
  EXPECT_EQ(json["method"], "dpar-em0");
  EXPECT_EQ(json["accountant"], "sound");
  EXPECT_EQ(json["optimizer"], "sgd");
  EXPECT_EQ(json["transform"], "sqrt-unit");
  EXPECT_EQ(json["structure"]["rows"], "appr-and-identity");
  EXPECT_EQ(json["structure"]["appr_nodes"], 70);
  EXPECT_EQ(json["evaluation"]["held_out_slots"], 400);
  EXPECT_TRUE(json["event"].contains("composition"));
}

TEST(PlanJson, LeavesOutWhatIsNotSet) {
  v1::TrainingSpec spec;
  spec.set_non_private(true);
  const nlohmann::ordered_json json = ResourceJson(PlanOf(spec));
  EXPECT_FALSE(json.contains("event"));
  EXPECT_FALSE(json.contains("structure"));
  EXPECT_FALSE(json.contains("published_epsilon"));
  EXPECT_EQ(json["non_private"], true);
}

TEST(ProgressOf, TheStructureStageHasNoBarAndSaysWhy) {
  v1::WatchJobResponse event;
  event.set_stage("structure");
  EXPECT_EQ(RenderProgress(ProgressOf(event), 79, false),
            "structure (no progress is shown: its speed follows the data)");
  event.set_stage("evaluating");
  EXPECT_EQ(RenderProgress(ProgressOf(event), 79, false), "evaluating");
}

}  // namespace
}  // namespace dpar
