#include "core/privacy/event.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/error.h"
#include "core/message_json.h"
#include "core/privacy/flat_event.h"
#include "core/privacy/testing/expectations.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::ExpectInvalidField;

using ::dpar::testing::FixedRandom;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNotPositive[] = {0.0, -1.0, kNan, kInf, -kInf};
constexpr double kNotRates[] = {-1e-300, -0.5, 1.0000001, 2.0, kNan, kInf, -kInf};
constexpr int64_t kNotCounts[] = {0, -1, kMaxEventCount + 1, 1'000'000'000'000};

v1::PrivacyEvent Gaussian() { return MakeGaussianEvent(1, 2, 3).value(); }

v1::PrivacyEvent Nested(int depth) {
  v1::PrivacyEvent event = Gaussian();
  for (int i = 1; i < depth; ++i) {
    v1::PrivacyEvent outer;
    outer.mutable_repetition()->set_count(1);
    *outer.mutable_repetition()->mutable_event() = event;
    event = outer;
  }
  return event;
}

double LogUniform(RandomSource& random, double low, double high) {
  return low * std::pow(high / low, UniformReal(random));
}

double RandomRate(RandomSource& random) {
  switch (UniformBelow(random, 8)) {
    case 0:
      return 0;
    case 1:
      return 1;
    default:
      return UniformReal(random);
  }
}

int64_t RandomCount(RandomSource& random, int64_t largest) {
  return 1 + static_cast<int64_t>(UniformBelow(random, static_cast<uint64_t>(largest)));
}

std::string RandomName(RandomSource& random) {
  constexpr absl::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  std::string name(1 + UniformBelow(random, 32), '-');
  for (char& c : name) {
    c = kCharacters[UniformBelow(random, kCharacters.size())];
  }
  return name;
}

v1::PrivacyEvent RandomMechanism(RandomSource& random) {
  const double sensitivity = LogUniform(random, 1e-6, 1e6);
  const double noise = sensitivity * LogUniform(random, 0.011, 9e8);
  switch (UniformBelow(random, 5)) {
    case 0:
      return MakeGaussianEvent(sensitivity, noise, RandomCount(random, kMaxEventCount)).value();
    case 1:
      return MakeLaplaceEvent(sensitivity, noise).value();
    case 2:
      return MakePoissonGaussianEvent(RandomRate(random), sensitivity, noise).value();
    case 3:
      return MakeRowMixtureEvent(RandomCount(random, kMaxEventRows), RandomRate(random), sensitivity, noise).value();
    default:
      return MakeBoundedRangeEvent(LogUniform(random, kMinPureEpsilon, kMaxPureEpsilon)).value();
  }
}

v1::PrivacyEvent RandomTree(RandomSource& random, int depth) {
  if (depth == 1) {
    return RandomMechanism(random);
  }
  switch (UniformBelow(random, 5)) {
    case 0:
      return RandomMechanism(random);
    case 1: {
      std::vector<v1::PrivacyEvent> parts(UniformBelow(random, 4));
      for (v1::PrivacyEvent& part : parts) {
        part = RandomTree(random, depth - 1);
      }
      return MakeCompositionEvent(parts).value();
    }
    case 2:
      return MakeRepetitionEvent(RandomCount(random, kMaxEventCount), RandomTree(random, depth - 1)).value();
    case 3:
      return MakeStageEvent(RandomName(random), RandomTree(random, depth - 1)).value();
    default: {
      // What is below holds no further sample of a sample.
      const v1::PrivacyEvent inner = MakeRepetitionEvent(2, RandomMechanism(random)).value();
      return MakeNodeSamplingEvent(RandomRate(random), inner).value();
    }
  }
}

