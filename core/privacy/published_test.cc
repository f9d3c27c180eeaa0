#include "core/privacy/published.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/privacy/event.h"
#include "core/privacy/testing/expectations.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::ExpectInvalidField;
using testing::ExpectRelative;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

DparPipeline Pipeline(ApprMethod method) {
  DparPipeline pipeline;
  pipeline.method = method;
  pipeline.seeds = 70;
  pipeline.top_k = 2;
  pipeline.appr_noise = 8;
  pipeline.value_noise = method == ApprMethod::kEm1 ? 20 : 0;
  pipeline.sampling_rate = 0.02;
  pipeline.noise_multiplier = 1.5;
  pipeline.steps = 200;
  pipeline.max_occurrence = 3;
  return pipeline;
}

// A pipeline that is wrong in one place.
template <typename Change>
void ExpectBothRefuse(ApprMethod method, const Change& change, const std::string& field) {
  DparPipeline pipeline = Pipeline(method);
  change(pipeline);
  ExpectInvalidField(PublishedEpsilon(pipeline, 1e-3).status(), field);
  ExpectInvalidField(SoundEvent(pipeline).status(), field);
}

// The expected values were computed apart from this code, in Python: the formulas of published.h, a root of the
// composition by bisection, and the Renyi divergence of the sampled Gaussian by trapezoids of step 0.01 over all orders
// of RenyiOrders().
TEST(PublishedEpsilonTest, Em0WithFewEntriesIsBasicComposition) {
  // e = 1/8, d = 0.001 / 140: 2 K e = 0.5 is below the advanced bound.
  const PublishedClaim cost = PublishedEpsilon(Pipeline(ApprMethod::kEm0), 2e-3).value();
  EXPECT_EQ(cost.appr_delta, 1e-3);
  EXPECT_EQ(cost.sgd_delta, 1e-3);
  ExpectRelative(cost.appr_epsilon, 26.711546322908486, 1e-11);
  ExpectRelative(cost.sgd_epsilon, 0.9082028777350208, 1e-10);
  ExpectRelative(cost.epsilon, 27.619749200643507, 1e-10);
}

TEST(PublishedEpsilonTest, Em0WithManyEntriesIsAdvancedComposition) {
  // 2 (50 e tanh(e) + e sqrt(100 ln(1/d))) = 10.16 a row, below 2 K e = 12.5.
  DparPipeline pipeline = Pipeline(ApprMethod::kEm0);
  pipeline.top_k = 50;
  const PublishedClaim cost = PublishedEpsilon(pipeline, 2e-3).value();
  ExpectRelative(cost.appr_epsilon, 620.9267551429161, 1e-11);
  ExpectRelative(cost.sgd_epsilon, 0.9082028777350208, 1e-10);
  ExpectRelative(cost.epsilon, 621.8349580206511, 1e-10);
}

TEST(PublishedEpsilonTest, Em1AddsItsValues) {
  DparPipeline pipeline = Pipeline(ApprMethod::kEm1);
  pipeline.seeds = 100;
  pipeline.top_k = 4;
  pipeline.appr_noise = 10;
  pipeline.sampling_rate = 0.05;
  pipeline.noise_multiplier = 2;
  pipeline.steps = 500;
  pipeline.node_sampling_rate = 0.5;
  const PublishedClaim cost = PublishedEpsilon(pipeline, 1e-3).value();
  EXPECT_EQ(cost.appr_delta, 1e-3);
  ExpectRelative(cost.appr_epsilon, 66.65532537886737, 1e-11);
  ExpectRelative(cost.sgd_epsilon, 2.490581670468227, 1e-10);
  ExpectRelative(cost.epsilon, 34.5729535246678, 1e-10);
}

TEST(PublishedEpsilonTest, Em1OfOneSeedAndOneEntry) {
  DparPipeline pipeline = Pipeline(ApprMethod::kEm1);
  pipeline.seeds = 1;
  pipeline.top_k = 1;
  pipeline.appr_noise = 2;
  pipeline.value_noise = 4;
  pipeline.sampling_rate = 0.1;
  pipeline.noise_multiplier = 3;
  pipeline.steps = 50;
  const PublishedClaim cost = PublishedEpsilon(pipeline, 1e-4).value();
  EXPECT_EQ(cost.appr_delta, 5e-5);
  ExpectRelative(cost.appr_epsilon, 8.68365780133619, 1e-11);
  ExpectRelative(cost.sgd_epsilon, 1.220124550928675, 1e-10);
  ExpectRelative(cost.epsilon, 9.903782352264865, 1e-10);
}

