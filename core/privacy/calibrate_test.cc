#include "core/privacy/calibrate.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/privacy/accountant.h"
#include "core/privacy/event.h"
#include "core/privacy/gaussian.h"
#include "core/privacy/testing/expectations.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::ExpectInvalidField;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

void ExpectUnreachable(const absl::Status& status, const std::string& epsilon, const std::string& delta) {
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "PRIVACY_UNREACHABLE");
  EXPECT_EQ(info->metadata().at("epsilon"), epsilon);
  EXPECT_EQ(info->metadata().at("delta"), delta);
}

// At noise 1.
v1::PrivacyEvent Gaussians(int64_t count) { return MakeGaussianEvent(1, 1, count).value(); }

v1::PrivacyEvent Steps(int64_t rows, double rate, int64_t steps) {
  return MakeRepetitionEvent(steps, MakeRowMixtureEvent(rows, rate, 1, 1).value()).value();
}

v1::PrivacyEvent Laplaces(int64_t count) { return MakeRepetitionEvent(count, MakeLaplaceEvent(1, 1).value()).value(); }

v1::PrivacyEvent Selections(int64_t count) {
  return MakeRepetitionEvent(count, MakeBoundedRangeEvent(2).value()).value();
}

std::function<v1::PrivacyEvent(double)> Scaled(const v1::PrivacyEvent& event) {
  return [event](double x) { return ScaleNoise(event, x); };
}

// The result meets the target, and noise that is smaller by a thousandth does not.
void ExpectSmallest(const v1::PrivacyEvent& event, double epsilon, double delta) {
  SCOPED_TRACE(absl::StrCat("epsilon ", epsilon, " delta ", delta));
  const double noise = CalibrateNoise(Scaled(event), epsilon, delta).value();
  ASSERT_GT(noise, 0);
  EXPECT_LE(EventEpsilon(ScaleNoise(event, noise), delta).value(), epsilon);
  EXPECT_GT(EventEpsilon(ScaleNoise(event, noise * (1 - 1e-3)), delta).value(), epsilon);
}

TEST(ScaleNoiseTest, MultipliesNoiseAndDividesRanges) {
  EXPECT_EQ(ScaleNoise(MakeGaussianEvent(2, 3, 5).value(), 4).SerializeAsString(),
            MakeGaussianEvent(2, 12, 5).value().SerializeAsString());
  EXPECT_EQ(ScaleNoise(MakeLaplaceEvent(2, 3).value(), 4).SerializeAsString(),
            MakeLaplaceEvent(2, 12).value().SerializeAsString());
  EXPECT_EQ(ScaleNoise(MakePoissonGaussianEvent(0.5, 2, 3).value(), 4).SerializeAsString(),
            MakePoissonGaussianEvent(0.5, 2, 12).value().SerializeAsString());
  EXPECT_EQ(ScaleNoise(MakeRowMixtureEvent(7, 0.5, 2, 3).value(), 4).SerializeAsString(),
            MakeRowMixtureEvent(7, 0.5, 2, 12).value().SerializeAsString());
  EXPECT_EQ(ScaleNoise(MakeBoundedRangeEvent(3).value(), 4).SerializeAsString(),
            MakeBoundedRangeEvent(0.75).value().SerializeAsString());
}

TEST(ScaleNoiseTest, ReachesEveryPartOfATree) {
  const v1::PrivacyEvent laplace = MakeLaplaceEvent(1, 3).value();
  const v1::PrivacyEvent quiet = MakeLaplaceEvent(1, 6).value();
  const v1::PrivacyEvent gaussian = MakeGaussianEvent(1, 5, 1).value();
  const v1::PrivacyEvent loud = MakeGaussianEvent(1, 10, 1).value();
  EXPECT_EQ(ScaleNoise(MakeRepetitionEvent(9, laplace).value(), 2).SerializeAsString(),
            MakeRepetitionEvent(9, quiet).value().SerializeAsString());
  EXPECT_EQ(ScaleNoise(MakeNodeSamplingEvent(0.25, laplace).value(), 2).SerializeAsString(),
            MakeNodeSamplingEvent(0.25, quiet).value().SerializeAsString());
  EXPECT_EQ(ScaleNoise(MakeStageEvent("dp-sgd", laplace).value(), 2).SerializeAsString(),
            MakeStageEvent("dp-sgd", quiet).value().SerializeAsString());
  const v1::PrivacyEvent inner = MakeCompositionEvent({laplace, gaussian}).value();
  const v1::PrivacyEvent scaled = MakeCompositionEvent({quiet, loud}).value();
  EXPECT_EQ(ScaleNoise(MakeCompositionEvent({inner, gaussian}).value(), 2).SerializeAsString(),
            MakeCompositionEvent({scaled, loud}).value().SerializeAsString());
}