TEST(MakeEventTest, KeepsEveryParameter) {
  const v1::PrivacyEvent gaussian = MakeGaussianEvent(0.3, 6, 100).value();
  EXPECT_EQ(gaussian.gaussian().sensitivity(), 0.3);
  EXPECT_EQ(gaussian.gaussian().noise_stddev(), 6);
  EXPECT_EQ(gaussian.gaussian().count(), 100);
  const v1::PrivacyEvent laplace = MakeLaplaceEvent(2, 5).value();
  EXPECT_EQ(laplace.laplace().sensitivity(), 2);
  EXPECT_EQ(laplace.laplace().scale(), 5);
  const v1::PrivacyEvent poisson = MakePoissonGaussianEvent(0.25, 2, 5).value();
  EXPECT_EQ(poisson.poisson_gaussian().sampling_rate(), 0.25);
  EXPECT_EQ(poisson.poisson_gaussian().sensitivity(), 2);
  EXPECT_EQ(poisson.poisson_gaussian().noise_stddev(), 5);
  const v1::PrivacyEvent mixture = MakeRowMixtureEvent(7, 0.25, 2, 5).value();
  EXPECT_EQ(mixture.row_mixture().rows(), 7);
  EXPECT_EQ(mixture.row_mixture().sampling_rate(), 0.25);
  EXPECT_EQ(mixture.row_mixture().sensitivity(), 2);
  EXPECT_EQ(mixture.row_mixture().noise_stddev(), 5);
  EXPECT_EQ(MakeBoundedRangeEvent(0.5).value().bounded_range().range(), 0.5);
  const v1::PrivacyEvent composition = MakeCompositionEvent({gaussian, laplace}).value();
  ASSERT_EQ(composition.composition().events_size(), 2);
  EXPECT_EQ(composition.composition().events(1).laplace().scale(), 5);
  const v1::PrivacyEvent repetition = MakeRepetitionEvent(9, mixture).value();
  EXPECT_EQ(repetition.repetition().count(), 9);
  EXPECT_EQ(repetition.repetition().event().row_mixture().rows(), 7);
  const v1::PrivacyEvent sampling = MakeNodeSamplingEvent(0.5, laplace).value();
  EXPECT_EQ(sampling.node_sampling().sampling_rate(), 0.5);
  EXPECT_TRUE(sampling.node_sampling().event().has_laplace());
  const v1::PrivacyEvent stage = MakeStageEvent("dp-sgd", laplace).value();
  EXPECT_EQ(stage.stage().name(), "dp-sgd");
  EXPECT_TRUE(stage.stage().event().has_laplace());
}

TEST(MakeEventTest, AcceptsTheEndsOfEveryRange) {
  EXPECT_TRUE(MakeGaussianEvent(1e150, 1e-150, kMaxEventCount).ok());
  EXPECT_TRUE(MakeGaussianEvent(5e-324, 5e-324, 1).ok());
  EXPECT_TRUE(MakeLaplaceEvent(1, 1e-3).ok());
  EXPECT_TRUE(MakeLaplaceEvent(1, 9.99e8).ok());
  EXPECT_TRUE(MakeBoundedRangeEvent(1e-9).ok());
  EXPECT_TRUE(MakeBoundedRangeEvent(1e3).ok());
  EXPECT_TRUE(MakeRepetitionEvent(1, Gaussian()).ok());
  EXPECT_TRUE(MakeRepetitionEvent(kMaxEventCount, Gaussian()).ok());
  for (const double rate : {0.0, 1.0}) {
    EXPECT_TRUE(MakeNodeSamplingEvent(rate, Gaussian()).ok());
    for (const double noise : {0.01, 1e9}) {
      EXPECT_TRUE(MakePoissonGaussianEvent(rate, 1, noise).ok());
      EXPECT_TRUE(MakeRowMixtureEvent(1, rate, 1, noise).ok());
      EXPECT_TRUE(MakeRowMixtureEvent(kMaxEventRows, rate, 1, noise).ok());
    }
  }
}