TEST(PublishedEpsilonTest, GmUsesTheClassicGaussianBound) {
  DparPipeline pipeline = Pipeline(ApprMethod::kGm);
  pipeline.appr_noise = 30;
  pipeline.node_sampling_rate = 0.09;
  const PublishedClaim cost = PublishedEpsilon(pipeline, 1e-3).value();
  ExpectRelative(cost.appr_delta, 0.005555555555555556, 1e-15);
  ExpectRelative(cost.appr_epsilon, 6.7680014064626555, 1e-11);
  ExpectRelative(cost.sgd_epsilon, 0.7772536269539261, 1e-10);
  ExpectRelative(cost.epsilon, 0.6790729530074924, 1e-10);
}

// What the paper's released code prints when nothing is set but the mechanism: M 70, K 4, q' 0.09, delta 1e-4 a row
// (2 M of it for the stage), C1 0.01 with sigma 0.0067, EM at 1.3 a selection and as much for the values as for the
// selections, sigma 0.95 and delta 0.001 / q' for DP-SGD in batches of 60 over 200 epochs. Cora-ML's seven training
// parts of nine hold about 2,330 nodes, of which it samples 210.
DparPipeline ReleasedDefaults(ApprMethod method) {
  DparPipeline pipeline = Pipeline(method);
  pipeline.top_k = 4;
  pipeline.appr_noise = method == ApprMethod::kGm ? 0.0067 / 0.01 : 2 / 1.3;
  pipeline.value_noise = method == ApprMethod::kEm1 ? 4 / 5.2 : 0;
  pipeline.sampling_rate = 60.0 / 210;
  pipeline.noise_multiplier = 0.95;
  pipeline.steps = 800;
  pipeline.node_sampling_rate = 0.09;
  return pipeline;
}

// One row's epsilon as the composition of 70 at `total` and 0.014 takes it.
double ReleasedRow(double total) { return total / (2 * std::sqrt(70 * std::log(std::exp(1.0) + total / 0.014))); }

TEST(PublishedEpsilonTest, AgreesWithTheReleasedCodeAtItsDefaults) {
  // The stages have deltas of their own there: 0.014 and 0.001 / q'. Each is half of what is given here over q'.
  const double appr_delta = 2 * 0.09 * 0.014;
  const double sgd_delta = 2 * 0.001;
  const PublishedClaim gm = PublishedEpsilon(ReleasedDefaults(ApprMethod::kGm), appr_delta).value();
  EXPECT_NEAR(gm.appr_epsilon, 344.9684752897998, 1e-6);
  EXPECT_NEAR(ReleasedRow(gm.appr_epsilon), std::sqrt(2 * std::log(12500)) / 0.67, 1e-9);
  // min{4 * 1.3, 5.2 tanh(0.65) + 1.3 sqrt(8 ln 10^4)} = 5.2.
  const PublishedClaim em0 = PublishedEpsilon(ReleasedDefaults(ApprMethod::kEm0), appr_delta).value();
  EXPECT_NEAR(em0.appr_epsilon, 273.5043444196947, 1e-6);
  EXPECT_NEAR(ReleasedRow(em0.appr_epsilon), 5.2, 1e-9);
  const PublishedClaim em1 = PublishedEpsilon(ReleasedDefaults(ApprMethod::kEm1), appr_delta).value();
  EXPECT_NEAR(em1.appr_epsilon, 566.8206315265993, 1e-6);
  EXPECT_NEAR(ReleasedRow(em1.appr_epsilon), 5.2 + 5.2, 1e-9);
  // At order 1.3, the best of the released code's own list.
  const PublishedClaim sgd = PublishedEpsilon(ReleasedDefaults(ApprMethod::kEm0), sgd_delta).value();
  EXPECT_NEAR(sgd.sgd_epsilon, 79.13203878666698, 1e-6);
  EXPECT_NEAR(0.09 * sgd.sgd_epsilon, 7.121883490800028, 1e-6);
}

