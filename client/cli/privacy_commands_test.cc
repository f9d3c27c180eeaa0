#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/testing/command_run.h"

namespace dpar {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using testing::RunCommand;
using ::testing::StartsWith;

using Line = std::vector<std::string>;

Line operator+(Line line, const Line& more) {
  line.insert(line.end(), more.begin(), more.end());
  return line;
}

// The line with another value for one of its flags, or with the flag added.
Line With(Line line, const std::string& flag, const std::string& value) {
  const auto found = std::find(line.begin(), line.end(), flag);
  if (found == line.end()) {
    return line + Line{flag, value};
  }
  *(found + 1) = value;
  return line;
}

Line Without(Line line, const std::string& flag) {
  const auto found = std::find(line.begin(), line.end(), flag);
  line.erase(found, found + 2);
  return line;
}

std::string Text(const Line& line) {
  std::string text;
  for (const std::string& word : line) {
    text.append(word).append(" ");
  }
  return text;
}

Line EpsilonLine(const Line& mechanism) { return Line{"privacy", "epsilon", "--mechanism"} + mechanism; }

Line Gaussian() { return {"gaussian", "--noise-multiplier", "1"}; }
Line Laplace() { return {"laplace", "--scale", "2", "--count", "10"}; }
Line BoundedRange() { return {"bounded-range", "--range", "0.1", "--count", "140"}; }
Line PoissonGaussian() {
  return {"poisson-gaussian", "--sampling-rate", "0.01", "--noise-multiplier", "1", "--steps", "5000"};
}
Line RowMixture() {
  return {"row-mixture", "--rows", "4", "--sampling-rate", "0.05", "--noise-multiplier", "5", "--steps", "1000"};
}

Json RunJson(const Line& line) {
  const CommandRun run = RunCommand(line + Line{"--json"});
  EXPECT_EQ(run.exit_code, 0) << Text(line) << run.err;
  return run.json();
}

double EpsilonOf(const Line& mechanism, const std::string& delta) {
  return RunJson(EpsilonLine(mechanism) + Line{"--delta", delta}).value("epsilon", -1.0);
}

void ExpectUsageError(const Line& line, const std::string& message) {
  const CommandRun run = RunCommand(line);
  EXPECT_EQ(run.exit_code, 2) << Text(line);
  EXPECT_EQ(run.out, "") << Text(line);
  EXPECT_THAT(run.err, HasSubstr(message)) << Text(line);
}

TEST(PrivacyEpsilonTest, AGaussianHasItsExactEpsilon) {
  EXPECT_NEAR(EpsilonOf(Gaussian(), "1e-5"), 4.377178096, 1e-8);
  const double ten = EpsilonOf(Gaussian() + Line{"--steps", "10"}, "1e-5");
  EXPECT_GT(ten, 4.4);
  EXPECT_EQ(EpsilonOf(Gaussian() + Line{"--count", "10"}, "1e-5"), ten);
}

TEST(PrivacyEpsilonTest, OneLaplaceMechanismHasItsExactEpsilon) {
  // 1/b + 2 ln(1 - delta) = 0.5 + 2 ln(0.99).
  constexpr double kExact = 0.5 - 0.020100671707002873;
  const double epsilon = EpsilonOf({"laplace", "--scale", "2", "--count", "1"}, "0.01");
  EXPECT_GE(epsilon, kExact - 1e-12);
  EXPECT_LE(epsilon, kExact + 1e-5);
}

TEST(PrivacyEpsilonTest, RepeatedLaplaceMechanismsCostLessThanTheirSum) {
  const double epsilon = EpsilonOf(Laplace(), "1e-5");
  EXPECT_GT(epsilon, 0.5);
  EXPECT_LT(epsilon, 5);
}

TEST(PrivacyEpsilonTest, SelectionsCostWhatTheirRangeAllows) {
  const double epsilon = EpsilonOf(BoundedRange(), "0.002");
  EXPECT_GT(epsilon, 0.1);
  EXPECT_LE(epsilon, 1.7476392725165053 * (1 + 1e-9));
}

TEST(PrivacyEpsilonTest, APoissonSampledGaussianHasItsKnownEpsilon) {
  const double epsilon = EpsilonOf(PoissonGaussian(), "1e-5");
  EXPECT_GT(epsilon, 4.2018);
  EXPECT_LT(epsilon, 4.2019);
}

TEST(PrivacyEpsilonTest, ARowMixtureHasItsKnownEpsilon) {
  const double epsilon = EpsilonOf(RowMixture(), "1e-5");
  EXPECT_GT(epsilon, 5.9038);
  EXPECT_LT(epsilon, 5.9041);
}

TEST(PrivacyEpsilonTest, SamplingNodesReducesEpsilonOfEveryMechanism) {
  for (const Line& mechanism : {Gaussian(), Laplace(), BoundedRange(), With(PoissonGaussian(), "--steps", "100"),
                                With(RowMixture(), "--steps", "100")}) {
    const double sampled = EpsilonOf(mechanism + Line{"--node-sampling-rate", "0.25"}, "1e-5");
    EXPECT_GT(sampled, 0) << Text(mechanism);
    EXPECT_LT(sampled, EpsilonOf(mechanism, "1e-5")) << Text(mechanism);
  }
}

TEST(PrivacyEpsilonTest, JsonHasBothDirectionsAndTheEvent) {
  const Json json = RunJson(EpsilonLine(With(PoissonGaussian(), "--steps", "10")) +
                            Line{"--node-sampling-rate", "0.5", "--delta", "1e-5"});
  EXPECT_EQ(json["command"], "privacy epsilon");
  EXPECT_EQ(json["delta"], 1e-5);
  EXPECT_EQ(json["accountant"], "SOUND");
  const double epsilon = json["epsilon"].get<double>();
  EXPECT_GE(epsilon, json["epsilon_remove"].get<double>());
  EXPECT_NEAR(epsilon, std::max(json["epsilon_remove"].get<double>(), json["epsilon_add"].get<double>()), 1e-6);
  EXPECT_EQ(json["event"]["node_sampling"]["sampling_rate"], 0.5);
  const Json& repetition = json["event"]["node_sampling"]["event"]["repetition"];
  EXPECT_EQ(repetition["count"], 10);
  EXPECT_EQ(repetition["event"]["poisson_gaussian"]["sampling_rate"], 0.01);
  EXPECT_EQ(repetition["event"]["poisson_gaussian"]["noise_stddev"], 1.0);
}

TEST(PrivacyEpsilonTest, TextSaysWhatItIsAboutAndNamesBothDirections) {
  const CommandRun run = RunCommand(EpsilonLine(PoissonGaussian()) + Line{"--delta", "1e-5"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("epsilon 4.201"));
  EXPECT_THAT(run.out, HasSubstr(" at delta 1e-05\n"
                                 "5,000 steps of a Poisson-sampled Gaussian, rate 0.01, noise multiplier 1\n"
                                 "removing a node: epsilon "));
  EXPECT_THAT(run.out, HasSubstr("; adding one: epsilon "));
  const CommandRun rows = RunCommand(EpsilonLine(With(RowMixture(), "--steps", "1")) +
                                     Line{"--node-sampling-rate", "0.5", "--delta", "1e-5"});
  EXPECT_THAT(rows.out, HasSubstr("\n1 step of a row mixture, 4 rows, rate 0.05, noise multiplier 5\n"
                                  "on a secret sample of the nodes, rate 0.5\n"));
}

TEST(PrivacyEpsilonTest, TheEpsilonShownIsNotRoundedDown) {
  for (const std::string noise : {"0.7", "1.1", "1.3", "2.3", "3.7", "5.9", "11", "47", "310"}) {
    const Line line = EpsilonLine({"gaussian", "--noise-multiplier", noise}) + Line{"--delta", "1e-5"};
    const CommandRun text = RunCommand(line);
    ASSERT_THAT(text.out, StartsWith("epsilon "));
    const double shown = std::stod(text.out.substr(std::string("epsilon ").size()));
    const double epsilon = RunJson(line)["epsilon"].get<double>();
    EXPECT_GE(shown, epsilon) << noise;
    EXPECT_LE(shown, epsilon * (1 + 1e-4)) << noise;
  }
}

TEST(PrivacyDeltaTest, DeltaAtAnEpsilonIsAtMostTheDeltaThatTheEpsilonWasFor) {
  for (const Line& mechanism : {Gaussian(), Laplace(), BoundedRange(), With(PoissonGaussian(), "--steps", "100"),
                                With(RowMixture(), "--steps", "100")}) {
    const std::string epsilon = RunJson(EpsilonLine(mechanism) + Line{"--delta", "1e-5"})["epsilon"].dump();
    const Json json = RunJson(Line{"privacy", "delta", "--mechanism"} + mechanism + Line{"--epsilon", epsilon});
    EXPECT_GT(json["delta"].get<double>(), 1e-6) << Text(mechanism);
    EXPECT_LE(json["delta"].get<double>(), 1e-5) << Text(mechanism);
    EXPECT_EQ(json["epsilon"].dump(), epsilon);
    EXPECT_EQ(json["accountant"], "SOUND");
    EXPECT_TRUE(json["event"].is_object());
  }
}

TEST(PrivacyDeltaTest, AGaussianAtEpsilonZeroHasItsTotalVariation) {
  const Line line = Line{"privacy", "delta", "--mechanism"} + Gaussian() + Line{"--epsilon", "0"};
  // 2 Phi(1/2) - 1.
  EXPECT_NEAR(RunJson(line)["delta"].get<double>(), 0.38292492254802624, 1e-9);
  EXPECT_THAT(RunCommand(line).out, StartsWith("delta 0.382925 at epsilon 0\n1 Gaussian mechanism, noise "));
}

Line CalibrateLine(const Line& mechanism, const std::string& epsilon, const std::string& delta) {
  return Line{"privacy", "calibrate", "--mechanism"} + mechanism + Line{"--epsilon", epsilon, "--delta", delta};
}

struct CalibrateCase {
  Line mechanism;
  std::string noise_flag;
  std::string noise_field;
};

TEST(PrivacyCalibrateTest, TheNoiseCostsTheTargetOrHardlyLess) {
  const std::vector<CalibrateCase> cases = {
      {Gaussian(), "--noise-multiplier", "noise_multiplier"},
      {Laplace(), "--scale", "scale"},
      {BoundedRange(), "--range", "range"},
      {With(PoissonGaussian(), "--steps", "100"), "--noise-multiplier", "noise_multiplier"},
      {With(RowMixture(), "--steps", "100"), "--noise-multiplier", "noise_multiplier"}};
  for (const CalibrateCase& tested : cases) {
    const Json json = RunJson(CalibrateLine(Without(tested.mechanism, tested.noise_flag), "0.5", "1e-5"));
    const double cost = json["epsilon"].get<double>();
    EXPECT_LE(cost, 0.5) << Text(tested.mechanism);
    EXPECT_GT(cost, 0.499) << Text(tested.mechanism);
    EXPECT_EQ(json["target_epsilon"], 0.5);
    EXPECT_EQ(json["delta"], 1e-5);
    EXPECT_EQ(json["accountant"], "SOUND");
    EXPECT_EQ(EpsilonOf(With(tested.mechanism, tested.noise_flag, json[tested.noise_field].dump()), "1e-5"), cost);
  }
}

TEST(PrivacyCalibrateTest, ALaplaceScaleAndARangeAreAlsoNoiseMultipliers) {
  const Json laplace = RunJson(CalibrateLine({"laplace", "--count", "10"}, "1", "1e-5"));
  EXPECT_EQ(laplace["noise_multiplier"], laplace["scale"]);
  const Json selection = RunJson(CalibrateLine({"bounded-range", "--count", "10"}, "1", "1e-5"));
  EXPECT_DOUBLE_EQ(selection["noise_multiplier"].get<double>(), 1 / selection["range"].get<double>());
}

TEST(PrivacyCalibrateTest, TextNamesTheNoiseAndItsCost) {
  const CommandRun gaussian = RunCommand(CalibrateLine({"gaussian"}, "1", "1e-5"));
  EXPECT_EQ(gaussian.exit_code, 0) << gaussian.err;
  EXPECT_THAT(gaussian.out, StartsWith("noise multiplier 3.73"));
  EXPECT_THAT(gaussian.out, HasSubstr(" costs epsilon 1 at delta 1e-05\n1 Gaussian mechanism\n"));
  EXPECT_THAT(RunCommand(CalibrateLine({"laplace", "--count", "10"}, "1", "1e-5")).out, StartsWith("scale "));
  EXPECT_THAT(RunCommand(CalibrateLine({"bounded-range", "--count", "10"}, "1", "1e-5")).out, StartsWith("range "));
}

TEST(PrivacyCalibrateTest, NoNoiseIsNeededWhereANodeIsHardlyEverSampled) {
  const Line line = CalibrateLine({"poisson-gaussian", "--sampling-rate", "1e-9", "--steps", "10"}, "1", "1e-5");
  EXPECT_EQ(RunJson(line)["noise_multiplier"], 0.0);
  EXPECT_EQ(RunJson(line)["epsilon"], 0.0);
  EXPECT_THAT(RunCommand(line).out, StartsWith("no noise is needed"));
  const Json selection =
      RunJson(CalibrateLine({"bounded-range", "--count", "10", "--node-sampling-rate", "1e-9"}, "1", "1e-5"));
  EXPECT_EQ(selection["noise_multiplier"], 0.0);
  EXPECT_TRUE(selection["range"].is_null());
}

TEST(PrivacyCalibrateTest, ATargetAboveWhatTheLeastNoiseCostsGetsTheLeastNoise) {
  const Json json = RunJson(CalibrateLine({"gaussian"}, "10000", "1e-5"));
  EXPECT_EQ(json["noise_multiplier"], 0.01);
  EXPECT_LT(json["epsilon"].get<double>(), 10000);
}

TEST(PrivacyCalibrateTest, ATargetThatNoNoiseMeetsIsAFailure) {
  const Line line = CalibrateLine({"gaussian", "--steps", "1000000000"}, "1e-6", "1e-10");
  const CommandRun run = RunCommand(line);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("no noise up to"));
  EXPECT_EQ(RunCommand(line + Line{"--json"}).json()["error"]["reason"], "PRIVACY_UNREACHABLE");
}

Line Compare() {
  return {"privacy",         "compare", "--method",           "dpar-em0", "--appr-noise", "40",
          "--sampling-rate", "0.05",    "--noise-multiplier", "5",        "--steps",      "100",
          "--delta",         "1e-3"};
}

TEST(PrivacyCompareTest, JsonHasTheSoundAndThePublishedCost) {
  const Json json = RunJson(With(Compare(), "--node-sampling-rate", "0.5"));
  EXPECT_EQ(json["command"], "privacy compare");
  EXPECT_EQ(json["method"], "dpar-em0");
  EXPECT_EQ(json["delta"], 1e-3);
  const Json& sound = json["sound"];
  EXPECT_GT(sound["appr_epsilon"].get<double>(), 0);
  EXPECT_GT(sound["sgd_epsilon"].get<double>(), 0);
  EXPECT_GT(sound["epsilon"].get<double>(),
            std::max(sound["appr_epsilon"].get<double>(), sound["sgd_epsilon"].get<double>()));
  const Json& published = json["published"];
  EXPECT_EQ(published["appr_delta"], 1e-3);
  EXPECT_EQ(published["sgd_delta"], 1e-3);
  EXPECT_DOUBLE_EQ(published["epsilon"].get<double>(),
                   0.5 * (published["appr_epsilon"].get<double>() + published["sgd_epsilon"].get<double>()));
}

TEST(PrivacyCompareTest, TheDefaultsAreThoseOfHelp) {
  const Json json = RunJson(Compare());
  const Json spelt =
      RunJson(Compare() + Line{"--seeds", "70", "--top-k", "2", "--max-occurrence", "1", "--node-sampling-rate", "1"});
  EXPECT_EQ(json, spelt);
  const CommandRun help = RunCommand({"privacy", "compare", "--help"});
  for (const std::string shown :
       {"--seeds INT=70", "--top-k INT=2", "--max-occurrence INT=1", "--node-sampling-rate FLOAT=1"}) {
    EXPECT_THAT(help.out, HasSubstr(shown));
  }
}

TEST(PrivacyCompareTest, EveryMethodHasItsOwnFirstStage) {
  const Json em0 = RunJson(Compare());
  const Json em1 = RunJson(With(With(Compare(), "--method", "dpar-em1"), "--value-noise", "40"));
  const Json gm = RunJson(With(Compare(), "--method", "dpar-gm"));
  EXPECT_EQ(em0["event"]["composition"]["events"].size(), 2U);
  EXPECT_EQ(em1["event"]["composition"]["events"].size(), 3U);
  EXPECT_TRUE(gm["event"]["composition"]["events"][0].contains("gaussian"));
  EXPECT_GT(em1["sound"]["appr_epsilon"].get<double>(), em0["sound"]["appr_epsilon"].get<double>());
  EXPECT_EQ(em1["sound"]["sgd_epsilon"], em0["sound"]["sgd_epsilon"]);
  EXPECT_EQ(gm["published"]["sgd_epsilon"], em0["published"]["sgd_epsilon"]);
}

TEST(PrivacyCompareTest, TextIsATableThatSaysWhichFiguresAreNoBound) {
  const CommandRun run = RunCommand(Compare());
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("STAGE           SOUND EPSILON  PUBLISHED EPSILON\nDP-APPR         "));
  EXPECT_THAT(run.out, HasSubstr("\nDP-SGD          "));
  EXPECT_THAT(run.out, HasSubstr("\nwhole pipeline  "));
  EXPECT_THAT(run.out, HasSubstr("published figures are the paper's claim and not a bound"));
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(PrivacyCompareTest, BadPipelinesAreUsageErrors) {
  ExpectUsageError(With(Compare(), "--method", "dpar"), "--method is one of dpar-em0, dpar-em1, dpar-gm; not 'dpar'");
  ExpectUsageError(With(Compare(), "--method", "dpar-em1"), "--method dpar-em1 takes --value-noise; it is missing");
  ExpectUsageError(With(Compare(), "--value-noise", "40"), "--value-noise is for --method dpar-em1");
  ExpectUsageError(With(Compare(), "--seeds", "0"), "--seeds must be an integer from 1 to 1000000, got 0");
  ExpectUsageError(With(Compare(), "--top-k", "2.5"), "--top-k must be an integer from 1 to 1000, got 2.5");
  ExpectUsageError(With(Compare(), "--appr-noise", "0"), "--appr-noise must be from 0.01 to 1e+09, got 0");
  ExpectUsageError(With(Compare(), "--sampling-rate", "2"), "--sampling-rate must be from 0 to 1, got 2");
  ExpectUsageError(With(Compare(), "--noise-multiplier", "-1"),
                   "--noise-multiplier must be from 0.01 to 1e+09, got -1");
  ExpectUsageError(With(Compare(), "--steps", "1e12"), "--steps must be an integer from 1 to 1000000000, got 1e12");
  ExpectUsageError(With(Compare(), "--max-occurrence", "-1"), "--max-occurrence must be an integer from 0 to 9999");
  ExpectUsageError(With(Compare(), "--node-sampling-rate", "0"), "--node-sampling-rate must be above 0 and at most 1");
  ExpectUsageError(With(Compare(), "--delta", "1"), "--delta must be above 0 and below 1, got 1");
  for (const std::string flag :
       {"--method", "--appr-noise", "--sampling-rate", "--noise-multiplier", "--steps", "--delta"}) {
    ExpectUsageError(Without(Compare(), flag), flag);
  }
}

struct BadValue {
  Line line;
  std::string flag;
  std::vector<std::string> values;
  std::string allowed;
};

TEST(PrivacyUsageTest, ABadValueIsRefusedWithTheFlagAndWhatItAllows) {
  const Line delta = {"--delta", "1e-5"};
  const Line poisson = EpsilonLine(PoissonGaussian()) + delta;
  const Line calibrate = CalibrateLine({"gaussian"}, "1", "1e-5");
  const Line delta_line = Line{"privacy", "delta", "--mechanism"} + Gaussian() + Line{"--epsilon", "1"};
  const std::vector<BadValue> cases = {
      {poisson, "--sampling-rate", {"1.5", "-0.1", "nan", "inf", "often"}, "must be from 0 to 1"},
      {poisson, "--node-sampling-rate", {"1.5", "-0.1", "nan", "often"}, "must be from 0 to 1"},
      {poisson, "--noise-multiplier", {"0", "-1", "nan", "inf", "1e10", "much"}, "must be from 0.01 to 1e+09"},
      {poisson,
       "--steps",
       {"0", "-3", "1.5", "1e12", "1000000000000", "99999999999999999999", "nan", "many"},
       "must be an integer from 1 to 1000000000"},
      {poisson, "--delta", {"0", "1", "2", "-1e-5", "nan", "little"}, "must be above 0 and below 1"},
      {EpsilonLine(Gaussian()) + delta, "--count", {"0", "1.5"}, "must be an integer from 1 to 1000000000"},
      {EpsilonLine(Gaussian()) + delta, "--noise-multiplier", {"0", "nan"}, "must be from 0.01 to 1e+09"},
      {EpsilonLine(Laplace()) + delta, "--scale", {"0", "-2", "nan", "wide"}, "must be from 0.001 to 1e+09"},
      {EpsilonLine(Laplace()) + delta, "--count", {"0", "1.5"}, "must be an integer from 1 to 1000000000"},
      {EpsilonLine(BoundedRange()) + delta, "--range", {"0", "-0.1", "nan", "1e4"}, "must be from 1e-09 to 1000"},
      {EpsilonLine(RowMixture()) + delta, "--rows", {"0", "10001", "2.5"}, "must be an integer from 1 to 10000"},
      {delta_line, "--epsilon", {"-1", "nan", "inf", "some"}, "must be finite and at least 0"},
      {calibrate, "--epsilon", {"0", "-1", "nan", "1e5", "some"}, "must be above 0 and at most 10000"},
      {calibrate, "--delta", {"0", "1", "nan"}, "must be above 0 and below 1"}};
  for (const BadValue& bad : cases) {
    for (const std::string& value : bad.values) {
      ExpectUsageError(With(bad.line, bad.flag, value), bad.flag + " " + bad.allowed + ", got " + value);
    }
  }
}

TEST(PrivacyUsageTest, AFlagThatTheMechanismDoesNotTakeIsNamedWithThoseThatItTakes) {
  const Line delta = {"--delta", "1e-5"};
  ExpectUsageError(EpsilonLine(Laplace()) + Line{"--noise-multiplier", "1"} + delta,
                   "--mechanism laplace takes --scale and --count; --noise-multiplier is not one of them");
  ExpectUsageError(EpsilonLine(Laplace()) + Line{"--steps", "1"} + delta,
                   "--mechanism laplace takes --scale and --count; --steps is not one of them");
  ExpectUsageError(EpsilonLine(Gaussian()) + Line{"--rows", "1"} + delta,
                   "--mechanism gaussian takes --noise-multiplier, --steps and --count; --rows is not one of them");
  ExpectUsageError(EpsilonLine(Gaussian()) + Line{"--steps", "1", "--count", "1"} + delta,
                   "--steps and --count are the same for --mechanism gaussian; give one");
  ExpectUsageError(CalibrateLine(Laplace(), "1", "1e-5"),
                   "to calibrate, --mechanism laplace takes --count; --scale is not one of them");
  ExpectUsageError(EpsilonLine(Gaussian()) + Line{"--sigma", "1"} + delta, "--sigma");
}

TEST(PrivacyUsageTest, AMissingFlagIsNamedWithThoseThatTheMechanismTakes) {
  const Line delta = {"--delta", "1e-5"};
  ExpectUsageError(EpsilonLine({"laplace", "--scale", "2"}) + delta,
                   "--mechanism laplace takes --scale and --count; --count is missing");
  ExpectUsageError(EpsilonLine({"gaussian"}) + delta, "--noise-multiplier is missing");
  for (const std::string flag : {"--rows", "--sampling-rate", "--noise-multiplier", "--steps"}) {
    ExpectUsageError(EpsilonLine(Without(RowMixture(), flag)) + delta,
                     "--mechanism row-mixture takes --noise-multiplier, --rows, --sampling-rate and --steps; " + flag +
                         " is missing");
  }
  ExpectUsageError(EpsilonLine(Gaussian()), "--delta");
  ExpectUsageError(Line{"privacy", "epsilon"} + delta, "--mechanism");
  ExpectUsageError(EpsilonLine({"magic"}) + delta, "--mechanism is one of gaussian, laplace, bounded-range");
}

TEST(PrivacyUsageTest, TheGroupAloneIsAUsageError) { ExpectUsageError({"privacy"}, "error: "); }

TEST(PrivacyUsageTest, AUsageErrorWithJsonIsOneObject) {
  const CommandRun run = RunCommand(EpsilonLine(Gaussian()) + Line{"--delta", "2", "--json"});
  EXPECT_EQ(run.exit_code, 2);
  ASSERT_TRUE(run.json().is_object()) << run.out;
  EXPECT_EQ(run.json()["error"]["reason"], "INVALID_FIELD");
  EXPECT_EQ(run.json()["error"]["metadata"]["field"], "delta");
}

TEST(PrivacyUsageTest, EveryCommandHasHelpWithAnExampleOfItself) {
  for (const std::string name : {"epsilon", "delta", "calibrate", "compare"}) {
    const CommandRun run = RunCommand({"privacy", name, "--help"});
    EXPECT_EQ(run.exit_code, 0) << name;
    EXPECT_THAT(run.out, HasSubstr("Example:\n  dpar privacy " + name)) << name;
  }
  EXPECT_THAT(RunCommand({"--help"}).out, HasSubstr("  privacy "));
  EXPECT_THAT(RunCommand({"privacy", "calibrate", "--help"}).out, ::testing::Not(HasSubstr("--noise-multiplier")));
}

}  // namespace
}  // namespace dpar
