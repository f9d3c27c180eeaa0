// dpar-lab select: rows, noise and price, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
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
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SelectTest : public LabTest {
 protected:
  static std::vector<std::string> Arguments(const std::string& graph, const std::string& mechanism,
                                            const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"select", "--graph", graph, "--mechanism", mechanism};
    arguments.insert(arguments.end(), more.begin(), more.end());
    for (const auto& [flag, value] : std::map<std::string, std::string>{{"--epsilon", "1"}, {"--delta", "1e-5"}}) {
      if (std::find(more.begin(), more.end(), flag) == more.end()) {
        arguments.insert(arguments.end(), {flag, value});
      }
    }
    return arguments;
  }

  [[nodiscard]] std::string Star() const { return Write("star.npz", MakeStar(99)); }
};

TEST_F(SelectTest, EveryMechanismDrawsDistinctSeedsAndRowsOfKEntries) {
  for (const std::string mechanism : {"em0", "em1", "gm"}) {
    const Json json = MustJson(Arguments(Star(), mechanism, {"--rows", "20", "--k", "3"}));
    EXPECT_EQ(json["mechanism"], mechanism);
    EXPECT_EQ(json["delta"], 1e-5);
    std::vector<std::string> keys = {"mechanism", "epsilon", "delta", "noise", "event", "rows"};
    if (mechanism == "em1") {
      keys.insert(keys.begin() + 4, "value_noise");
    }
    EXPECT_EQ(KeysOf(json), keys);
    std::set<int32_t> seeds;
    for (const Json& row : json["rows"]) {
      EXPECT_THAT(KeysOf(row), ElementsAre("seed", "ids", "values"));
      seeds.insert(row["seed"].get<int32_t>());
      const auto ids = row["ids"].get<std::vector<int32_t>>();
      EXPECT_EQ(ids.size(), 3U);
      EXPECT_EQ(row["values"].size(), 3U);
      EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()), ids.end());
      EXPECT_GE(ids.front(), 0);
      EXPECT_LT(ids.back(), 100);
    }
    EXPECT_EQ(json["rows"].size(), 20U);
    EXPECT_EQ(seeds.size(), 20U);
  }
}

TEST_F(SelectTest, TheReportedEventCostsTheReportedEpsilonAndNoMoreThanAsked) {
  for (const std::string mechanism : {"em0", "em1", "gm"}) {
    for (const double asked : {0.5, 4.0}) {
      const Json json = MustJson(Arguments(Star(), mechanism, {"--epsilon", absl::StrCat(asked)}));
      v1::PrivacyEvent event;
      ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json["event"].dump(), &event).ok());
      const auto epsilon = json["epsilon"].get<double>();
      EXPECT_EQ(EventEpsilon(event, 1e-5).value(), epsilon) << mechanism;
      EXPECT_LE(epsilon, asked) << mechanism;
      EXPECT_GT(epsilon, 0.999 * asked) << mechanism;
    }
  }
}

TEST_F(SelectTest, TheNoiseIsThatOfTheEvent) {
  const Json gm = MustJson(Arguments(Star(), "gm"));
  const Json& gaussian = gm["event"]["gaussian"];
  EXPECT_EQ(gaussian["noise_stddev"], gm["noise"]);
  EXPECT_DOUBLE_EQ(gaussian["sensitivity"].get<double>(), std::sqrt(2 * 70.0) * 0.01);

  const Json em0 = MustJson(Arguments(Star(), "em0"));
  const Json& selections = em0["event"]["repetition"];
  EXPECT_EQ(selections["count"], 70 * 4);
  EXPECT_DOUBLE_EQ(selections["event"]["bounded_range"]["range"].get<double>(), 0.002 / em0["noise"].get<double>());

  const Json em1 = MustJson(Arguments(Star(), "em1", {"--clip", "0.01"}));
  const Json& parts = em1["event"]["composition"]["events"];
  EXPECT_DOUBLE_EQ(parts[0]["repetition"]["event"]["bounded_range"]["range"].get<double>(),
                   0.02 / em1["noise"].get<double>());
  EXPECT_EQ(parts[1]["repetition"]["event"]["laplace"]["scale"], em1["value_noise"]);
  EXPECT_EQ(parts[1]["repetition"]["event"]["laplace"]["sensitivity"], 0.01);
}

