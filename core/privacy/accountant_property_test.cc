// What must hold for the accountant whatever the parameters, over draws from a fixed stream.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/privacy/accountant.h"
#include "core/privacy/budget.h"
#include "core/privacy/event.h"
#include "core/privacy/flat_event.h"
#include "core/privacy/gaussian.h"
#include "core/privacy/pld.h"
#include "core/privacy/renyi.h"
#include "core/privacy/testing/expectations.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::ExpectInvalidField;

using ::dpar::testing::FixedRandom;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int kDraws = 40;
// For what takes longer.
constexpr int kFewDraws = 8;

// `smaller` may be the larger by the accountant's stated discretisation only.
void ExpectAtMost(double smaller, double larger) { EXPECT_LE(smaller, larger * (1 + 1e-5) + 1e-6); }

double LogUniform(RandomSource& random, double low, double high) {
  return low * std::pow(high / low, UniformReal(random));
}

int64_t LogUniformCount(RandomSource& random, double largest) {
  return static_cast<int64_t>(LogUniform(random, 1, largest));
}

// T steps of DP-SGD.
struct Training {
  int64_t rows = 1;
  double rate = 0;
  double sigma = 0;
  int64_t steps = 1;
  double delta = 0;

  [[nodiscard]] v1::PrivacyEvent Event() const {
    return MakeRepetitionEvent(steps, MakeRowMixtureEvent(rows, rate, 1, sigma).value()).value();
  }
  [[nodiscard]] double Epsilon() const { return EventEpsilon(Event(), delta).value(); }
  [[nodiscard]] std::string Name() const {
    return absl::StrCat("rows ", rows, " q ", rate, " sigma ", sigma, " T ", steps, " delta ", delta);
  }
};

Training RandomTraining(RandomSource& random) {
  Training training;
  training.rows = LogUniformCount(random, 6);
  training.rate = LogUniform(random, 1e-3, 0.5);
  training.sigma = LogUniform(random, 0.6, 10) * static_cast<double>(training.rows);
  training.steps = LogUniformCount(random, 1000);
  training.delta = LogUniform(random, 1e-9, 1e-2);
  return training;
}

v1::PrivacyEvent Laplaces(double scale, int64_t count) {
  return MakeRepetitionEvent(count, MakeLaplaceEvent(1, scale).value()).value();
}

v1::PrivacyEvent Selections(double range, int64_t count) {
  return MakeRepetitionEvent(count, MakeBoundedRangeEvent(range).value()).value();
}

// One of each kind.
std::vector<v1::PrivacyEvent> RandomParts(RandomSource& random) {
  Training training = RandomTraining(random);
  Training other = RandomTraining(random);
  training.steps = std::min<int64_t>(training.steps, 100);
  other.steps = std::min<int64_t>(other.steps, 100);
  return {training.Event(),
          Laplaces(LogUniform(random, 1, 30), LogUniformCount(random, 20)),
          MakeGaussianEvent(1, LogUniform(random, 1, 30), 3).value(),
          other.Event(),
          Selections(LogUniform(random, 0.02, 0.5), LogUniformCount(random, 50)),
          MakeGaussianEvent(2, LogUniform(random, 2, 30), 1).value()};
}

void ExpectSameFlat(const FlatEvent& a, const FlatEvent& b) {
  EXPECT_EQ(a.gaussian_mu, b.gaussian_mu);
  EXPECT_EQ(a.mixtures, b.mixtures);
  EXPECT_EQ(a.laplaces, b.laplaces);
  EXPECT_EQ(a.selections, b.selections);
  EXPECT_EQ(a.sampled.size(), b.sampled.size());
}

double LargerRenyiEpsilon(const v1::PrivacyEvent& event, double delta) {
  const FlatEvent flat = Flatten(event).value();
  return std::max(RenyiEpsilon(flat, Direction::kRemove, delta, RenyiOrders()).epsilon,
                  RenyiEpsilon(flat, Direction::kAdd, delta, RenyiOrders()).epsilon);
}