TEST(PublishedEpsilonTest, DpSgdAtOrderTwoIsAClosedForm) {
  // R_2 of the sampled Gaussian is ln(1 + q^2 (e^(1/sigma^2) - 1)). No order is better than the best, and here 2 is it.
  DparPipeline pipeline = Pipeline(ApprMethod::kNone);
  pipeline.sampling_rate = 0.1;
  pipeline.noise_multiplier = 1;
  pipeline.steps = 600;
  const double delta = 1e-3;
  const double order_two = 600 * std::log1p(0.01 * (std::exp(1.0) - 1)) - std::log(delta);
  EXPECT_NEAR(PublishedEpsilon(pipeline, delta).value().epsilon, order_two, 1e-9);
}

TEST(PublishedEpsilonTest, NodeSamplingMultipliesEpsilonAndDelta) {
  DparPipeline pipeline = Pipeline(ApprMethod::kEm0);
  const PublishedClaim whole = PublishedEpsilon(pipeline, 2e-3).value();
  pipeline.node_sampling_rate = 0.25;
  const PublishedClaim sampled = PublishedEpsilon(pipeline, 5e-4).value();
  EXPECT_EQ(sampled.appr_delta, whole.appr_delta);
  EXPECT_EQ(sampled.appr_epsilon, whole.appr_epsilon);
  EXPECT_EQ(sampled.sgd_epsilon, whole.sgd_epsilon);
  EXPECT_EQ(sampled.epsilon, whole.epsilon / 4);
}

TEST(PublishedEpsilonTest, DoesNotKnowHowOftenANodeIsListed) {
  DparPipeline pipeline = Pipeline(ApprMethod::kEm0);
  const double epsilon = PublishedEpsilon(pipeline, 1e-3).value().epsilon;
  pipeline.max_occurrence = 50;
  EXPECT_EQ(PublishedEpsilon(pipeline, 1e-3).value().epsilon, epsilon);
}

TEST(PublishedEpsilonTest, RefusesBadDeltas) {
  DparPipeline pipeline = Pipeline(ApprMethod::kEm0);
  for (const double delta : {0.0, 1.0, -0.1, 2.0, kNan, kInf}) {
    ExpectInvalidField(PublishedEpsilon(pipeline, delta).status(), "delta");
  }
  // delta / (2 q') would not be a probability.
  pipeline.node_sampling_rate = 0.1;
  ExpectInvalidField(PublishedEpsilon(pipeline, 0.2).status(), "delta");
  ExpectInvalidField(PublishedEpsilon(pipeline, 0.3).status(), "delta");
  EXPECT_TRUE(PublishedEpsilon(pipeline, 0.19).ok());
}

TEST(PublishedEpsilonTest, RefusesBadPipelinesByName) {
  const ApprMethod em0 = ApprMethod::kEm0;
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, int64_t{1'000'001}}) {
    ExpectBothRefuse(
        em0, [bad](DparPipeline& p) { p.seeds = bad; }, "seeds");
  }
  for (const int64_t bad : {0, -1, 1001}) {
    ExpectBothRefuse(
        em0, [bad](DparPipeline& p) { p.top_k = bad; }, "top_k");
  }
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, kMaxEventCount + 1}) {
    ExpectBothRefuse(
        em0, [bad](DparPipeline& p) { p.steps = bad; }, "steps");
  }
  for (const int64_t bad : {-1, 10'000}) {
    ExpectBothRefuse(
        em0, [bad](DparPipeline& p) { p.max_occurrence = bad; }, "max_occurrence");
  }
  for (const double bad : {0.0, -1.0, 0.009, 1.1e9, kNan, kInf}) {
    ExpectBothRefuse(
        em0, [bad](DparPipeline& p) { p.appr_noise = bad; }, "appr_noise");
    ExpectBothRefuse(
        em0, [bad](DparPipeline& p) { p.noise_multiplier = bad; }, "noise_multiplier");
    ExpectBothRefuse(
        ApprMethod::kEm1, [bad](DparPipeline& p) { p.value_noise = bad; }, "value_noise");
  }
  for (const double bad : {-0.1, 1.1, kNan, kInf}) {
    ExpectBothRefuse(
        em0, [bad](DparPipeline& p) { p.sampling_rate = bad; }, "sampling_rate");
    ExpectBothRefuse(
        em0, [bad](DparPipeline& p) { p.node_sampling_rate = bad; }, "node_sampling_rate");
  }
  ExpectBothRefuse(
      em0, [](DparPipeline& p) { p.node_sampling_rate = 0; }, "node_sampling_rate");
}

