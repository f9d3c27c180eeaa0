#include "core/train/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/privacy/accountant.h"
#include "core/privacy/gaussian.h"

namespace dpar {
namespace {

constexpr PublicSizes kSizes = {2396, 2879, 7};

v1::TrainingSpec Spec(double epsilon, double delta) {
  v1::TrainingSpec spec;
  spec.set_epsilon(epsilon);
  spec.set_delta(delta);
  return spec;
}

std::string Reason(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : "";
}

TEST(MakePlan, FollowsTheRuleForPublicQuantities) {
  const absl::StatusOr<v1::Plan> plan = MakePlan(Spec(1, 2e-3), kSizes);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const double mu = *GaussianMu(1, 2e-3);
  const double reach = 0.38 * std::pow(2396 * mu, 0.85);
  EXPECT_EQ(plan->method(), v1::FEATURES);
  EXPECT_EQ(plan->training_slots(), 2396);
  EXPECT_EQ(plan->steps(), std::lround(3 * std::sqrt(reach)));
  EXPECT_EQ(plan->gradient_clip(), 0.3);
  EXPECT_EQ(plan->momentum(), 0.9);
  EXPECT_DOUBLE_EQ(plan->learning_rate(), reach / (static_cast<double>(plan->steps()) * 0.3));
  EXPECT_DOUBLE_EQ(plan->logit_noise(), 10 * reach / (mu * 2396));
  EXPECT_EQ(plan->accountant(), v1::SOUND);
}

TEST(MakePlan, ChargesLatticeAndSummationErrorAndIsTight) {
  for (const double epsilon : {0.001, 0.1, 1.0, 8.0, 100.0}) {
    const absl::StatusOr<v1::Plan> plan = MakePlan(Spec(epsilon, 1e-5), {5000, 50, 3});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const v1::GaussianEvent& event = plan->event().gaussian();
    const double stddev = plan->noise_multiplier() * plan->gradient_clip();
    const double step = stddev * std::ldexp(1.0, -plan->lattice_bits());
    EXPECT_EQ(event.count(), plan->steps());
    EXPECT_EQ(event.noise_stddev(), stddev);
    EXPECT_GT(plan->summation_error(), 0);
    EXPECT_GE(event.sensitivity() * (1 + 1e-15), 0.3 + step * std::sqrt(51.0 * 3) + 2 * plan->summation_error());
    const double spent = *EventEpsilon(plan->event(), 1e-5);
    EXPECT_LE(spent, epsilon);
    EXPECT_GT(spent, epsilon * (1 - 1e-8));
  }
}

TEST(MakePlan, StepsStayBetweenTheirBounds) {
  EXPECT_EQ(MakePlan(Spec(0.1, 1e-5), {10, 5, 2})->steps(), 30);
  EXPECT_EQ(MakePlan(Spec(8, 1e-5), {1'000'000, 5, 2})->steps(), 150);
}

TEST(MakePlan, TakesTheOptionsItReads) {
  v1::TrainingSpec spec = Spec(1, 1e-5);
  spec.mutable_options()->set_steps(40);
  spec.mutable_options()->set_learning_rate(2);
  spec.mutable_options()->set_gradient_clip(0.5);
  spec.mutable_options()->set_momentum(0);
  const absl::StatusOr<v1::Plan> plan = MakePlan(spec, kSizes);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->steps(), 40);
  EXPECT_EQ(plan->learning_rate(), 2);
  EXPECT_EQ(plan->gradient_clip(), 0.5);
  EXPECT_EQ(plan->momentum(), 0);
  EXPECT_LE(*EventEpsilon(plan->event(), 1e-5), 1);
}

TEST(MakePlan, RefusesBadEpsilonAndDeltaByName) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double epsilon : {0.0, -1.0, 0.0009, 100.1, 1e9, infinity, nan}) {
    const absl::Status status = MakePlan(Spec(epsilon, 1e-5), kSizes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << epsilon;
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "epsilon");
  }
  for (const double delta : {0.0, -1e-5, 1.0, 2.0, 1e-16, nan}) {
    const absl::Status status = MakePlan(Spec(1, delta), kSizes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << delta;
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "delta");
  }
}

TEST(MakePlan, RefusesSizesNoModelCanHave) {
  EXPECT_EQ(MakePlan(Spec(1, 1e-5), {0, 5, 2}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakePlan(Spec(1, 1e-5), {5, 0, 2}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakePlan(Spec(1, 1e-5), {5, 5, 1}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MakePlan, RefusesOptionsThatTheMethodDoesNotRead) {
  v1::TrainingSpec spec = Spec(1, 1e-5);
  spec.mutable_options()->set_top_k(2);
  const absl::Status status = MakePlan(spec, kSizes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "options.top_k");
}

TEST(MakePlan, RefusesOptionsOutOfRange) {
  const auto refused = [](const std::function<void(v1::TrainingOptions&)>& set) {
    v1::TrainingSpec spec = Spec(1, 1e-5);
    set(*spec.mutable_options());
    return MakePlan(spec, kSizes).status().code();
  };
  EXPECT_EQ(refused([](auto& o) { o.set_steps(0); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.set_learning_rate(-1); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.set_gradient_clip(0); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.set_momentum(1); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused([](auto& o) { o.set_momentum(std::nan("")); }), absl::StatusCode::kInvalidArgument);
}

TEST(MakePlan, SaysWhatThisServerCannotDo) {
  const auto refused = [](const std::function<void(v1::TrainingSpec&)>& set) {
    v1::TrainingSpec spec = Spec(1, 1e-5);
    set(spec);
    const absl::Status status = MakePlan(spec, kSizes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    return Reason(status);
  };
  EXPECT_EQ(refused([](auto& s) { s.set_method(v1::DPAR_EM0); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(refused([](auto& s) { s.set_method(v1::SAGE); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(refused([](auto& s) { s.set_accountant(v1::AS_PUBLISHED); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(refused([](auto& s) { s.set_non_private(true); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(refused([](auto& s) { s.set_seed(7); }), "NOT_IMPLEMENTED");
  EXPECT_EQ(refused([](auto& s) { s.mutable_evaluation(); }), "NOT_IMPLEMENTED");
}

TEST(MakePlan, SaysWhenNoNoiseCanMeetTheRequest) {
  v1::TrainingSpec spec = Spec(0.001, 1e-15);
  spec.mutable_options()->set_steps(100'000);
  const absl::Status status = MakePlan(spec, {1000, 1'000'000, 10'000}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Reason(status), "PRIVACY_UNREACHABLE");
}

TEST(EpsilonAfter, RisesFromNothingToTheWholePrice) {
  const v1::Plan plan = *MakePlan(Spec(1, 2e-3), kSizes);
  EXPECT_EQ(*EpsilonAfter(plan, 0), 0);
  double before = 0;
  for (int64_t step = 1; step <= plan.steps(); ++step) {
    const double epsilon = *EpsilonAfter(plan, step);
    EXPECT_GE(epsilon, before);
    before = epsilon;
  }
  EXPECT_NEAR(before, 1, 1e-8);
  EXPECT_LE(before, 1);
}

}  // namespace
}  // namespace dpar