TEST(MakeEventTest, AnEmptyCompositionIsAnEvent) {
  const v1::PrivacyEvent nothing = MakeCompositionEvent({}).value();
  EXPECT_TRUE(nothing.has_composition());
  EXPECT_TRUE(ValidateEvent(nothing).ok());
  EXPECT_TRUE(Flatten(nothing).value().IsGaussian());
  EXPECT_EQ(Flatten(nothing).value().gaussian_mu, 0);
}

TEST(MakeEventTest, RefusesSensitivitiesAndNoiseThatAreNotPositive) {
  for (const double bad : kNotPositive) {
    SCOPED_TRACE(bad);
    ExpectInvalidField(MakeGaussianEvent(bad, 1, 1).status(), "event.gaussian.sensitivity");
    ExpectInvalidField(MakeGaussianEvent(1, bad, 1).status(), "event.gaussian.noise_stddev");
    ExpectInvalidField(MakeLaplaceEvent(bad, 1).status(), "event.laplace.sensitivity");
    ExpectInvalidField(MakeLaplaceEvent(1, bad).status(), "event.laplace.scale");
    ExpectInvalidField(MakePoissonGaussianEvent(0.5, bad, 1).status(), "event.poisson_gaussian.sensitivity");
    ExpectInvalidField(MakePoissonGaussianEvent(0.5, 1, bad).status(), "event.poisson_gaussian.noise_stddev");
    ExpectInvalidField(MakeRowMixtureEvent(2, 0.5, bad, 1).status(), "event.row_mixture.sensitivity");
    ExpectInvalidField(MakeRowMixtureEvent(2, 0.5, 1, bad).status(), "event.row_mixture.noise_stddev");
    ExpectInvalidField(MakeBoundedRangeEvent(bad).status(), "event.bounded_range.range");
  }
}

TEST(MakeEventTest, RefusesRatesThatAreNotProbabilities) {
  for (const double rate : kNotRates) {
    SCOPED_TRACE(rate);
    ExpectInvalidField(MakePoissonGaussianEvent(rate, 1, 1).status(), "event.poisson_gaussian.sampling_rate");
    ExpectInvalidField(MakeRowMixtureEvent(2, rate, 1, 1).status(), "event.row_mixture.sampling_rate");
    ExpectInvalidField(MakeNodeSamplingEvent(rate, Gaussian()).status(), "event.node_sampling.sampling_rate");
  }
}

TEST(MakeEventTest, RefusesCountsAndRowsOutOfRange) {
  for (const int64_t count : kNotCounts) {
    SCOPED_TRACE(count);
    ExpectInvalidField(MakeGaussianEvent(1, 1, count).status(), "event.gaussian.count");
    ExpectInvalidField(MakeRepetitionEvent(count, Gaussian()).status(), "event.repetition.count");
  }
  for (const int64_t rows : {int64_t{0}, int64_t{-1}, kMaxEventRows + 1}) {
    ExpectInvalidField(MakeRowMixtureEvent(rows, 0.5, 1, 1).status(), "event.row_mixture.rows");
  }
}

TEST(MakeEventTest, RefusesNamesOfStagesThatAreNotShortAndPlain) {
  EXPECT_TRUE(MakeStageEvent("a", Gaussian()).ok());
  EXPECT_TRUE(MakeStageEvent("-0-9-az", Gaussian()).ok());
  EXPECT_TRUE(MakeStageEvent(std::string(32, 'z'), Gaussian()).ok());
  for (const std::string& name : {std::string(), std::string(33, 'z'), std::string("DP-SGD"), std::string("dp_sgd"),
                                  std::string("dp sgd"), std::string("a\0", 2), std::string("\xc3\xa9")}) {
    SCOPED_TRACE(name);
    ExpectInvalidField(MakeStageEvent(name, Gaussian()).status(), "event.stage.name");
  }
  v1::PrivacyEvent nameless;
  *nameless.mutable_stage()->mutable_event() = Gaussian();
  ExpectInvalidField(MakeCompositionEvent({Gaussian(), nameless}).status(), "event.composition.events[1].stage.name");
}