TEST(SoundEventTest, Em0IsSelectionsThenMixtures) {
  const v1::PrivacyEvent event = SoundEvent(Pipeline(ApprMethod::kEm0)).value();
  ASSERT_TRUE(event.has_composition());
  ASSERT_EQ(event.composition().events_size(), 2);
  const v1::RepetitionEvent& selections = event.composition().events(0).repetition();
  EXPECT_EQ(selections.count(), 140);
  EXPECT_EQ(selections.event().bounded_range().range(), 0.25);
  const v1::RepetitionEvent& steps = event.composition().events(1).repetition();
  EXPECT_EQ(steps.count(), 200);
  EXPECT_EQ(steps.event().row_mixture().rows(), 4);
  EXPECT_EQ(steps.event().row_mixture().sampling_rate(), 0.02);
  EXPECT_EQ(steps.event().row_mixture().sensitivity(), 1);
  EXPECT_EQ(steps.event().row_mixture().noise_stddev(), 1.5);
  EXPECT_TRUE(ValidateEvent(event).ok());
}

TEST(SoundEventTest, Em1HasALaplaceMechanismForEveryValue) {
  const v1::PrivacyEvent event = SoundEvent(Pipeline(ApprMethod::kEm1)).value();
  ASSERT_EQ(event.composition().events_size(), 3);
  EXPECT_EQ(event.composition().events(0).repetition().count(), 140);
  EXPECT_TRUE(event.composition().events(0).repetition().event().has_bounded_range());
  const v1::RepetitionEvent& values = event.composition().events(1).repetition();
  EXPECT_EQ(values.count(), 140);
  EXPECT_EQ(values.event().laplace().sensitivity(), 1);
  EXPECT_EQ(values.event().laplace().scale(), 20);
  EXPECT_EQ(event.composition().events(2).repetition().event().row_mixture().rows(), 4);
}

TEST(SoundEventTest, GmIsOneGaussianForAllRows) {
  const v1::PrivacyEvent event = SoundEvent(Pipeline(ApprMethod::kGm)).value();
  ASSERT_EQ(event.composition().events_size(), 2);
  const v1::GaussianEvent& rows = event.composition().events(0).gaussian();
  EXPECT_GE(rows.sensitivity(), std::sqrt(140.0));
  EXPECT_LE(rows.sensitivity(), std::sqrt(140.0) * (1 + 4e-15));
  EXPECT_EQ(rows.noise_stddev(), 8);
  EXPECT_EQ(rows.count(), 1);
  EXPECT_TRUE(event.composition().events(1).repetition().event().has_row_mixture());
}

TEST(SoundEventTest, NodeSamplingGoesAroundTheWhole) {
  DparPipeline pipeline = Pipeline(ApprMethod::kEm0);
  pipeline.node_sampling_rate = 0.09;
  const v1::PrivacyEvent event = SoundEvent(pipeline).value();
  ASSERT_TRUE(event.has_node_sampling());
  EXPECT_EQ(event.node_sampling().sampling_rate(), 0.09);
  pipeline.node_sampling_rate = 1;
  EXPECT_EQ(event.node_sampling().event().SerializeAsString(), SoundEvent(pipeline).value().SerializeAsString());
}

TEST(SoundEventTest, TakesTheLargestPipeline) {
  DparPipeline pipeline = Pipeline(ApprMethod::kEm1);
  pipeline.seeds = 1'000'000;
  pipeline.top_k = 1000;
  pipeline.steps = kMaxEventCount;
  pipeline.max_occurrence = kMaxEventRows - 1;
  const v1::PrivacyEvent event = SoundEvent(pipeline).value();
  EXPECT_EQ(event.composition().events(0).repetition().count(), kMaxEventCount);
  EXPECT_EQ(event.composition().events(2).repetition().event().row_mixture().rows(), kMaxEventRows);
}

}  // namespace
}  // namespace dpar
