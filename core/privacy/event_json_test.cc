// Events as JSON.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/error.h"
#include "core/privacy/event.h"
#include "core/privacy/testing/expectations.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::ExpectInvalidField;

using Json = nlohmann::ordered_json;
using ::dpar::testing::FixedRandom;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

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

TEST(EventJsonTest, HasTheNamesOfTheProtocolBuffer) {
  EXPECT_EQ(EventToJson(MakeGaussianEvent(0.3, 6, 100).value()).dump(),
            R"({"gaussian":{"sensitivity":0.3,"noise_stddev":6.0,"count":100}})");
  EXPECT_EQ(EventToJson(MakePoissonGaussianEvent(0, 1, 2).value()).dump(),
            R"({"poisson_gaussian":{"sampling_rate":0.0,"sensitivity":1.0,"noise_stddev":2.0}})");
  EXPECT_EQ(EventToJson(MakeCompositionEvent({}).value()).dump(), R"({"composition":{"events":[]}})");
  const v1::PrivacyEvent selection = MakeBoundedRangeEvent(0.5).value();
  const v1::PrivacyEvent sampled = MakeNodeSamplingEvent(0.25, MakeRepetitionEvent(3, selection).value()).value();
  EXPECT_EQ(EventToJson(sampled).dump(),
            R"({"node_sampling":{"sampling_rate":0.25,"event":{"repetition":{"count":3,"event":)"
            R"({"bounded_range":{"range":0.5}}}}}})");
  EXPECT_EQ(EventToJson(MakeStageEvent("dp-appr", selection).value()).dump(),
            R"({"stage":{"name":"dp-appr","event":{"bounded_range":{"range":0.5}}}})");
}

TEST(EventJsonTest, RandomTreesComeBackAsTheSameBits) {
  FixedRandom random(2024);
  for (int i = 0; i < 200; ++i) {
    const v1::PrivacyEvent event = RandomTree(random, 1 + i % 6);
    const Json json = EventToJson(event);
    const std::string bytes = event.SerializeAsString();
    EXPECT_EQ(EventFromJson(json).value().SerializeAsString(), bytes) << json;
    const Json parsed = Json::parse(json.dump(), nullptr, /*allow_exceptions=*/false);
    EXPECT_EQ(EventFromJson(parsed).value().SerializeAsString(), bytes) << json;
  }
}

TEST(EventJsonTest, RandomTreesSurviveTheProtocolBuffer) {
  FixedRandom random(2025);
  for (int i = 0; i < 200; ++i) {
    const v1::PrivacyEvent event = RandomTree(random, 1 + i % 6);
    v1::PrivacyEvent parsed;
    ASSERT_TRUE(parsed.ParseFromString(event.SerializeAsString()));
    EXPECT_TRUE(ValidateEvent(parsed).ok());
    EXPECT_EQ(EventToJson(parsed).dump(), EventToJson(event).dump());
    EXPECT_EQ(parsed.SerializeAsString(), event.SerializeAsString());
  }
}

TEST(EventJsonTest, NumbersAtTheEdgeOfDoublesComeBackAsTheSameBits) {
  for (const double value : {5e-324, 2.2250738585072014e-308, 0.1, 0.1 + 0.2, 1.7976931348623157e308}) {
    const v1::PrivacyEvent event = MakeGaussianEvent(value, value, 1).value();
    const Json parsed = Json::parse(EventToJson(event).dump(), nullptr, /*allow_exceptions=*/false);
    EXPECT_EQ(EventFromJson(parsed).value().gaussian().sensitivity(), value);
  }
}

TEST(EventFromJsonTest, TakesWholeNumbersForReals) {
  const Json json = Json::parse(R"({"gaussian":{"noise_stddev":2,"sensitivity":1,"count":3}})", nullptr, false);
  EXPECT_EQ(EventFromJson(json).value().SerializeAsString(), Gaussian().SerializeAsString());
}