TEST_F(SelectTest, Em1SpendsTheValueShareOnValues) {
  for (const double share : {0.2, 0.5}) {
    std::vector<std::string> more;
    if (share != 0.5) {
      more = {"--value-share", absl::StrCat(share)};
    }
    const Json json = MustJson(Arguments(Star(), "em1", more));
    v1::PrivacyEvent selection;
    ASSERT_TRUE(
        google::protobuf::util::JsonStringToMessage(json["event"]["composition"]["events"][0].dump(), &selection).ok());
    EXPECT_NEAR(EventEpsilon(selection, 1e-5).value(), 1 - share, 1e-3);
  }
}

// M = 2 and epsilon 10000 give a standard deviation of 0.01 sensitivities, 2e-4. The clipped rows are (0.625, 0.375)
// scaled to norm 0.01: the seed's own entry leads by 0.0034, which noise undoes with probability below 1e-30.
TEST_F(SelectTest, HardlyAnyNoiseShowsTheLargestEntry) {
  const Json json =
      MustJson(Arguments(OneEdge(), "gm", {"--rows", "2", "--k", "1", "--epsilon", "10000", "--gamma", "1e-6"}));
  EXPECT_DOUBLE_EQ(json["noise"].get<double>(), 2e-4);
  for (const Json& row : json["rows"]) {
    EXPECT_EQ(row["ids"], Json::array({row["seed"]}));
    EXPECT_NEAR(row["values"][0].get<double>(), 0.01 * 0.625 / std::hypot(0.625, 0.375), 2.5e-3);
  }
}

TEST_F(SelectTest, TwoRunsDiffer) {
  for (const std::string mechanism : {"em0", "em1", "gm"}) {
    EXPECT_NE(MustJson(Arguments(Star(), mechanism))["rows"], MustJson(Arguments(Star(), mechanism))["rows"]);
  }
}

// K = N, so that every node is in every row.
TEST_F(SelectTest, ColumnsAreBoundedWhenAsked) {
  const std::string graph = Write("small.npz", MakeStar(4));
  const Json free = MustJson(Arguments(graph, "em0", {"--rows", "5", "--k", "5"}));
  const Json capped = MustJson(Arguments(graph, "em0", {"--rows", "5", "--k", "5", "--max-occurrence", "2"}));
  const Json clipped = MustJson(Arguments(graph, "em0", {"--rows", "5", "--k", "5", "--tau", "0.5"}));
  std::map<int32_t, int> occurrences;
  for (const size_t row : {0U, 1U, 2U, 3U, 4U}) {
    EXPECT_EQ(free["rows"][row]["values"], Json({0.2, 0.2, 0.2, 0.2, 0.2}));
    for (const Json& id : capped["rows"][row]["ids"]) {
      ++occurrences[id.get<int32_t>()];
    }
    for (const Json& value : clipped["rows"][row]["values"]) {
      EXPECT_DOUBLE_EQ(value.get<double>(), 0.1);
    }
  }
  EXPECT_THAT(occurrences,
              ElementsAre(std::pair(0, 2), std::pair(1, 2), std::pair(2, 2), std::pair(3, 2), std::pair(4, 2)));
  EXPECT_EQ(capped["epsilon"], free["epsilon"]);
}

TEST_F(SelectTest, TheTextIsASummaryAndAShortTable) {
  const CommandResult result = Run(Arguments(Star(), "em1"));
  EXPECT_EQ(result.exit_code, kDone);
  EXPECT_THAT(result.out, StartsWith("mechanism  em1, 70 rows of 4 entries, clip 0.001\nepsilon    0.99"));
  EXPECT_THAT(result.out, HasSubstr("at delta 1e-05 (asked for: 1.0 or less)\nnoise      "));
  EXPECT_THAT(result.out, HasSubstr(", of values "));
  EXPECT_THAT(result.out, EndsWith("and 65 more rows; --json prints all\n"));
  EXPECT_LE(WidestLine(result.out), 80U);
}

TEST_F(SelectTest, StderrSaysWhatIsPrivateAndThatEachRunSpends) {
  const std::string graph = Write("parts.npz", MakeGraph(6, {{0, 3}, {1, 4}, {4, 2}}));
  const std::vector<std::string> arguments = Arguments(graph, "gm", {"--rows", "3", "--k", "2", "--json"});
  const CommandResult result = Run(arguments);
  const std::string epsilon = Json::parse(result.out)["epsilon"].dump();
  EXPECT_EQ(result.err, absl::StrCat("dpar-lab: seeds, ids and values are private under node-level (epsilon ", epsilon,
                                     ", delta 1e-05) differential privacy; the number of nodes and the time this took "
                                     "are not private. Nothing was charged to any ledger, and running it again spends "
                                     "again\n"));
}