TEST(MakeEventTest, RefusesNoiseTooFarFromTheSensitivity) {
  for (const double noise : {0.0099, 1.0001e9}) {
    ExpectInvalidField(MakePoissonGaussianEvent(0.5, 1, noise).status(), "event.poisson_gaussian.noise_stddev");
    ExpectInvalidField(MakeRowMixtureEvent(2, 0.5, 1, noise).status(), "event.row_mixture.noise_stddev");
    ExpectInvalidField(MakeRowMixtureEvent(2, 0.5, 1e6, noise * 1e6).status(), "event.row_mixture.noise_stddev");
  }
  for (const double scale : {0.00099, 1.0001e9}) {
    ExpectInvalidField(MakeLaplaceEvent(1, scale).status(), "event.laplace.scale");
  }
  for (const double range : {0.999e-9, 1000.1}) {
    ExpectInvalidField(MakeBoundedRangeEvent(range).status(), "event.bounded_range.range");
  }
}

TEST(MakeEventTest, RefusesRatiosThatNoDoubleHolds) {
  ExpectInvalidField(MakeGaussianEvent(1e300, 1e-300, 1).status(), "event.gaussian.noise_stddev");
  ExpectInvalidField(MakeGaussianEvent(1e-300, 1e300, 1).status(), "event.gaussian.noise_stddev");
  ExpectInvalidField(MakeGaussianEvent(1e154, 1e-154, kMaxEventCount).status(), "event.gaussian.noise_stddev");
  ExpectInvalidField(MakePoissonGaussianEvent(0.5, 1e300, 1e-300).status(), "event.poisson_gaussian.noise_stddev");
}

TEST(MakeEventTest, SaysWhatIsAllowed) {
  const std::string rate(MakePoissonGaussianEvent(1.5, 1, 1).status().message());
  EXPECT_EQ(rate, "event.poisson_gaussian.sampling_rate must be from 0 to 1, got 1.5");
  const std::string rows(MakeRowMixtureEvent(10001, 0.5, 1, 1).status().message());
  EXPECT_EQ(rows, "event.row_mixture.rows must be from 1 to 10000, got 10001");
  const std::string noise(MakeRowMixtureEvent(1, 0.5, 4, 0.02).status().message());
  EXPECT_EQ(noise, "event.row_mixture.noise_stddev must be from 0.01 to 1e+09 times the sensitivity, got 0.005 times");
  const std::string name(MakeStageEvent("", Gaussian()).status().message());
  EXPECT_EQ(name, "event.stage.name must be 1 to 32 characters of a-z, 0-9 and -");
}

TEST(ValidateEventTest, RefusesAnEventThatHoldsNothing) {
  const v1::PrivacyEvent empty;
  ExpectInvalidField(ValidateEvent(empty), "event");
  ExpectInvalidField(MakeRepetitionEvent(1, empty).status(), "event");
  ExpectInvalidField(MakeNodeSamplingEvent(0.5, empty).status(), "event");
  ExpectInvalidField(MakeStageEvent("a", empty).status(), "event");
  ExpectInvalidField(MakeCompositionEvent({Gaussian(), empty}).status(), "event");
}

TEST(ValidateEventTest, SaysWhereInTheTreeTheFaultIs) {
  v1::PrivacyEvent bad = Gaussian();
  bad.mutable_gaussian()->set_count(0);
  v1::PrivacyEvent repetition;
  repetition.mutable_repetition()->set_count(2);
  *repetition.mutable_repetition()->mutable_event() = bad;
  ExpectInvalidField(MakeCompositionEvent({Gaussian(), repetition}).status(),
                     "event.composition.events[1].repetition.event.gaussian.count");
  ExpectInvalidField(MakeNodeSamplingEvent(0.5, repetition).status(),
                     "event.node_sampling.event.repetition.event.gaussian.count");
  ExpectInvalidField(MakeStageEvent("a", bad).status(), "event.stage.event.gaussian.count");
}

