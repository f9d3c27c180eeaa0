// dpar-lab accuracy: figures, price and plan, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/privacy/accountant.h"
#include "google/protobuf/util/json_util.h"
#include "tests/lab/lab_run.h"

namespace dpar::lab {
namespace {

using e2e::CommandResult;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

// A ring in which neighbours have different classes, and a feature that tells the class.
Graph TwoClasses(int32_t node_count) {
  Edges edges;
  for (int32_t node = 0; node < node_count; ++node) {
    edges.emplace_back(node, (node + 1) % node_count);
  }
  Graph graph = MakeGraph(node_count, edges);
  graph.sizes = {node_count, 2, 2};
  for (int32_t node = 0; node < node_count; ++node) {
    graph.labels[static_cast<size_t>(node)] = node % 2;
    graph.features.columns[static_cast<size_t>(node)] = node % 2;
  }
  return graph;
}

// Every node has the twelve next nodes of its class for neighbours. One in twenty has the other class's feature, so
// that only its neighbours tell what it is.
Graph MisledNodes(int32_t node_count) {
  Edges edges;
  for (int32_t node = 0; node < node_count; ++node) {
    for (int32_t distance = 2; distance <= 12; distance += 2) {
      edges.emplace_back(node, (node + distance) % node_count);
    }
  }
  Graph graph = MakeGraph(node_count, edges);
  graph.sizes = {node_count, 2, 2};
  for (int32_t node = 0; node < node_count; ++node) {
    graph.labels[static_cast<size_t>(node)] = node % 2;
    graph.features.columns[static_cast<size_t>(node)] = node % 20 == 0 ? 1 - node % 2 : node % 2;
  }
  return graph;
}

class AccuracyTest : public LabTest {
 protected:
  [[nodiscard]] std::string Ring(int32_t node_count = 200) const {
    return Write(absl::StrCat("ring", node_count, ".npz"), TwoClasses(node_count));
  }