TEST(EventEpsilonTest, FallsWithNoiseAndDeltaAndRisesWithStepsRateAndRows) {
  FixedRandom random(1);
  for (int i = 0; i < kDraws; ++i) {
    const Training training = RandomTraining(random);
    SCOPED_TRACE(training.Name());
    const double epsilon = training.Epsilon();
    Training other = training;
    other.sigma *= 1.2;
    ExpectAtMost(other.Epsilon(), epsilon);
    other = training;
    other.delta *= 3;
    ExpectAtMost(other.Epsilon(), epsilon);
    other = training;
    other.steps *= 2;
    ExpectAtMost(epsilon, other.Epsilon());
    other = training;
    other.rate *= 1.3;
    ExpectAtMost(epsilon, other.Epsilon());
    other = training;
    other.rows += 1;
    ExpectAtMost(epsilon, other.Epsilon());
  }
}

TEST(EventEpsilonTest, TheOrderOfACompositionDoesNotMatterToTheBit) {
  FixedRandom random(2);
  for (int i = 0; i < kDraws; ++i) {
    const std::vector<v1::PrivacyEvent> parts = RandomParts(random);
    std::vector<v1::PrivacyEvent> backwards(parts.rbegin(), parts.rend());
    const v1::PrivacyEvent composed = MakeCompositionEvent(parts).value();
    const v1::PrivacyEvent reversed = MakeCompositionEvent(backwards).value();
    // As a tree: all but the first inside another composition.
    const v1::PrivacyEvent rest =
        MakeCompositionEvent(std::vector<v1::PrivacyEvent>(parts.begin() + 1, parts.end())).value();
    const v1::PrivacyEvent nested = MakeCompositionEvent({rest, parts.front()}).value();
    ExpectSameFlat(Flatten(composed).value(), Flatten(reversed).value());
    ExpectSameFlat(Flatten(composed).value(), Flatten(nested).value());
    if (i < 2) {
      EXPECT_EQ(EventEpsilon(composed, 1e-5).value(), EventEpsilon(reversed, 1e-5).value());
      EXPECT_EQ(EventDelta(composed, 2).value(), EventDelta(reversed, 2).value());
    }
  }
}

TEST(EventEpsilonTest, SplittingTheStepsDoesNotMatterToTheBit) {
  FixedRandom random(3);
  for (int i = 0; i < kDraws; ++i) {
    Training training = RandomTraining(random);
    training.steps += 1;
    Training first = training;
    Training second = training;
    first.steps = 1 + static_cast<int64_t>(UniformBelow(random, static_cast<uint64_t>(training.steps - 1)));
    second.steps = training.steps - first.steps;
    const v1::PrivacyEvent split = MakeCompositionEvent({first.Event(), second.Event()}).value();
    ExpectSameFlat(Flatten(split).value(), Flatten(training.Event()).value());
    if (i < kFewDraws) {
      EXPECT_EQ(EventEpsilon(split, training.delta).value(), training.Epsilon()) << training.Name();
    }
  }
}

TEST(EventEpsilonTest, NamingTheStagesDoesNotMatterToTheBit) {
  FixedRandom random(31);
  for (int i = 0; i < kFewDraws; ++i) {
    const std::vector<v1::PrivacyEvent> parts = RandomParts(random);
    std::vector<v1::PrivacyEvent> stages;
    stages.reserve(parts.size());
    for (const v1::PrivacyEvent& part : parts) {
      stages.push_back(MakeStageEvent(absl::StrCat("stage-", stages.size()), part).value());
    }
    const v1::PrivacyEvent plain = MakeCompositionEvent(parts).value();
    const v1::PrivacyEvent staged = MakeStageEvent("all", MakeCompositionEvent(stages).value()).value();
    EXPECT_EQ(EventEpsilon(staged, 1e-5).value(), EventEpsilon(plain, 1e-5).value());
    EXPECT_EQ(EventUnits(staged, 8).value(), EventUnits(plain, 8).value());
    EXPECT_EQ(EventUnits(MakeNodeSamplingEvent(0.5, staged).value(), 8).value(),
              EventUnits(MakeNodeSamplingEvent(0.5, plain).value(), 8).value());
  }
  const v1::PrivacyEvent gaussian = MakeGaussianEvent(1, 3, 5).value();
  const v1::PrivacyEvent staged = MakeStageEvent("dp-sgd", gaussian).value();
  EXPECT_EQ(EventEpsilon(MakeNodeSamplingEvent(0.5, staged).value(), 1e-5).value(),
            EventEpsilon(MakeNodeSamplingEvent(0.5, gaussian).value(), 1e-5).value());
  EXPECT_EQ(EventDelta(staged, 1).value(), EventDelta(gaussian, 1).value());
}

