// dpar-lab table: its lines, that nothing is computed twice, and what is refused. What it measures on Cora-ML is in
// tests/accuracy.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/lab/study_run.h"

namespace dpar::lab {
namespace {

using e2e::CommandResult;
using e2e::ReadFile;
using e2e::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  return lines;
}

class TableTest : public StudyTest {
 protected:
  void SetUp() override { WriteStudyGraph(); }
};

TEST_F(TableTest, MeasuresARivalOfThePaperWhereAskedTo) {
  const Json json =
      MustJson(Study("table", {"--datasets", "cora_ml", "--methods", "gap", "--epsilons", "8", "--seeds", "1"}));
  const Json& gap = json["lines"][0];
  EXPECT_EQ(gap["method"], "GAP");
  EXPECT_EQ(gap["sound"]["sound_epsilon"], 8.0);
  EXPECT_NEAR(gap["published"]["published_epsilon"].get<double>(), 8, 1e-6);
  EXPECT_EQ(json["lines"][1]["method"], "SAGE");
  EXPECT_TRUE(json["lines"][1]["sound"].is_null()) << "not asked for: the paper's figure alone";
}

TEST_F(TableTest, HasALineForEveryMethodOfThePaperAndComputesNoneTwice) {
  const Json json = MustJson(Study("table", {"--quick"}));
  EXPECT_EQ(json["split"], "random");
  EXPECT_EQ(json["seeds"], 2);
  std::vector<std::string> lines;
  for (const Json& line : json["lines"]) {
    lines.push_back(absl::StrCat(line["epsilon"].dump(), " ", line["method"].get<std::string>()));
    EXPECT_EQ(line["graph"], "cora_ml");
    EXPECT_EQ(line["delta"], 2e-3);
  }
  EXPECT_THAT(lines, ElementsAre("1.0 GAP", "1.0 SAGE", "1.0 Features", "1.0 DPAR-EM0", "8.0 GAP", "8.0 SAGE",
                                 "8.0 Features", "8.0 DPAR-EM0", "null DPARNoDP", "null GAPNoDP", "null FeaturesNoDP"));
  const Json& features = json["lines"][6];
  EXPECT_EQ(features["paper"], 0.6107);
  EXPECT_NEAR(features["published"]["published_epsilon"].get<double>(), 8, 1e-6);
  EXPECT_GT(features["published"]["sound_epsilon"].get<double>(), 8);
  EXPECT_EQ(features["sound"], features["auto"]);
  EXPECT_EQ(features["auto"]["sound_epsilon"], 8.0);
  EXPECT_TRUE(features["auto"]["published_epsilon"].is_null());
  EXPECT_TRUE(json["lines"][0]["published"].is_null());
  EXPECT_TRUE(json["lines"][8]["published"]["sound_epsilon"].is_null());
  // Chance is 0.25, and without noise it is 0.87 in every run.
  EXPECT_GT(json["lines"][8]["auto"]["none"]["mean"].get<double>(), 0.75);
  EXPECT_GT(features["auto"]["none"]["mean"].get<double>(), 0.6);

  // Run again, it computes nothing.
  const std::string results = ReadFile(Results());
  EXPECT_EQ(MustJson(Study("table", {"--quick"})), json);
  EXPECT_EQ(ReadFile(Results()), results);

  // A run that is killed while it writes leaves a part of a line: that cell alone is computed anew.
  WriteFile(Results(), results.substr(0, results.size() - 20));
  EXPECT_EQ(Run(Study("table", {"--quick"})).exit_code, kDone);
  const std::vector<std::string> again = LinesOf(ReadFile(Results()));
  const std::vector<std::string> before = LinesOf(results);
  ASSERT_EQ(again.size(), before.size());
  EXPECT_TRUE(std::equal(before.begin(), before.end() - 1, again.begin()));
  EXPECT_EQ(Json::parse(again.back())["cell"], Json::parse(before.back())["cell"]);
}

TEST_F(TableTest, AnotherFileOfTheSameNameIsAnotherGraph) {
  const std::vector<std::string> arguments =
      Study("table", {"--datasets", "cora_ml", "--methods", "features", "--epsilons", "8", "--seeds", "1"});
  const CommandResult first = Run(arguments);
  ASSERT_EQ(first.exit_code, kDone) << first.err;
  EXPECT_THAT(first.out, HasSubstr("| Cora-ML, 0.002 | 8 | Features | 0.6107 | 0."));
  EXPECT_THAT(first.out, HasSubstr("\n- Cora-ML at epsilon 8: `auto` 0."));
  // Published and auto, with noise and without, and DPAR without noise twice.
  ASSERT_EQ(LinesOf(ReadFile(Results())).size(), 6U);
  Graph other = MakeGraph(1000, {{0, 1}});
  other.sizes.class_count = 2;
  other.labels[5] = 1;
  Write("cora_ml.npz", other);
  ASSERT_EQ(Run(arguments).exit_code, kDone);
  EXPECT_EQ(LinesOf(ReadFile(Results())).size(), 12U);
}

TEST_F(TableTest, RefusesWhatItDoesNotKnow) {
  const std::vector<std::vector<std::string>> cases = {
      {"--datasets", "reddit", "--datasets are among cora_ml, coauthor_cs, coauthor_phy; not 'reddit'"},
      {"--datasets", "coauthor_cs", "coauthor_cs.npz': No such file or directory"},
      {"--methods", "gcn", "--methods are among gap, sage, features, dpar-em0, dpar-em1, dpar-gm; not 'gcn'"},
      {"--epsilons", "1,101", "--epsilons must be from 0.001 to 100, got 101"},
      {"--seeds", "0", "--seeds must be from 1 to 10000, got 0"},
      {"--split", "metis", "--split is random, partition or region; not 'metis'"},
  };
  for (const auto& parts : cases) {
    ExpectRefused(Study("table", {parts[0], parts[1]}), kUsage, parts[2]);
  }
}

TEST_F(TableTest, RefusesAResultsFileThatIsNone) {
  // Not cut off, as the rest of a killed run's last line would be.
  WriteFile(Results(), "notes without a line break");
  ExpectRefused({"table", "--quick", "--data", directory_.path(), "--results", Results()}, kUsage, "ends in something");
  EXPECT_EQ(ReadFile(Results()), "notes without a line break");
  const auto refused = [this](int exit_code, const std::string& message) {
    ExpectRefused(Study("table", {"--quick"}), exit_code, message);
  };
  WriteFile(Results(), "{\"cell\": {}, \"result\": {\"none\": \"high\"}}\n");
  refused(kUsage, "line 1: 'none' is not a number");
  WriteFile(Results(), "not json\n");
  refused(kUsage, "line 1 is none; give another file");
  ExpectRefused({"table", "--quick", "--data", directory_.path(), "--results", directory_.path()}, kUsage,
                "Is a directory");
  WriteFile(Results(), "");
  const int file = ::open(Results().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  refused(kFailed, "another run is writing");
  ::close(file);
}

}  // namespace
}  // namespace dpar::lab