TEST(ScaleNoiseTest, LeavesAnEmptyEventAlone) {
  EXPECT_EQ(ScaleNoise(v1::PrivacyEvent(), 2).SerializeAsString(), "");
  EXPECT_TRUE(ScaleNoise(MakeCompositionEvent({}).value(), 2).has_composition());
}

TEST(CalibrateNoiseTest, OfSampledGaussiansIsTheSmallestThatMeetsTheTarget) {
  ExpectSmallest(Steps(1, 0.01, 1000), 0.5, 1e-5);
  ExpectSmallest(Steps(1, 0.01, 1000), 4, 1e-5);
  ExpectSmallest(Steps(1, 0.2, 1), 1, 1e-6);
  ExpectSmallest(Steps(3, 0.05, 100), 2, 1e-5);
}

TEST(CalibrateNoiseTest, IsAsCloseForSmallTargets) {
  ExpectSmallest(Steps(1, 0.01, 1000), 0.05, 1e-5);
  ExpectSmallest(Steps(2, 0.02, 200), 0.01, 1e-4);
}

TEST(CalibrateNoiseTest, OfLaplaceAndSelectionsIsTheSmallestThatMeetsTheTarget) {
  ExpectSmallest(Laplaces(10), 1, 1e-5);
  ExpectSmallest(Selections(140), 1, 1e-5);
  ExpectSmallest(MakeCompositionEvent({Selections(20), Laplaces(5), Gaussians(1), Steps(2, 0.1, 10)}).value(), 3, 1e-4);
}

TEST(CalibrateNoiseTest, OfASampleIsTheSmallestThatMeetsTheTarget) {
  ExpectSmallest(MakeNodeSamplingEvent(0.3, Gaussians(1)).value(), 1, 1e-5);
  ExpectSmallest(MakeNodeSamplingEvent(0.3, Steps(1, 0.05, 100)).value(), 1, 1e-5);
}

TEST(CalibrateNoiseTest, OfASampleBesideSomethingElseIsTheSmallestThatMeetsTheTarget) {
  const v1::PrivacyEvent sampled = MakeNodeSamplingEvent(0.3, Steps(1, 0.05, 100)).value();
  ExpectSmallest(MakeCompositionEvent({sampled, Gaussians(1)}).value(), 1, 1e-5);
}

TEST(CalibrateNoiseTest, OfOneLaplaceIsTheClosedForm) {
  // epsilon = 1/x + 2 ln(1 - delta).
  for (const double epsilon : {0.1, 1.0, 5.0}) {
    for (const double delta : {1e-3, 1e-8}) {
      const double exact = 1 / (epsilon - 2 * std::log1p(-delta));
      const double noise = CalibrateNoise(Scaled(Laplaces(1)), epsilon, delta).value();
      EXPECT_GE(noise, exact * (1 - 1e-11)) << epsilon << " " << delta;
      EXPECT_LE(noise, exact * (1 + 5e-6)) << epsilon << " " << delta;
    }
  }
}

TEST(CalibrateNoiseTest, OfGaussiansIsOneOverMu) {
  for (const double epsilon : {0.01, 1.0, 8.0, 100.0}) {
    for (const double delta : {1e-2, 1e-5, 1e-12}) {
      for (const int64_t count : {1, 100}) {
        SCOPED_TRACE(absl::StrCat(epsilon, " ", delta, " ", count));
        const double exact = std::sqrt(static_cast<double>(count)) / GaussianMu(epsilon, delta).value();
        const double noise = CalibrateNoise(Scaled(Gaussians(count)), epsilon, delta).value();
        EXPECT_NEAR(noise, exact, 1e-11 * exact);
        EXPECT_LE(EventEpsilon(ScaleNoise(Gaussians(count), noise), delta).value(), epsilon);
      }
    }
  }
}

