#include "core/privacy/row_change.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/privacy/accountant.h"
#include "core/privacy/budget.h"
#include "core/privacy/calibrate.h"
#include "core/privacy/event.h"
#include "core/privacy/gaussian.h"
#include "core/privacy/pld.h"
#include "core/privacy/renyi.h"
#include "core/privacy/testing/reference.h"

namespace dpar {
namespace {

v1::PrivacyEvent StepsOf(int64_t rows, double rate, double noise, int64_t count, double rounding = 0) {
  return *MakeRepetitionEvent(count, *MakeRowChangeEvent(rows, rate, 1, noise, rounding));
}

// The average of the Gaussians' exact profiles, with weights that the code under test does not compute.
double DeltaOfOneStep(int rows, double rate, double noise, double rounding, double epsilon) {
  const std::vector<long double> weights = testing::RowWeights(rows, rate);
  double delta = 0;
  for (int k = 0; k <= rows; ++k) {
    for (int own = 0; own <= 1; ++own) {
      if (2 * k + own > 0) {
        const auto weight = static_cast<double>(weights[static_cast<size_t>(k)]) * (own == 1 ? rate : 1 - rate);
        delta += weight * *GaussianDelta((2 * k + own + rounding) / noise, epsilon);
      }
    }
  }
  return delta;
}

TEST(RowChange, OneStepIsTheAverageOfTheGaussiansThatItReveals) {
  for (const double epsilon : {0.1, 0.5, 2.0}) {
    for (const double rounding : {0.0, 0.25}) {
      const double exact = DeltaOfOneStep(5, 0.2, 8, rounding, epsilon);
      const double delta = *EventDelta(StepsOf(5, 0.2, 8, 1, rounding), epsilon);
      EXPECT_GE(delta, exact * (1 - 1e-9)) << epsilon;
      EXPECT_LE(delta, exact * (1 + 1e-3)) << epsilon;
    }
  }
}

TEST(RowChange, DirectionsCostTheSame) {
  const v1::PrivacyEvent steps = StepsOf(12, 0.1, 30, 200);
  EXPECT_EQ(*EventEpsilon(steps, 1e-5, Direction::kRemove), *EventEpsilon(steps, 1e-5, Direction::kAdd));
}

TEST(RowChange, WithoutChangedRowsItCostsAtLeastTheSampledGaussianThatRevealsNothing) {
  const double revealed = *EventEpsilon(StepsOf(0, 0.1, 2, 100), 1e-5);
  const double hidden = *EventEpsilon(*MakeRepetitionEvent(100, *MakePoissonGaussianEvent(0.1, 1, 2)), 1e-5);
  EXPECT_GT(revealed, hidden);
}

TEST(RowChange, AtRateOneItIsAGaussianOfAllRowsTwiceAndTheOwnOne) {
  EXPECT_NEAR(*EventEpsilon(StepsOf(7, 1, 40, 9, 0.5), 1e-5), *EventEpsilon(*MakeGaussianEvent(15.5, 40, 9), 1e-5),
              1e-12);
}

TEST(RowChange, CostsNeverLessForMoreRowsALargerRateOrLessNoise) {
  const double base = *EventEpsilon(StepsOf(20, 0.1, 60, 50), 1e-5);
  EXPECT_GT(*EventEpsilon(StepsOf(21, 0.1, 60, 50), 1e-5), base);
  EXPECT_GT(*EventEpsilon(StepsOf(20, 0.11, 60, 50), 1e-5), base);
  EXPECT_GT(*EventEpsilon(StepsOf(20, 0.1, 59, 50), 1e-5), base);
  EXPECT_GT(*EventEpsilon(StepsOf(20, 0.1, 60, 51), 1e-5), base);
  EXPECT_GT(*EventEpsilon(StepsOf(20, 0.1, 60, 50, 0.1), 1e-5), base);
  EXPECT_LT(base, *EventEpsilon(StepsOf(20, 1, 60, 50), 1e-5)) << "sampling helps";
}

// One row that changes under both neighbours, and the node's own: what an attacker sees of one step on the worst data,
// which is two normal mixtures, is never worth more than the price. Quadrature on the plain definition.
TEST(RowChange, CoversRowsThatFlipTheirSign) {
  constexpr double kRate = 0.3;
  constexpr double kNoise = 4;
  const auto density = [&](double y, double changed, double own) {
    const auto normal = [&](double mean) { return std::exp(-(y - mean) * (y - mean) / (2 * kNoise * kNoise)); };
    return (1 - kRate) * ((1 - kRate) * normal(0) + kRate * normal(own)) +
           kRate * ((1 - kRate) * normal(changed) + kRate * normal(changed + own));
  };
  for (const double epsilon : {0.0, 0.1, 0.3, 0.6}) {
    double with_over_without = 0;
    double without_over_with = 0;
    constexpr double kStep = 1e-3;
    for (double y = -40; y < 40; y += kStep) {
      const double with = density(y, 1, 1) * kStep / (kNoise * std::sqrt(2 * M_PI));
      const double without = density(y, -1, 0) * kStep / (kNoise * std::sqrt(2 * M_PI));
      with_over_without += std::max(0.0, with - std::exp(epsilon) * without);
      without_over_with += std::max(0.0, without - std::exp(epsilon) * with);
    }
    const double claimed = *EventDelta(StepsOf(1, kRate, kNoise, 1), epsilon);
    EXPECT_LE(with_over_without, claimed) << epsilon;
    EXPECT_LE(without_over_with, claimed) << epsilon;
  }
}

TEST(RowChange, RenyiIsTheSumOverWhatIsRevealed) {
  for (const double order : {1.5, 4.0, 32.0}) {
    const std::vector<long double> weights = testing::RowWeights(9, 0.2);
    long double sum = 0;
    for (int k = 0; k <= 9; ++k) {
      for (int own = 0; own <= 1; ++own) {
        const long double mu = (2 * k + own) / 50.0L;
        sum += weights[static_cast<size_t>(k)] * (own == 1 ? 0.2L : 0.8L) * std::exp(order * (order - 1) * mu * mu / 2);
      }
    }
    const auto exact = static_cast<double>(std::log(sum) / (order - 1));
    const double found = RowChangeRenyi({9, 0.2, 50, 0}, order);
    EXPECT_GE(found, exact * (1 - 1e-12)) << order;
    EXPECT_LE(found, exact * (1 + 1e-9)) << order;
  }
}

TEST(RowChange, ManyStepsCostLessByLossDistributionsThanByDivergencesAndNotFarBelow) {
  FlatEvent event;
  event.changes[{40, 0.1, 400, 0.01}] = 1000;
  const double by_losses = PldEpsilon(event, Direction::kRemove, 1e-5, PldPrecision()).value;
  const double by_divergences = RenyiEpsilon(event, Direction::kRemove, 1e-5);
  EXPECT_LT(by_losses, by_divergences);
  EXPECT_GT(by_losses, 0.8 * by_divergences);
}

// Many steps of small shifts are one Gaussian whose mu^2 is the sum of the expected squares, in the limit.
TEST(RowChange, ManySmallStepsApproachTheGaussianOfTheMeanSquare) {
  constexpr double kRows = 30;
  constexpr double kRate = 0.1;
  constexpr double kNoise = 2000;
  constexpr int64_t kSteps = 100'000;
  const double mean = 2 * kRows * kRate + kRate;
  const double variance = 4 * kRows * kRate * (1 - kRate) + kRate * (1 - kRate);
  const double mu = std::sqrt(static_cast<double>(kSteps) * (mean * mean + variance)) / kNoise;
  const double epsilon = *EventEpsilon(StepsOf(30, kRate, kNoise, kSteps), 1e-5);
  EXPECT_NEAR(epsilon, *GaussianEpsilon(mu, 1e-5), 1e-2 * epsilon);
}

TEST(RowChange, NoiseIsCalibratedToAnEpsilonThatTheAccountantGivesBack) {
  const auto noise = CalibrateNoise([](double x) { return StepsOf(50, 0.1, x, 500); }, 1, 1e-5);
  ASSERT_TRUE(noise.ok()) << noise.status();
  const double epsilon = *EventEpsilon(StepsOf(50, 0.1, *noise, 500), 1e-5);
  EXPECT_LE(epsilon, 1);
  EXPECT_GT(epsilon, 0.999);
}

TEST(RowChange, HasAPriceInUnitsAndInsideASampleOfTheNodes) {
  const v1::PrivacyEvent steps = StepsOf(10, 0.2, 100, 100);
  EXPECT_GT(*EventUnits(steps, 8), 0);
  const double sampled = *EventEpsilon(*MakeNodeSamplingEvent(0.5, steps), 1e-5);
  EXPECT_LT(sampled, *EventEpsilon(steps, 1e-5));
  EXPECT_GT(sampled, 0);
}

TEST(RowChange, ParametersOutOfRangeAreRefusedByName) {
  const auto field = [](const absl::StatusOr<v1::PrivacyEvent>& event) {
    EXPECT_EQ(event.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(event.status().message());
  };
  EXPECT_NE(field(MakeRowChangeEvent(-1, 0.1, 1, 1, 0)).find("row_change.changed_rows"), std::string::npos);
  EXPECT_NE(field(MakeRowChangeEvent(10'001, 0.1, 1, 1, 0)).find("row_change.changed_rows"), std::string::npos);
  EXPECT_NE(field(MakeRowChangeEvent(1, 1.1, 1, 1, 0)).find("row_change.sampling_rate"), std::string::npos);
  EXPECT_NE(field(MakeRowChangeEvent(1, 0.1, 0, 1, 0)).find("row_change.sensitivity"), std::string::npos);
  EXPECT_NE(field(MakeRowChangeEvent(1, 0.1, 1, 0, 0)).find("row_change.noise_stddev"), std::string::npos);
  EXPECT_NE(field(MakeRowChangeEvent(1, 0.1, 1, 1, -0.1)).find("row_change.rounding"), std::string::npos);
  EXPECT_NE(field(MakeRowChangeEvent(1, 0.1, 1, 1, NAN)).find("row_change.rounding"), std::string::npos);
}

}  // namespace
}  // namespace dpar