TEST(EventEpsilonTest, AMixtureOfMechanismsCostsAtLeastEachPartAndAtMostTheirSum) {
  FixedRandom random(4);
  for (int i = 0; i < kFewDraws; ++i) {
    const std::vector<v1::PrivacyEvent> parts = RandomParts(random);
    const double delta = LogUniform(random, 1e-8, 1e-3);
    SCOPED_TRACE(absl::StrCat("draw ", i, " delta ", delta));
    const double whole = EventEpsilon(MakeCompositionEvent(parts).value(), delta).value();
    double sum = 0;
    for (const v1::PrivacyEvent& part : parts) {
      ExpectAtMost(EventEpsilon(part, delta).value(), whole);
      sum += LargerRenyiEpsilon(part, delta);
    }
    ExpectAtMost(whole, sum);
    ExpectAtMost(whole, LargerRenyiEpsilon(MakeCompositionEvent(parts).value(), delta));
  }
}

TEST(PldEpsilonTest, IsNeverAboveTheRenyiBound) {
  FixedRandom random(5);
  for (int i = 0; i < kDraws; ++i) {
    const Training training = RandomTraining(random);
    SCOPED_TRACE(training.Name());
    const FlatEvent flat = Flatten(training.Event()).value();
    for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
      const PldBound bound = PldEpsilon(flat, direction, training.delta, PldPrecision());
      const double renyi = RenyiEpsilon(flat, direction, training.delta, RenyiOrders()).epsilon;
      EXPECT_LE(bound.value, renyi + 2 * bound.discretisation_error + 1e-9);
    }
  }
}

TEST(EventDeltaTest, AtTheEpsilonOfADeltaIsAtMostThatDelta) {
  FixedRandom random(6);
  for (int i = 0; i < kDraws; ++i) {
    const Training training = RandomTraining(random);
    const double epsilon = training.Epsilon();
    EXPECT_LE(EventDelta(training.Event(), epsilon).value(), training.delta) << training.Name();
  }
  for (int i = 0; i < kFewDraws; ++i) {
    const v1::PrivacyEvent event = MakeCompositionEvent(RandomParts(random)).value();
    const double delta = LogUniform(random, 1e-8, 1e-3);
    EXPECT_LE(EventDelta(event, EventEpsilon(event, delta).value()).value(), delta) << i;
  }
  const v1::PrivacyEvent sampled =
      MakeNodeSamplingEvent(0.3, MakeCompositionEvent(RandomParts(random)).value()).value();
  EXPECT_LE(EventDelta(sampled, EventEpsilon(sampled, 1e-5).value()).value(), 1e-5);
}

TEST(EventDeltaTest, OfASampleBesideSomethingElseIsAtLeastThatOfEither) {
  // A pipeline on a sample, and an evaluation that is not.
  FixedRandom random(14);
  const v1::PrivacyEvent evaluation = MakeGaussianEvent(1, 5, 1).value();
  for (int i = 0; i < 3; ++i) {
    Training training = RandomTraining(random);
    training.delta = std::max(training.delta, 1e-7);
    const double rate = 0.1 + 0.8 * UniformReal(random);
    SCOPED_TRACE(absl::StrCat(training.Name(), " q' ", rate));
    const v1::PrivacyEvent sampled = MakeNodeSamplingEvent(rate, training.Event()).value();
    const v1::PrivacyEvent both = MakeCompositionEvent({sampled, evaluation}).value();
    for (const double epsilon : {0.1, 1.0}) {
      const double delta = EventDelta(both, epsilon).value();
      EXPECT_GE(delta, EventDelta(evaluation, epsilon).value() * (1 - 1e-9));
      EXPECT_GE(delta, EventDelta(sampled, epsilon).value() * (1 - 1e-3));
    }
    const double whole = EventEpsilon(both, training.delta).value();
    EXPECT_LE(EventDelta(both, whole).value(), training.delta);
    EXPECT_GE(EventDelta(both, whole * 0.99).value(), training.delta);
  }
}