TEST(CalibrateNoiseTest, NeedsNoneWhenDeltaCoversTheChanceOfBeingSampled) {
  EXPECT_EQ(CalibrateNoise(Scaled(Steps(1, 1e-6, 1)), 1, 1e-5).value(), 0);
  EXPECT_EQ(CalibrateNoise(Scaled(Steps(1, 1e-8, 999)), 1, 1e-5).value(), 0);
  EXPECT_EQ(CalibrateNoise(Scaled(Steps(3, 1e-8, 300)), 1, 1e-5).value(), 0);
  EXPECT_EQ(CalibrateNoise(Scaled(MakeNodeSamplingEvent(1e-6, Gaussians(1)).value()), 1, 1e-5).value(), 0);
  EXPECT_EQ(CalibrateNoise(Scaled(MakeCompositionEvent({}).value()), 1, 1e-5).value(), 0);
  EXPECT_EQ(CalibrateNoise(Scaled(Steps(1, 0, 1000)), 1, 1e-5).value(), 0);
}

TEST(CalibrateNoiseTest, NeedsSomeWhenTheChanceOfBeingSampledIsJustAboveDelta) {
  EXPECT_GE(CalibrateNoise(Scaled(Steps(1, 1.01e-5, 1)), 1, 1e-5).value(), kMinNoiseMultiplier);
  EXPECT_GE(CalibrateNoise(Scaled(Steps(1, 1e-8, 1100)), 1, 1e-5).value(), kMinNoiseMultiplier);
}

TEST(CalibrateNoiseTest, IsNeverBelowTheSmallestMultiplier) {
  // At 0.01 a step costs about 100^2 / 2 + 400.
  EXPECT_EQ(CalibrateNoise(Scaled(Steps(1, 0.5, 1)), 1e4, 1e-5).value(), kMinNoiseMultiplier);
  EXPECT_EQ(CalibrateNoise(Scaled(Gaussians(1)), 1e4, 1e-5).value(), kMinNoiseMultiplier);
}

TEST(CalibrateNoiseTest, SaysWhenAFixedPartCostsTooMuch) {
  const v1::PrivacyEvent fixed = MakeGaussianEvent(5, 1, 1).value();
  const auto beside_gaussian = [&fixed](double x) {
    v1::PrivacyEvent event;
    *event.mutable_composition()->add_events() = fixed;
    *event.mutable_composition()->add_events() = ScaleNoise(Gaussians(1), x);
    return event;
  };
  ExpectUnreachable(CalibrateNoise(beside_gaussian, 0.1, 1e-5).status(), "0.1", "1e-05");
  const auto beside_steps = [&fixed](double x) {
    v1::PrivacyEvent event;
    *event.mutable_composition()->add_events() = fixed;
    *event.mutable_composition()->add_events() = ScaleNoise(Steps(1, 0.1, 10), x);
    return event;
  };
  ExpectUnreachable(CalibrateNoise(beside_steps, 0.1, 1e-5).status(), "0.1", "1e-05");
  // With room for it, the rest goes to the other part.
  const double noise = CalibrateNoise(beside_gaussian, 40, 1e-5).value();
  EXPECT_NEAR(noise, 1 / std::sqrt(std::pow(GaussianMu(40, 1e-5).value(), 2) - 25), 1e-9 * noise);
}

TEST(CalibrateNoiseTest, RefusesBadTargetsByName) {
  for (const double epsilon : {0.0, -1.0, kNan, kInf, 1e5, 10'000.001}) {
    ExpectInvalidField(CalibrateNoise(Scaled(Gaussians(1)), epsilon, 1e-5).status(), "epsilon");
  }
  for (const double delta : {0.0, 1.0, -0.1, kNan, kInf}) {
    ExpectInvalidField(CalibrateNoise(Scaled(Gaussians(1)), 1, delta).status(), "delta");
  }
  ExpectInvalidField(CalibrateNoise([](double) { return v1::PrivacyEvent(); }, 1, 1e-5).status(), "event");
}

}  // namespace
}  // namespace dpar