TEST(EventFromJsonTest, RefusesWhatIsNotExactlyAnEvent) {
  const struct {
    const char* json;
    const char* field;
  } kCases[] = {
      // Not a choice of one kind.
      {R"({})", "event"},
      {R"([])", "event"},
      {R"(null)", "event"},
      {R"(3)", "event"},
      {R"("gaussian")", "event"},
      {R"([{"bounded_range":{"range":1}}])", "event"},
      {R"({"bounded_range":{"range":1},"laplace":{"sensitivity":1,"scale":1}})", "event"},
      // Unknown keys.
      {R"({"gauss":{"sensitivity":1,"noise_stddev":1,"count":1}})", "event.gauss"},
      {R"({"Gaussian":{"sensitivity":1,"noise_stddev":1,"count":1}})", "event.Gaussian"},
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":1,"colour":1}})", "event.gaussian.colour"},
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":1,"count":1,"colour":1}})", "event.gaussian"},
      // Missing keys.
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":1}})", "event.gaussian"},
      {R"({"bounded_range":{}})", "event.bounded_range"},
      {R"({"composition":{}})", "event.composition"},
      {R"({"repetition":{"count":2}})", "event.repetition"},
      // Text, truth values and nothing instead of numbers.
      {R"({"gaussian":{"sensitivity":"1","noise_stddev":1,"count":1}})", "event.gaussian.sensitivity"},
      {R"({"gaussian":{"sensitivity":true,"noise_stddev":1,"count":1}})", "event.gaussian.sensitivity"},
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":null,"count":1}})", "event.gaussian.noise_stddev"},
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":[1],"count":1}})", "event.gaussian.noise_stddev"},
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":1,"count":"1"}})", "event.gaussian.count"},
      // Counts that are not whole numbers of 64 bits.
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":1,"count":1.5}})", "event.gaussian.count"},
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":1,"count":1.0}})", "event.gaussian.count"},
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":1,"count":1e2}})", "event.gaussian.count"},
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":1,"count":9223372036854775808}})", "event.gaussian.count"},
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":1,"count":18446744073709551616}})", "event.gaussian.count"},
      {R"({"row_mixture":{"rows":1.5,"sampling_rate":0.5,"sensitivity":1,"noise_stddev":1}})",
       "event.row_mixture.rows"},
      // Stages.
      {R"({"stage":{"event":{"bounded_range":{"range":1}}}})", "event.stage"},
      {R"({"stage":{"name":7,"event":{"bounded_range":{"range":1}}}})", "event.stage.name"},
      {R"({"stage":{"name":null,"event":{"bounded_range":{"range":1}}}})", "event.stage.name"},
      {R"({"stage":{"name":"","event":{"bounded_range":{"range":1}}}})", "event.stage.name"},
      {R"({"stage":{"name":"A","event":{"bounded_range":{"range":1}}}})", "event.stage.name"},
      {R"({"stage":{"name":"a","event":{"bounded_range":{"range":0}}}})", "event.stage.event.bounded_range.range"},
      // Lists and nulls where objects belong, and the other way round.
      {R"({"gaussian":null})", "event.gaussian"},
      {R"({"gaussian":[1,1,1]})", "event.gaussian"},
      {R"({"composition":[]})", "event.composition"},
      {R"({"composition":{"events":{}}})", "event.composition.events"},
      {R"({"composition":{"events":null}})", "event.composition.events"},
      {R"({"composition":{"events":[null]}})", "event.composition.events[0]"},
      {R"({"composition":{"events":[{"bounded_range":{"range":1}},{}]}})", "event.composition.events[1]"},
      {R"({"repetition":{"count":2,"event":null}})", "event.repetition.event"},
      {R"({"repetition":{"count":2,"event":[{"bounded_range":{"range":1}}]}})", "event.repetition.event"},
      // Events that are not valid.
      {R"({"gaussian":{"sensitivity":-1,"noise_stddev":1,"count":1}})", "event.gaussian.sensitivity"},
      {R"({"gaussian":{"sensitivity":1,"noise_stddev":1,"count":-9223372036854775808}})", "event.gaussian.count"},
      {R"({"node_sampling":{"sampling_rate":2,"event":{"bounded_range":{"range":1}}}})",
       "event.node_sampling.sampling_rate"},
      {R"({"composition":{"events":[{"bounded_range":{"range":1}},{"bounded_range":{"range":0}}]}})",
       "event.composition.events[1].bounded_range.range"},
  };
  for (const auto& bad : kCases) {
    SCOPED_TRACE(bad.json);
    const Json json = Json::parse(bad.json, nullptr, /*allow_exceptions=*/false);
    ASSERT_FALSE(json.is_discarded());
    ExpectInvalidField(EventFromJson(json).status(), bad.field);
  }
}

TEST(EventFromJsonTest, RefusesNumbersThatJsonTextCannotHold) {
  Json json = EventToJson(Gaussian());
  for (const double bad : {kNan, kInf, -kInf}) {
    json["gaussian"]["sensitivity"] = bad;
    ExpectInvalidField(EventFromJson(json).status(), "event.gaussian.sensitivity");
  }
  const Json discarded = Json::parse("{", nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(discarded.is_discarded());
  ExpectInvalidField(EventFromJson(discarded).status(), "event");
}

TEST(EventFromJsonTest, RefusesTreesThatAreTooDeepOrTooLarge) {
  EXPECT_EQ(EventFromJson(EventToJson(Nested(16))).value().SerializeAsString(), Nested(16).SerializeAsString());
  std::string path = "event";
  for (int i = 0; i < 16; ++i) {
    path += ".repetition.event";
  }
  ExpectInvalidField(EventFromJson(EventToJson(Nested(17))).status(), path);
  ExpectInvalidField(EventFromJson(EventToJson(Nested(60))).status(), path);

  const Json one = EventToJson(MakeBoundedRangeEvent(1).value());
  Json many;
  many["composition"]["events"] = Json::array();
  for (int i = 0; i < 4096; ++i) {
    many["composition"]["events"].push_back(one);
  }
  ExpectInvalidField(EventFromJson(many).status(), "event");
  many["composition"]["events"].push_back(one);
  ExpectInvalidField(EventFromJson(many).status(), "event.composition.events");
}

}  // namespace
}  // namespace dpar