TEST(EventDeltaTest, ARougherBoundIsNotBelowAFinerOne) {
  FixedRandom random(7);
  for (int i = 0; i < kFewDraws; ++i) {
    const Training training = RandomTraining(random);
    const double epsilon = training.Epsilon();
    const double fine = EventDelta(training.Event(), epsilon).value();
    EXPECT_GE(EventDelta(training.Event(), epsilon, {1e-3}).value(), fine * (1 - 1e-4)) << training.Name();
  }
}

TEST(EventEpsilonTest, SamplingNodesNeverRaisesIt) {
  FixedRandom random(8);
  for (int i = 0; i < kDraws; ++i) {
    const Training training = RandomTraining(random);
    const double rate = UniformReal(random);
    SCOPED_TRACE(absl::StrCat(training.Name(), " q' ", rate));
    const v1::PrivacyEvent sampled = MakeNodeSamplingEvent(rate, training.Event()).value();
    const double epsilon = EventEpsilon(sampled, training.delta).value();
    ExpectAtMost(epsilon, training.Epsilon());
    if (training.delta >= rate) {
      EXPECT_EQ(epsilon, 0);
    }
  }
}

TEST(EventEpsilonTest, SamplingNodesAtRateOneOrZeroIsNoSampling) {
  FixedRandom random(9);
  const Training training = RandomTraining(random);
  const v1::PrivacyEvent all = MakeNodeSamplingEvent(1, training.Event()).value();
  const v1::PrivacyEvent none = MakeNodeSamplingEvent(0, training.Event()).value();
  EXPECT_EQ(EventEpsilon(all, training.delta).value(), training.Epsilon());
  EXPECT_EQ(EventEpsilon(none, training.delta).value(), 0);
  EXPECT_EQ(EventDelta(none, 0).value(), 0);
}

TEST(EventEpsilonTest, ASampledGaussianFollowsTheRuleInBothDirections) {
  FixedRandom random(10);
  for (int i = 0; i < kDraws; ++i) {
    const double rate = 0.05 + 0.9 * UniformReal(random);
    const double mu = LogUniform(random, 0.1, 2);
    const double delta = LogUniform(random, 1e-9, 1e-2);
    SCOPED_TRACE(absl::StrCat("q' ", rate, " mu ", mu, " delta ", delta));
    const v1::PrivacyEvent sampled = MakeNodeSamplingEvent(rate, MakeGaussianEvent(mu, 1, 1).value()).value();
    const double remove = std::log1p(rate * std::expm1(GaussianEpsilon(mu, delta / rate).value()));
    EXPECT_NEAR(EventEpsilon(sampled, delta, Direction::kRemove).value(), remove, 1e-11 * (remove + mu));
    // For additions, delta' and eps' of the threshold x that the result stands for.
    const double add = EventEpsilon(sampled, delta, Direction::kAdd).value();
    const double rest = std::expm1(-add) + rate;
    ASSERT_GT(rest, 0);
    const double x = std::log(rate / rest);
    const double reached = rate * GaussianDelta(mu, std::max(0.0, x)).value() / (rate + (1 - rate) * std::exp(x));
    EXPECT_LE(reached, delta * (1 + 1e-7));
    if (add > 0) {
      EXPECT_GE(reached, delta * (1 - 1e-6));
    }
  }
}

TEST(EventEpsilonTest, ASampleBesideNextToNothingCostsWhatItDoesAlone) {
  FixedRandom random(11);
  const v1::PrivacyEvent tiny = MakeGaussianEvent(1, 1e6, 1).value();
  for (int i = 0; i < kFewDraws; ++i) {
    const double rate = 0.1 + 0.8 * UniformReal(random);
    const double sigma = LogUniform(random, 0.5, 4);
    const double delta = LogUniform(random, 1e-7, 1e-3);
    SCOPED_TRACE(absl::StrCat("q' ", rate, " sigma ", sigma, " delta ", delta));
    const v1::PrivacyEvent sampled = MakeNodeSamplingEvent(rate, MakeGaussianEvent(1, sigma, 1).value()).value();
    const double alone = EventEpsilon(sampled, delta).value();
    const double beside = EventEpsilon(MakeCompositionEvent({sampled, tiny}).value(), delta).value();
    EXPECT_GE(beside, alone * (1 - 1e-10));
    EXPECT_LE(beside, alone * (1 + 1e-3));
  }
}

