// dpar-lab appr: the vectors, their ids, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/sealed_graph.h"
#include "tests/lab/lab_run.h"

namespace dpar::lab {
namespace {

using e2e::CommandResult;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ApprTest : public LabTest {};

// One edge, seed 0, both nodes in the support, t = rho alpha:
//   alpha + (1-alpha)/2 p1 - (1+alpha)/2 p0 = t   and   (1-alpha)/2 p0 - (1+alpha)/2 p1 = t.
// Their sum gives p0 + p1 = 1 - 2 rho, their difference p0 - p1 = alpha. So p0 = (1+alpha)/2 - rho and p1 = (1-alpha)/2
// - rho. The solver ends below that, by at most gamma rho times the volume 2 in total.
TEST_F(ApprTest, OneEdgeHasTheVectorSolvedByHand) {
  const Json json =
      MustJson({"appr", "--graph", OneEdge(), "--seeds", "0,1", "--alpha", ".25", "--rho", "1e-3", "--gamma", "1e-6"});
  EXPECT_THAT(KeysOf(json), ElementsAre("rows"));
  ASSERT_EQ(json["rows"].size(), 2U);
  for (const size_t seed : {0U, 1U}) {
    const Json& row = json["rows"][seed];
    EXPECT_THAT(KeysOf(row), ElementsAre("seed", "ids", "values"));
    EXPECT_EQ(row["seed"], seed);
    EXPECT_EQ(row["ids"], Json({0, 1}));
    EXPECT_NEAR(row["values"][seed].get<double>(), 0.625 - 1e-3, 2e-9);
    EXPECT_NEAR(row["values"][1 - seed].get<double>(), 0.375 - 1e-3, 2e-9);
  }
}

// With self loops both degrees are 2, and A D^-1 p is (p0 + p1) / 2 at both nodes: the sum of the two conditions gives
// p0 + p1 = 1 - 4 rho, their difference (1+alpha)/2 (p0 - p1) = alpha.
TEST_F(ApprTest, SelfLoopsChangeTheVectorAsSolvedByHand) {
  const Json json = MustJson({"appr", "--graph", OneEdge(), "--seeds", "0", "--self-loops", "--alpha", ".25", "--rho",
                              "1e-3", "--gamma", "1e-6"});
  const Json& values = json["rows"][0]["values"];
  EXPECT_NEAR(values[0].get<double>(), 0.7 - 2e-3, 4e-9);
  EXPECT_NEAR(values[1].get<double>(), 0.3 - 2e-3, 4e-9);
}

TEST_F(ApprTest, RowsFollowTheSeedsAsGivenAndIdsAscend) {
  const std::string graph = Write("star.npz", MakeStar(5));
  const Json json = MustJson({"appr", "--graph", graph, "--seeds", "3,0,3"});
  ASSERT_EQ(json["rows"].size(), 3U);
  EXPECT_EQ(json["rows"][0]["seed"], 3);
  EXPECT_EQ(json["rows"][1]["seed"], 0);
  EXPECT_EQ(json["rows"][2], json["rows"][0]);
  for (const Json& row : json["rows"]) {
    EXPECT_EQ(row["ids"], Json({0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(row["values"].size(), 6U);
  }
}

TEST_F(ApprTest, ASeedWithoutNeighboursHasNoEntries) {
  const std::string graph = Write("isolated.npz", MakeGraph(3, {{0, 1}}));
  EXPECT_EQ(MustJson({"appr", "--graph", graph, "--seeds", "2"})["rows"],
            Json::parse(R"([{"seed": 2, "ids": [], "values": []}])"));
  EXPECT_THAT(Run({"appr", "--graph", graph, "--seeds", "2"}).out, HasSubstr("2           -  no entries\n"));
}

TEST_F(ApprTest, TheLargestComponentIsRenumberedAndItsNodesAreListed) {
  const std::string graph = Write("parts.npz", MakeGraph(6, {{0, 3}, {1, 4}, {4, 2}}));
  const Json part = MustJson({"appr", "--graph", graph, "--seeds", "0,2", "--largest-component"});
  EXPECT_THAT(KeysOf(part), ElementsAre("rows", "nodes"));
  EXPECT_EQ(part["nodes"], Json({1, 2, 4}));
  // Seeds 0 and 2 of the component are 1 and 4 of the file.
  const Json whole = MustJson({"appr", "--graph", graph, "--seeds", "1,4"});
  for (const size_t row : {0U, 1U}) {
    EXPECT_EQ(whole["rows"][row]["ids"], Json({1, 2, 4}));
    EXPECT_EQ(part["rows"][row]["ids"], Json({0, 1, 2}));
    EXPECT_EQ(part["rows"][row]["values"], whole["rows"][row]["values"]);
  }
  EXPECT_EQ(part["rows"][1]["seed"], 2);
}

TEST_F(ApprTest, ASealedGraphGivesWhatItsNpzGives) {
  const Graph graph = MakeGraph(5, {{0, 1}, {1, 2}, {3, 4}});
  const std::string npz = Write("graph.npz", graph);
  const std::string sealed = directory_.File("graph.sealed");
  ASSERT_TRUE(WriteSealedGraph(sealed, graph).ok());
  EXPECT_EQ(MustJson({"appr", "--graph", sealed, "--seeds", "0,3"}),
            MustJson({"appr", "--graph", npz, "--seeds", "0,3"}));
  EXPECT_EQ(MustJson({"appr", "--graph", sealed, "--seeds", "0", "--largest-component"})["nodes"], Json({0, 1, 2}));
}

TEST_F(ApprTest, ThreadsDoNotChangeTheResult) {
  const std::string graph = Write("star.npz", MakeStar(30));
  const auto run = [&](const char* threads) {
    return MustJson({"appr", "--graph", graph, "--seeds", "0,1,2,3,4,5,6,7", "--threads", threads});
  };
  EXPECT_EQ(run("1"), run("3"));
}

TEST_F(ApprTest, TheTableShowsTheTenLargestEntriesInEightyColumns) {
  const CommandResult result =
      Run({"appr", "--graph", Write("star.npz", MakeStar(15)), "--seeds", "4,0", "--gamma", "1e-9"});
  EXPECT_EQ(result.exit_code, kDone);
  EXPECT_THAT(result.out, StartsWith("      SEED        NODE  VALUE\n"
                                     "         4           4  0.4149\n"
                                     "                     0  0.3735\n"
                                     "                     1  0.0149\n"));
  EXPECT_THAT(result.out, EndsWith("...  and 6 smaller ones\n"));
  // A header, and for each seed ten entries and what is left.
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1 + 2 * 11);
  EXPECT_LE(WidestLine(result.out), 80U);
}

TEST_F(ApprTest, TheTableSaysWhatItsIdsAre) {
  const std::string graph = Write("parts.npz", MakeGraph(4, {{1, 3}}));
  const CommandResult result = Run({"appr", "--graph", graph, "--seeds", "0", "--largest-component"});
  EXPECT_THAT(result.out, EndsWith("ids are positions in the largest component; --json lists its nodes' ids\n"));
}

TEST_F(ApprTest, StderrSaysThatNothingIsPrivate) {
  for (const bool json : {false, true}) {
    std::vector<std::string> arguments = {"appr", "--graph", OneEdge(), "--seeds", "0"};
    if (json) {
      arguments.emplace_back("--json");
    }
    EXPECT_EQ(
        Run(arguments).err,
        "dpar-lab: exact vectors, NOT private: whoever sees ids and values learns about the edges of the graph\n");
  }
}

TEST_F(ApprTest, ParametersOutOfRangeAreRefused) {
  const std::vector<std::vector<std::string>> cases = {
      {"--alpha", "0", "--alpha must be above 0 and below 1, got 0"},
      {"--alpha", "1", "--alpha must be above 0 and below 1, got 1"},
      {"--alpha", "nan", "--alpha must be above 0 and below 1, got nan"},
      {"--alpha", "quarter", "--alpha"},
      {"--rho", "0", "--rho must be from 1e-12 to 1, got 0"},
      {"--rho", "1.5", "--rho must be from 1e-12 to 1, got 1.5"},
      {"--gamma", "-1", "--gamma must be from 1e-12 to 1, got -1"},
      {"--threads", "0", "--threads must be from 1 to 1024, got 0"},
      {"--epsilon", "1", "not expected"},
  };
  for (const auto& parts : cases) {
    ExpectRefused({"appr", "--graph", OneEdge(), "--seeds", "0", parts[0], parts[1]}, kUsage, parts[2]);
  }
}

TEST_F(ApprTest, SeedsThatAreNoNodesAreRefused) {
  const std::string graph = Write("parts.npz", MakeGraph(4, {{1, 3}}));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"4", "--seeds must be below 4, the number of nodes of the graph, got 4"},
      {"0,99999999999", "--seeds must be below 4, the number of nodes of the graph, got 99999999999"},
      {"0,-1", "--seeds must be node ids such as 0,5,9; not '-1'"},
      {"0,,1", "--seeds must be node ids such as 0,5,9; not ''"},
      {"1.5", "--seeds must be node ids such as 0,5,9; not '1.5'"},
      {"", "--seeds must be node ids such as 0,5,9; not ''"},
  };
  for (const auto& [seeds, message] : cases) {
    ExpectRefused({"appr", "--graph", graph, "--seeds", seeds}, kUsage, message);
  }
  ExpectRefused({"appr", "--graph", graph, "--seeds", "2", "--largest-component"}, kUsage,
                "--seeds must be below 2, the number of nodes of the largest component, got 2");
  ExpectRefused({"appr", "--graph", graph}, kUsage, "--seeds is required");
}

}  // namespace
}  // namespace dpar::lab
