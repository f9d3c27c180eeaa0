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
// composition by bisection, and the Renyi divergence of the sampled Gaussian by trapezoids of step 0.04 over all orders
// of RenyiOrders().
TEST(PublishedEpsilonTest, Em0WithFewEntriesIsBasicComposition) {
  // e = 1/8, d = 0.001 / 140: 2 K e = 0.5 is below the advanced bound.
  const PublishedCost cost = PublishedEpsilon(Pipeline(ApprMethod::kEm0), 2e-3).value();
  EXPECT_EQ(cost.appr_delta, 1e-3);
  EXPECT_EQ(cost.sgd_delta, 1e-3);
  ExpectRelative(cost.appr_epsilon, 26.711546322908486, 1e-11);
  ExpectRelative(cost.sgd_epsilon, 0.6263650085081137, 1e-10);
  ExpectRelative(cost.epsilon, 27.3379113314166, 1e-10);
}

TEST(PublishedEpsilonTest, Em0WithManyEntriesIsAdvancedComposition) {
  // 2 (50 e tanh(e) + e sqrt(100 ln(1/d))) = 10.16 a row, below 2 K e = 12.5.
  DparPipeline pipeline = Pipeline(ApprMethod::kEm0);
  pipeline.top_k = 50;
  const PublishedCost cost = PublishedEpsilon(pipeline, 2e-3).value();
  ExpectRelative(cost.appr_epsilon, 620.9267551429161, 1e-11);
  ExpectRelative(cost.sgd_epsilon, 0.6263650085081137, 1e-10);
  ExpectRelative(cost.epsilon, 621.5531201514242, 1e-10);
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
  const PublishedCost cost = PublishedEpsilon(pipeline, 1e-3).value();
  EXPECT_EQ(cost.appr_delta, 1e-3);
  ExpectRelative(cost.appr_epsilon, 66.65532537886737, 1e-11);
  ExpectRelative(cost.sgd_epsilon, 1.9729097477550004, 1e-10);
  ExpectRelative(cost.epsilon, 34.314117563311186, 1e-10);
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
  const PublishedCost cost = PublishedEpsilon(pipeline, 1e-4).value();
  EXPECT_EQ(cost.appr_delta, 5e-5);
  ExpectRelative(cost.appr_epsilon, 8.68365780133619, 1e-11);
  ExpectRelative(cost.sgd_epsilon, 0.9607937759067814, 1e-10);
  ExpectRelative(cost.epsilon, 9.644451577242972, 1e-10);
}

TEST(PublishedEpsilonTest, GmUsesTheClassicGaussianBound) {
  DparPipeline pipeline = Pipeline(ApprMethod::kGm);
  pipeline.appr_noise = 30;
  pipeline.node_sampling_rate = 0.09;
  const PublishedCost cost = PublishedEpsilon(pipeline, 1e-3).value();
  ExpectRelative(cost.appr_delta, 0.005555555555555556, 1e-15);
  ExpectRelative(cost.appr_epsilon, 6.7680014064626555, 1e-11);
  ExpectRelative(cost.sgd_epsilon, 0.46488668213237194, 1e-10);
  ExpectRelative(cost.epsilon, 0.6509599279735524, 1e-10);
}

TEST(PublishedEpsilonTest, NodeSamplingMultipliesEpsilonAndDelta) {
  DparPipeline pipeline = Pipeline(ApprMethod::kEm0);
  const PublishedCost whole = PublishedEpsilon(pipeline, 2e-3).value();
  pipeline.node_sampling_rate = 0.25;
  const PublishedCost sampled = PublishedEpsilon(pipeline, 5e-4).value();
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