TEST(EventEpsilonTest, TwoSamplesCostMoreThanOneAndLessThanTheirSum) {
  const v1::PrivacyEvent sampled = MakeNodeSamplingEvent(0.3, MakeGaussianEvent(1, 1, 1).value()).value();
  const v1::PrivacyEvent twice = MakeRepetitionEvent(2, sampled).value();
  for (const double delta : {1e-3, 1e-6}) {
    const double one = EventEpsilon(sampled, delta).value();
    const double two = EventEpsilon(twice, delta).value();
    EXPECT_GT(two, one);
    EXPECT_LE(two, 2 * EventEpsilon(sampled, delta / 2).value());
  }
}

TEST(EventEpsilonTest, AStepOfOneRowIsAGaussianOnASample) {
  // The same pair of distributions, by two routes: composed as a mixture, and by the rule for samples.
  FixedRandom random(12);
  for (int i = 0; i < kDraws; ++i) {
    const double rate = LogUniform(random, 1e-3, 0.9);
    const double sigma = LogUniform(random, 0.6, 5);
    const double delta = rate * LogUniform(random, 1e-10, 0.1);
    SCOPED_TRACE(absl::StrCat("q ", rate, " sigma ", sigma, " delta ", delta));
    const v1::PrivacyEvent step = MakePoissonGaussianEvent(rate, 1, sigma).value();
    const v1::PrivacyEvent sampled = MakeNodeSamplingEvent(rate, MakeGaussianEvent(1, sigma, 1).value()).value();
    for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
      const double exact = EventEpsilon(sampled, delta, direction).value();
      const double composed = EventEpsilon(step, delta, direction).value();
      EXPECT_GE(composed, exact * (1 - 1e-9));
      EXPECT_LE(composed, exact * (1 + 2e-5) + 1e-4 * rate);
    }
  }
}

TEST(EventEpsilonTest, HoldsFarBeyond700) {
  Training training;
  training.rate = 0.5;
  training.sigma = 0.6;
  training.steps = 2000;
  training.delta = 1e-5;
  const double epsilon = training.Epsilon();
  EXPECT_TRUE(std::isfinite(epsilon));
  EXPECT_GT(epsilon, 700);
  EXPECT_LE(epsilon, LargerRenyiEpsilon(training.Event(), training.delta));
  EXPECT_LE(EventDelta(training.Event(), epsilon).value(), training.delta);
}

TEST(EventEpsilonTest, HoldsForTinyDeltas) {
  Training training;
  training.rate = 0.01;
  training.sigma = 1;
  training.steps = 1000;
  double last = 0;
  for (const double delta : {1e-9, 1e-12, 1e-14, 1e-30}) {
    training.delta = delta;
    const double epsilon = training.Epsilon();
    EXPECT_GT(epsilon, last) << delta;
    EXPECT_LE(epsilon, LargerRenyiEpsilon(training.Event(), delta)) << delta;
    EXPECT_LE(EventDelta(training.Event(), epsilon).value(), delta) << delta;
    last = epsilon;
  }
}

TEST(EventEpsilonTest, GaussiansAloneHaveTheClosedForm) {
  FixedRandom random(13);
  for (int i = 0; i < kDraws; ++i) {
    std::vector<v1::PrivacyEvent> parts;
    double mu_squared = 0;
    for (int part = 0; part < 5; ++part) {
      const double ratio = LogUniform(random, 1e-3, 1);
      const int64_t count = LogUniformCount(random, 10);
      parts.push_back(MakeGaussianEvent(ratio, 1, count).value());
      mu_squared += ratio * ratio * static_cast<double>(count);
    }
    // Rows that are always in the batch are Gaussians too.
    parts.push_back(MakeRowMixtureEvent(3, 1, 1, 6).value());
    mu_squared += 0.25;
    const double delta = LogUniform(random, 1e-12, 1e-2);
    const double epsilon = EventEpsilon(MakeCompositionEvent(parts).value(), delta).value();
    const double exact = GaussianEpsilon(std::sqrt(mu_squared), delta).value();
    EXPECT_NEAR(epsilon, exact, 1e-12 * (exact + std::sqrt(mu_squared)));
  }
}