TEST(ValidateEventTest, ATreeIsAtMostSixteenDeep) {
  EXPECT_TRUE(ValidateEvent(Nested(16)).ok());
  ExpectInvalidField(ValidateEvent(Nested(17)), "event");
  ExpectInvalidField(ValidateEvent(Nested(60)), "event");
  ExpectInvalidField(MakeNodeSamplingEvent(0.5, Nested(16)).status(), "event");
  EXPECT_TRUE(MakeStageEvent("a", Nested(15)).ok());
  ExpectInvalidField(MakeStageEvent("a", Nested(16)).status(), "event");
}

TEST(ValidateEventTest, ATreeHoldsAtMost4096Events) {
  EXPECT_TRUE(MakeCompositionEvent(std::vector<v1::PrivacyEvent>(4095, Gaussian())).ok());
  ExpectInvalidField(MakeCompositionEvent(std::vector<v1::PrivacyEvent>(4096, Gaussian())).status(), "event");
  // A stage is an event too.
  const v1::PrivacyEvent stage = MakeStageEvent("a", Gaussian()).value();
  EXPECT_TRUE(MakeCompositionEvent(std::vector<v1::PrivacyEvent>(2047, stage)).ok());
  ExpectInvalidField(MakeCompositionEvent(std::vector<v1::PrivacyEvent>(2048, stage)).status(), "event");
  // Also when no single list is long.
  const v1::PrivacyEvent part = MakeCompositionEvent(std::vector<v1::PrivacyEvent>(1000, Gaussian())).value();
  ExpectInvalidField(MakeCompositionEvent(std::vector<v1::PrivacyEvent>(5, part)).status(), "event");
}

TEST(FlattenTest, RefusesAMechanismRepeatedMoreThan1e12Times) {
  const v1::PrivacyEvent step = MakePoissonGaussianEvent(0.5, 1, 1).value();
  const v1::PrivacyEvent billion = MakeRepetitionEvent(kMaxEventCount, step).value();
  EXPECT_TRUE(Flatten(MakeRepetitionEvent(1000, billion).value()).ok());
  ExpectInvalidField(Flatten(MakeRepetitionEvent(1001, billion).value()).status(), "event");
  const v1::PrivacyEvent most = MakeRepetitionEvent(1000, billion).value();
  ExpectInvalidField(Flatten(MakeCompositionEvent({most, step}).value()).status(), "event");
}

TEST(FlattenTest, MergesGaussiansAndCountsEqualMechanisms) {
  const v1::PrivacyEvent step = MakeRowMixtureEvent(2, 0.25, 3, 6).value();
  const v1::PrivacyEvent same = MakeRowMixtureEvent(2, 0.25, 1, 2).value();
  const v1::PrivacyEvent all = MakePoissonGaussianEvent(1, 1, 2).value();
  const v1::PrivacyEvent none = MakePoissonGaussianEvent(0, 1, 2).value();
  const v1::PrivacyEvent steps = MakeRepetitionEvent(10, step).value();
  const v1::PrivacyEvent laplace = MakeLaplaceEvent(1, 4).value();
  const v1::PrivacyEvent selection = MakeBoundedRangeEvent(0.5).value();
  const v1::PrivacyEvent skipped = MakeNodeSamplingEvent(0, selection).value();
  const v1::PrivacyEvent kept = MakeNodeSamplingEvent(1, selection).value();
  const v1::PrivacyEvent sampled = MakeNodeSamplingEvent(0.5, selection).value();
  const FlatEvent flat =
      Flatten(MakeCompositionEvent({steps, same, all, none, laplace, laplace, skipped, kept, sampled}).value()).value();
  ASSERT_EQ(flat.mixtures.size(), 1U);
  EXPECT_EQ(flat.mixtures.begin()->first, (RowMixture{2, 0.25, 2}));
  EXPECT_EQ(flat.mixtures.begin()->second, 11);
  EXPECT_GE(flat.gaussian_mu, 0.5);
  EXPECT_LE(flat.gaussian_mu, 0.5 * (1 + 2e-15));
  ASSERT_EQ(flat.laplaces.size(), 1U);
  EXPECT_EQ(flat.laplaces.at(0.25), 2);
  ASSERT_EQ(flat.selections.size(), 1U);
  EXPECT_EQ(flat.selections.at(0.5), 1);
  ASSERT_EQ(flat.sampled.size(), 1U);
  EXPECT_EQ(flat.sampled.front().sampling_rate, 0.5);
  EXPECT_EQ(flat.sampled.front().count, 1);
  EXPECT_EQ(flat.sampled.front().inner.selections.at(0.5), 1);
}