  static std::vector<std::string> Arguments(const std::string& graph, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"accuracy", "--graph", graph};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static std::vector<std::string> Private(const std::string& graph, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = Arguments(graph, {"--epsilon", "1", "--delta", "1e-3"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

TEST_F(AccuracyTest, AFeatureThatTellsTheClassIsLearntWithoutNoise) {
  const Json json = MustJson(Arguments(Ring(), {"--non-private", "--seeds", "3"}));
  EXPECT_THAT(KeysOf(json), ElementsAre("accuracy", "plain", "calibration_error", "epsilon", "plan"));
  EXPECT_EQ(json["accuracy"], Json::parse(R"({"mean": 1.0, "std": 0.0})"));
  EXPECT_EQ(json["plain"], json["accuracy"]);
  EXPECT_TRUE(json["epsilon"].is_null());
  EXPECT_EQ(json["plan"]["non_private"], true);
  EXPECT_THAT(KeysOf(json["plan"]), Not(::testing::Contains("event")));
}

TEST_F(AccuracyTest, ARegionOfTheGraphIsPredictedWhenAsked) {
  const Json json = MustJson(Arguments(Ring(), {"--non-private", "--seeds", "2", "--split", "region"}));
  EXPECT_EQ(json["plan"]["training_slots"], 200 - 200 / 9);
  EXPECT_EQ(json["accuracy"]["mean"], 1.0);
  EXPECT_LT(json["calibration_error"]["mean"].get<double>(), 0.5);
}

TEST_F(AccuracyTest, EpsilonIsWhatThePlansEventCosts) {
  for (const double asked : {0.5, 4.0}) {
    const Json json =
        MustJson(Arguments(Ring(), {"--epsilon", absl::StrCat(asked), "--delta", "1e-3", "--seeds", "1"}));
    v1::PrivacyEvent event;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json["plan"]["event"].dump(), &event).ok());
    const auto epsilon = json["epsilon"].get<double>();
    EXPECT_EQ(EventEpsilon(event, 1e-3).value(), epsilon);
    EXPECT_LE(epsilon, asked);
    EXPECT_GT(epsilon, 0.999 * asked);
  }
}

TEST_F(AccuracyTest, ThePlanIsForTheSlotsThatTrain) {
  const Json plan = MustJson(Private(Ring(), {"--seeds", "1", "--test-share", "0.3"}))["plan"];
  EXPECT_EQ(plan["training_slots"], 140);
  EXPECT_EQ(plan["method"], "FEATURES");
  EXPECT_EQ(plan["delta"], 1e-3);
  EXPECT_THAT(KeysOf(plan), IsSupersetOf({"steps", "learning_rate", "noise_multiplier", "logit_noise", "transform"}));
}

TEST_F(AccuracyTest, EveryMethodTrains) {
  const std::vector<std::pair<std::string, std::string>> methods = {{"auto", "FEATURES"},
                                                                    {"features", "FEATURES"},
                                                                    {"dpar-em0", "DPAR_EM0"},
                                                                    {"dpar-em1", "DPAR_EM1"},
                                                                    {"dpar-gm", "DPAR_GM"}};
  for (const auto& [name, planned] : methods) {
    const Json json = MustJson(Private(Ring(), {"--method", name, "--seeds", "1"}));
    EXPECT_EQ(json["plan"]["method"], planned);
    EXPECT_EQ(json["accuracy"]["std"], 0.0) << "of one value";
  }
}

TEST_F(AccuracyTest, SplitsAreTheSameInEveryRun) {
  const std::vector<std::string> arguments = Arguments(Ring(), {"--non-private", "--set", "steps=1", "--seeds", "4"});
  EXPECT_EQ(Run(arguments).out, Run(arguments).out);
}

// At so small an epsilon a model is its noise: each class of a split is right or wrong by the toss of a coin, so a
// split looks alike in two runs with a probability of at most 3/8, and all 40 do below 1e-17.
TEST_F(AccuracyTest, NoiseNeverIs) {
  const std::vector<std::string> arguments =
      Arguments(Ring(), {"--epsilon", "0.001", "--delta", "1e-9", "--seeds", "40"});
  EXPECT_NE(Run(arguments).out, Run(arguments).out);
}

TEST_F(AccuracyTest, ThePropagationIsTheOneAskedFor) {
  const std::string graph = Write("misled.npz", MisledNodes(400));
  for (const std::string propagation : {"power", "mean-field"}) {
    const Json json = MustJson(
        Arguments(graph, {"--non-private", "--seeds", "2", "--propagation", propagation, "--test-share", "0.5"}));
    EXPECT_GT(json["accuracy"]["mean"].get<double>(), json["plain"]["mean"].get<double>()) << propagation;
  }
  const Json none = MustJson(Arguments(graph, {"--non-private", "--seeds", "2", "--propagation", "none"}));
  EXPECT_EQ(none["accuracy"], none["plain"]);
  EXPECT_LT(none["plain"]["mean"].get<double>(), 1);
}

TEST_F(AccuracyTest, OptionsAreSetByName) {
  const Json plan = MustJson(Private(Ring(), {"--seeds", "1", "--set", "steps=7", "--set", "optimizer=adam", "--set",
                                              "center=false", "--set", "gradient_clip=0.5"}))["plan"];
  EXPECT_EQ(plan["steps"], 7);
  EXPECT_EQ(plan["optimizer"], "ADAM");
  EXPECT_EQ(plan["gradient_clip"], 0.5);
  EXPECT_FALSE(plan.contains("mean"));
}

TEST_F(AccuracyTest, ThePapersValuesCostMoreThanThePaperSays) {
  const Json json =
      MustJson(Private(Ring(1000), {"--preset", "paper", "--method", "dpar-gm", "--seeds", "1", "--set", "epochs=1"}));
  EXPECT_GT(json["epsilon"].get<double>(), 1);
  EXPECT_EQ(json["plan"]["epsilon"], json["epsilon"]);
  EXPECT_EQ(json["plan"]["hidden_size"], 32);
  EXPECT_NEAR(json["plan"]["published_epsilon"].get<double>(), 1, 1e-6);
}

TEST_F(AccuracyTest, TheTableListsEverySeed) {
  const CommandResult result = Run(Arguments(Ring(), {"--non-private", "--seeds", "2"}));
  EXPECT_EQ(result.exit_code, kDone);
  // Predictions are right and nearly sure.
  EXPECT_THAT(result.out, MatchesRegex("SEED        MEAN-FIELD        NONE  CALIBRATION-ERROR\n"
                                       "1               1\\.0000      1\\.0000             0\\.[0-9]{4}\n"
                                       "2               1\\.0000      1\\.0000             0\\.[0-9]{4}\n"
                                       "mean            1\\.0000      1\\.0000             0\\.[0-9]{4}\n"
                                       "std             0\\.0000      0\\.0000             0\\.[0-9]{4}\n"));
}

TEST_F(AccuracyTest, StderrSaysWhatIsPrivate) {
  EXPECT_EQ(Run(Arguments(Ring(), {"--non-private", "--seeds", "1"})).err,
            "dpar-lab: accuracies are NOT private: they are counted on the labels of held-out nodes; the models were "
            "trained without noise. Nothing was charged to any ledger\n");
  EXPECT_THAT(Run(Private(Ring(), {"--seeds", "1"})).err,
              HasSubstr("; each model is private under node-level (epsilon 0.99"));
}

TEST_F(AccuracyTest, OnlyTheLargestComponentIsUsedWhenAsked) {
  Graph graph = TwoClasses(100);
  // Nodes 0..9 lose their edges: 90 of the others stay connected.
  std::vector<int32_t> neighbours;
  std::vector<int64_t> offsets = {0};
  for (int32_t node = 0; node < 100; ++node) {
    for (const int32_t other : graph.edges().neighbours_of(node)) {
      if (node >= 10 && other >= 10) {
        neighbours.push_back(other);
      }
    }
    offsets.push_back(static_cast<int64_t>(neighbours.size()));
  }
  graph.neighbours = neighbours;
  graph.edge_offsets = offsets;
  const std::string file = Write("parts.npz", graph);
  EXPECT_EQ(MustJson(Private(file, {"--seeds", "1"}))["plan"]["training_slots"], 80);
  EXPECT_EQ(MustJson(Private(file, {"--seeds", "1", "--largest-component"}))["plan"]["training_slots"], 72);
}

TEST_F(AccuracyTest, FlagsOutOfRangeAreRefused) {
  const std::string ring = Ring();
  const std::vector<std::vector<std::string>> cases = {
      {"--seeds", "0", "--seeds must be from 1 to 10000, got 0"},
      {"--test-share", "0", "--test-share must be above 0 and below 1, got 0"},
      {"--test-share", "1", "--test-share must be above 0 and below 1, got 1"},
      {"--test-share", "0.001", "--test-share must leave nodes to train on and nodes to predict, got 0.001 of 200"},
      {"--threads", "0", "--threads must be from 1 to 1024, got 0"},
      {"--method", "gcn", "--method is one of auto, features, dpar-em0, dpar-em1, dpar-gm, gap, sage; not 'gcn'"},
      {"--propagation", "power2", "--propagation is one of mean-field, power, none; not 'power2'"},
      {"--split", "partition", "--split is random or region; not 'partition'"},
      {"--preset", "best", "--preset is paper or not given; not 'best'"},
      {"--set", "steps", "--set takes NAME=VALUE, NAME one of structure_share, "},
      {"--set", "colour=1", "not 'colour=1'"},
      {"--set", "steps=1.5", "--set steps takes a whole number; not '1.5'"},
      {"--set", "learning_rate=fast", "--set learning_rate takes a number; not 'fast'"},
      {"--set", "center=yes", "--set center takes true or false; not 'yes'"},
      {"--set", "optimizer=lion", "--set optimizer takes one of SGD, ADAM; not 'lion'"},
      {"--set", "rows=row_set_unspecified", "--set rows takes one of APPR_AND_IDENTITY, APPR_ONLY"},
      {"--set", "steps=0", "options.steps must be from 1 to 1000000, got 0"},
      {"--set", "top_k=2", "method features does not read top_k"},
  };
  for (const auto& parts : cases) {
    ExpectRefused(Private(ring, {parts[0], parts[1]}), kUsage, parts[2]);
  }
}

TEST_F(AccuracyTest, ATargetIsGivenUnlessThereIsNoNoise) {
  const std::string ring = Ring();
  ExpectRefused(Arguments(ring, {"--delta", "1e-3"}), kUsage, "--epsilon is required, unless --non-private is given");
  ExpectRefused(Arguments(ring, {"--epsilon", "1"}), kUsage, "--delta is required, unless --non-private is given");
  ExpectRefused(Private(ring, {"--non-private"}), kUsage, "--epsilon is refused with --non-private");
  ExpectRefused(Arguments(ring, {"--epsilon", "0", "--delta", "1e-3"}), kUsage,
                "--epsilon must be from 0.001 to 100, got 0");
  ExpectRefused(Arguments(ring, {"--epsilon", "1", "--delta", "1"}), kUsage, "--delta must be above 0 and below 1");
}

}  // namespace
}  // namespace dpar::lab