TEST(EventEpsilonTest, OfAGaussianIsThatOfItsMu) {
  const v1::PrivacyEvent event = MakeGaussianEvent(1, 10, 100).value();
  const double epsilon = EventEpsilon(event, 1e-5).value();
  EXPECT_NEAR(epsilon, 4.3771780956812245, 1e-12 * epsilon);
  EXPECT_EQ(EventEpsilon(event, 1e-5, Direction::kAdd).value(), epsilon);
  EXPECT_NEAR(EventDelta(event, 1).value(), 0.1269367375066439458, 1e-12);
}

TEST(EventEpsilonTest, NoiseCalibratedInPlainFloatingPointStillMeetsEpsilon) {
  for (int i = 0; i <= 30; ++i) {
    for (int j = 0; j <= 24; ++j) {
      const double target = std::pow(10, -4 + 0.2371 * i);
      const double delta = j < 20 ? std::pow(10, -0.31 - 1.137 * j) : 1 - std::pow(10, -0.7 * (j - 19));
      const double noise = std::sqrt(97.0) * 0.3 / GaussianMu(target, delta).value();
      const v1::PrivacyEvent event = MakeGaussianEvent(0.3, noise, 97).value();
      EXPECT_LE(EventEpsilon(event, delta).value(), target) << target << " " << delta;
    }
  }
}

TEST(EventEpsilonTest, NothingCostsNothing) {
  const v1::PrivacyEvent nothing = MakeCompositionEvent({}).value();
  EXPECT_EQ(EventEpsilon(nothing, 1e-5).value(), 0);
  EXPECT_EQ(EventDelta(nothing, 0).value(), 0);
  const v1::PrivacyEvent sampled = MakeNodeSamplingEvent(0.5, nothing).value();
  EXPECT_EQ(EventEpsilon(sampled, 1e-5).value(), 0);
  EXPECT_EQ(EventDelta(sampled, 0).value(), 0);
}

TEST(EventEpsilonTest, ABillionStepsAtATinyRateFitIntoMemory) {
  Training training;
  training.rate = 1e-9;
  training.sigma = 1;
  training.steps = kMaxEventCount;
  training.delta = 1e-5;
  // About mu = sqrt(T) q sqrt(e - 1) = 4e-5, of which a delta of 1e-5 leaves next to nothing.
  const double epsilon = training.Epsilon();
  EXPECT_GE(epsilon, 0);
  EXPECT_LE(epsilon, 0.01);
}

TEST(EventEpsilonTest, RowsFarLouderThanTheNoiseFallBackOnRenyi) {
  // Too many atoms for a loss distribution.
  const v1::PrivacyEvent event = MakeRowMixtureEvent(12, 0.5, 1, 0.01).value();
  const double epsilon = EventEpsilon(event, 1e-5).value();
  EXPECT_TRUE(std::isfinite(epsilon));
  EXPECT_LE(epsilon, GaussianEpsilon(1200, 1e-5).value() * 1.01);
  EXPECT_LE(EventDelta(event, epsilon * 1.001).value(), 1e-5);
}

TEST(EventEpsilonTest, RefusesBadInputByName) {
  const v1::PrivacyEvent event = MakePoissonGaussianEvent(0.1, 1, 1).value();
  for (const double delta : {0.0, 1.0, -0.1, 1.5, kNan, kInf}) {
    ExpectInvalidField(EventEpsilon(event, delta).status(), "delta");
    ExpectInvalidField(EventEpsilon(event, delta, Direction::kAdd).status(), "delta");
  }
  for (const double epsilon : {-1e-300, -1.0, kNan, kInf}) {
    ExpectInvalidField(EventDelta(event, epsilon).status(), "epsilon");
  }
  ExpectInvalidField(EventEpsilon(v1::PrivacyEvent(), 0.1).status(), "event");
  ExpectInvalidField(EventDelta(v1::PrivacyEvent(), 1).status(), "event");
  v1::PrivacyEvent bad = event;
  bad.mutable_poisson_gaussian()->set_noise_stddev(-1);
  ExpectInvalidField(EventEpsilon(bad, 0.1).status(), "event.poisson_gaussian.noise_stddev");
  ExpectInvalidField(EventDelta(bad, 1).status(), "event.poisson_gaussian.noise_stddev");
}

}  // namespace
}  // namespace dpar