TEST(FlattenTest, SeesThroughStages) {
  const v1::PrivacyEvent step = MakeRowMixtureEvent(2, 0.25, 3, 6).value();
  const v1::PrivacyEvent steps = MakeRepetitionEvent(10, MakeStageEvent("step", step).value()).value();
  const v1::PrivacyEvent sampled =
      MakeNodeSamplingEvent(0.5, MakeStageEvent("inner", MakeBoundedRangeEvent(0.5).value()).value()).value();
  const FlatEvent flat =
      Flatten(MakeStageEvent("all", MakeCompositionEvent({steps, sampled, Gaussian()}).value()).value()).value();
  EXPECT_EQ(flat.mixtures.at(RowMixture{2, 0.25, 2}), 10);
  EXPECT_EQ(flat.gaussian_mu, Flatten(Gaussian()).value().gaussian_mu);
  ASSERT_EQ(flat.sampled.size(), 1U);
  EXPECT_EQ(flat.sampled.front().inner.selections.at(0.5), 1);
}

TEST(FlattenTest, MuIsTheRootOfCountTimesSensitivityOverNoiseRoundedUp) {
  const double mu = Flatten(MakeGaussianEvent(0.3, 6, 100).value()).value().gaussian_mu;
  EXPECT_GE(mu, 0.5);
  EXPECT_LE(mu, 0.5 * (1 + 2e-15));
  // Rows that are always in the batch move the sum together.
  const v1::PrivacyEvent rows = MakeRowMixtureEvent(3, 1, 1, 12).value();
  const double all = Flatten(MakeRepetitionEvent(16, rows).value()).value().gaussian_mu;
  EXPECT_GE(all, 1);
  EXPECT_LE(all, 1 + 2e-15);
  // 3-4-5.
  const v1::PrivacyEvent three = MakeGaussianEvent(3, 10, 1).value();
  const v1::PrivacyEvent four = MakeGaussianEvent(4, 10, 1).value();
  const double five = Flatten(MakeCompositionEvent({three, four}).value()).value().gaussian_mu;
  EXPECT_GE(five, 0.5);
  EXPECT_LE(five, 0.5 * (1 + 4e-15));
}

v1::PrivacyEvent ReadBack(const v1::PrivacyEvent& event) {
  v1::PrivacyEvent read;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(MessageToJson(event).dump(), &read).ok());
  return read;
}

TEST(EventJsonTest, RandomTreesComeBackAsTheSameBits) {
  FixedRandom random(2024);
  for (int i = 0; i < 200; ++i) {
    const v1::PrivacyEvent event = RandomTree(random, 1 + i % 6);
    EXPECT_EQ(ReadBack(event).SerializeAsString(), event.SerializeAsString()) << event.DebugString();
  }
  EXPECT_EQ(ReadBack(Nested(16)).SerializeAsString(), Nested(16).SerializeAsString());
}

TEST(EventJsonTest, NumbersAtTheEdgeOfDoublesComeBackAsTheSameBits) {
  for (const double value : {5e-324, 2.2250738585072014e-308, 0.1, 0.1 + 0.2, 1.7976931348623157e308}) {
    EXPECT_EQ(ReadBack(MakeGaussianEvent(value, value, 1).value()).gaussian().sensitivity(), value);
  }
}

}  // namespace
}  // namespace dpar