// Which nodes are in the component depends on edges, so that the private output does not list them.
TEST_F(SelectTest, OfTheLargestComponentOnlyPositionsAreShown) {
  const std::string graph = Write("parts.npz", MakeGraph(6, {{0, 3}, {1, 4}, {4, 2}}));
  std::vector<std::string> arguments = Arguments(graph, "gm", {"--rows", "3", "--k", "3", "--largest-component"});
  const Json json = MustJson(arguments);
  EXPECT_FALSE(json.contains("nodes"));
  for (const Json& row : json["rows"]) {
    EXPECT_EQ(row["ids"], Json({0, 1, 2}));
  }
  EXPECT_THAT(Run(arguments).err,
              HasSubstr("the number of nodes, which of the file's are in the largest component and the time"));
  ExpectRefused(Arguments(graph, "gm", {"--rows", "4", "--k", "3", "--largest-component"}), kUsage,
                "--rows must be from 1 to 3, got 4");
}

TEST_F(SelectTest, SeedsAreNotForTheCallerToChoose) {
  ExpectRefused(Arguments(Star(), "gm", {"--seeds", "0,1"}), kUsage,
                "--seeds is refused here: select draws them itself, uniformly, because");
}

TEST_F(SelectTest, OptionsOutOfRangeAreRefused) {
  const std::string star = Star();
  const std::vector<std::vector<std::string>> cases = {
      {"gm", "--k", "101", "--k must be from 1 to 100, got 101"},
      {"gm", "--k", "0", "--k must be from 1 to 100, got 0"},
      {"em0", "--rows", "101", "--rows must be from 1 to 100, got 101"},
      {"em0", "--rows", "-1", "--rows must be from 1 to 100, got -1"},
      {"em0", "--epsilon", "0", "--epsilon must be above 0 and at most 10000, got 0"},
      {"em1", "--epsilon", "-1", "--epsilon must be above 0 and at most 10000, got -1"},
      {"gm", "--epsilon", "nan", "--epsilon must be above 0 and at most 10000, got nan"},
      {"gm", "--delta", "0", "--delta must be above 0 and below 1, got 0"},
      {"gm", "--delta", "1", "--delta must be above 0 and below 1, got 1"},
      {"gm", "--clip", "0", "--clip must be from 1e-12 to 1, got 0"},
      {"em0", "--clip", "1e-320", "--clip must be from 1e-12 to 1, got"},
      {"em0", "--clip", "2", "--clip must be from 1e-12 to 1, got 2"},
      {"em1", "--value-share", "1", "--value-share must be above 0 and below 1, got 1"},
      {"gm", "--value-share", "0.5", "--value-share is for em1"},
      {"gm", "--max-occurrence", "0", "--max-occurrence must be from 1"},
      {"gm", "--tau", "0", "--tau must be finite and above 0, got 0"},
      {"gm", "--alpha", "1", "--alpha must be above 0 and below 1, got 1"},
      {"laplace", "--k", "4", "--mechanism is one of em0, em1, gm; not 'laplace'"},
  };
  for (const auto& parts : cases) {
    ExpectRefused(Arguments(star, parts[0], {parts[1], parts[2]}), kUsage, parts[3]);
  }
}

TEST_F(SelectTest, ATargetAndAMechanismMustBeGiven) {
  const std::string star = Star();
  ExpectRefused({"select", "--graph", star, "--epsilon", "1", "--delta", "1e-5"}, kUsage, "--mechanism is required");
  ExpectRefused({"select", "--graph", star, "--mechanism", "gm", "--delta", "1e-5"}, kUsage, "--epsilon is required");
  ExpectRefused({"select", "--graph", star, "--mechanism", "gm", "--epsilon", "1"}, kUsage, "--delta is required");
}

TEST_F(SelectTest, ATargetThatNoNoiseMeetsIsAnError) {
  for (const std::string mechanism : {"em0", "em1", "gm"}) {
    ExpectRefused(Arguments(Star(), mechanism, {"--epsilon", "1e-12", "--delta", "1e-12"}), kFailed,
                  "times the sensitivity meets epsilon");
  }
}

}  // namespace
}  // namespace dpar::lab
