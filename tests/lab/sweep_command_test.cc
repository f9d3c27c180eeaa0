// dpar-lab sweep, embed and plot: what they write, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using ::testing::StartsWith;

class SweepTest : public StudyTest {
 protected:
  void SetUp() override { WriteStudyGraph(); }
};

TEST_F(SweepTest, MeasuresEveryMethodAtEveryValue) {
  const std::vector<std::string> arguments =
      Study("sweep", {"--sweep", "epsilon", "--accountant", "as-published", "--values", "8", "--seeds", "1"});
  const Json json = MustJson(arguments);
  EXPECT_THAT(KeysOf(json),
              ElementsAre("sweep", "axis", "graph", "delta", "accountant", "inference", "split", "points"));
  EXPECT_EQ(json["inference"], "power");
  ASSERT_EQ(json["points"].size(), 4U);
  const Json& point = json["points"][3];
  EXPECT_THAT(KeysOf(point), ElementsAre("method", "epsilon", "value", "seeds", "mean", "std", "plain_mean",
                                         "plain_std", "paper", "sound_epsilon", "published_epsilon"));
  EXPECT_EQ(point["method"], "dpar-gm");
  EXPECT_EQ(point["epsilon"], 8.0);
  EXPECT_EQ(point["seeds"], 1);
  EXPECT_EQ(point["paper"], 0.4854);
  EXPECT_NEAR(point["published_epsilon"].get<double>(), 8, 1e-6);
  EXPECT_GT(point["sound_epsilon"].get<double>(), 8);

  // The same cells as CSV, none of them computed again.
  const std::string results = ReadFile(Results());
  const CommandResult csv = Run(arguments);
  EXPECT_EQ(ReadFile(Results()), results);
  const std::vector<std::string> lines = absl::StrSplit(csv.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(
      lines[0],
      "sweep,graph,delta,accountant,inference,split,method,epsilon,value,seeds,mean,std,plain_mean,plain_std,paper,"
      "sound_epsilon,published_epsilon");
  EXPECT_THAT(lines[4], StartsWith("epsilon,cora_ml,0.002,as-published,power,random,dpar-gm,8.0,8.0,1,0."));
}

TEST_F(SweepTest, MethodsThatReadEdgesHaveCurvesOfTheirOwnAndPredictByThemselves) {
  const Json json =
      MustJson(Study("sweep", {"--sweep", "epsilon", "--methods", "gap", "--values", "8", "--seeds", "1"}));
  EXPECT_EQ(json["inference"], "none");
  ASSERT_EQ(json["points"].size(), 1U);
  const Json& point = json["points"][0];
  EXPECT_EQ(point["method"], "gap");
  EXPECT_EQ(point["mean"], point["plain_mean"]);
  EXPECT_EQ(point["paper"], 0.5733);
  EXPECT_EQ(point["sound_epsilon"], 8.0);
  ExpectRefused(Study("sweep", {"--sweep", "epsilon", "--methods", "gap,features"}), kUsage, "swept apart");
  ExpectRefused(Study("sweep", {"--sweep", "epsilon", "--methods", "gcn"}), kUsage, "not 'gcn'");
}

TEST_F(SweepTest, RivalsAreSweptAlongWhatTheyAloneHave) {
  // The promise of the graph's own degree is what every other sweep has: the same cell.
  const Json own = MustJson(Study("sweep", {"--sweep", "promise", "--values", "1,8", "--seeds", "1"}));
  ASSERT_EQ(own["points"].size(), 4U);
  for (const Json& point : own["points"]) {
    EXPECT_EQ(point["method"], "gap");
    EXPECT_EQ(point["sound_epsilon"], point["epsilon"]);
  }
  const std::string results = ReadFile(Results());
  EXPECT_EQ(std::count(results.begin(), results.end(), '\n'), 4);
  Json promises = Json::array();
  for (const absl::string_view line : absl::StrSplit(results, '\n', absl::SkipEmpty())) {
    const Json cell = Json::parse(line)["cell"];
    promises.push_back(cell.contains("promise") ? cell["promise"] : Json(nullptr));
  }
  EXPECT_EQ(std::count(promises.begin(), promises.end(), nullptr), 2);
  EXPECT_EQ(std::count(promises.begin(), promises.end(), Json(8 * largest_degree_)), 2);
  MustJson(Study("sweep", {"--sweep", "epsilon", "--methods", "gap", "--values", "1,8", "--seeds", "1"}));
  EXPECT_EQ(ReadFile(Results()), results);

  const Json hops = MustJson(Study("sweep", {"--sweep", "hops", "--values", "1,5", "--seeds", "1"}));
  ASSERT_EQ(hops["points"].size(), 4U);
  EXPECT_THAT(ReadFile(Results()), HasSubstr("\"options\":{\"hops\":5}"));
  // Settings for DP-APPR are not theirs.
  const Json batch =
      MustJson(Study("sweep", {"--sweep", "batch", "--methods", "gap", "--values", "60", "--seeds", "1"}));
  EXPECT_EQ(batch["points"].size(), 1U);
  ExpectRefused(Study("sweep", {"--sweep", "promise", "--values", "0.5"}), kUsage, "--values must be from 1 to");
  ExpectRefused(Study("sweep", {"--sweep", "hops", "--methods", "sage"}), kUsage, "does not read hops");
}

TEST_F(SweepTest, TakesKnownCellsFromFilesThatItDoesNotWrite) {
  const std::vector<std::string> point = {"--sweep", "epsilon", "--methods", "gap", "--values", "8", "--seeds", "1"};
  const Json computed = MustJson(Study("sweep", point));
  const std::string known = directory_.File("known.jsonl");
  WriteFile(known, ReadFile(Results()));
  WriteFile(Results(), "");
  std::vector<std::string> again = point;
  again.insert(again.end(), {"--known", known});
  EXPECT_EQ(MustJson(Study("sweep", again)), computed);
  EXPECT_EQ(ReadFile(Results()), "");
  WriteFile(known, "notes\n");
  ExpectRefused(Study("sweep", again), kUsage, "--known must hold results");
  again.back() = directory_.File("missing.jsonl");
  ExpectRefused(Study("sweep", again), kUsage, "--known cannot be opened");
}

TEST_F(SweepTest, SoundNoiseCostsWhatWasAskedFor) {
  const Json json = MustJson(Study("sweep", {"--sweep", "bound", "--values", "0.01", "--seeds", "1"}));
  EXPECT_EQ(json["inference"], "mean-field");
  ASSERT_EQ(json["points"].size(), 3U);
  for (const Json& point : json["points"]) {
    EXPECT_EQ(point["epsilon"], 8.0);
    EXPECT_EQ(point["value"], 0.01);
    EXPECT_EQ(point["sound_epsilon"], 8.0);
    EXPECT_TRUE(point["published_epsilon"].is_null());
    EXPECT_TRUE(point["paper"].is_null()) << "its figure has another K than Table 1";
  }
  // C1 belongs to GM, C2 to the others.
  const std::string results = ReadFile(Results());
  EXPECT_THAT(results,
              HasSubstr("\"method\":\"DPAR_GM\",\"accountant\":\"ACCOUNTANT_UNSPECIFIED\",\"options\":{\"top_k\":4,"
                        "\"row_clip\":0.01}"));
  EXPECT_THAT(results, HasSubstr("\"options\":{\"top_k\":4,\"entry_clip\":0.01}"));
}

TEST_F(SweepTest, ThePublishedEpsilonIsBelowTheSoundOne) {
  const Json json =
      MustJson(Study("sweep", {"--sweep", "accounting", "--accountant", "as-published", "--values", "2"}));
  ASSERT_EQ(json["points"].size(), 4U);
  for (const Json& point : json["points"]) {
    EXPECT_NEAR(point["published_epsilon"].get<double>(), 2, 1e-6);
    EXPECT_GT(point["sound_epsilon"].get<double>(), 2);
    EXPECT_FALSE(point.contains("mean"));
  }
  EXPECT_EQ(ReadFile(Results()), "") << "nothing was trained";
}

TEST_F(SweepTest, RefusesWhatItDoesNotKnow) {
  const std::vector<std::vector<std::string>> cases = {
      {"--sweep", "k",
       "--sweep is one of accounting, epsilon, ratio, node-sampling, bound, top-k, appr-nodes, batch, gradient-clip, "},
      {"--sweep", "ratio", "--accountant", "best", "--accountant is sound or as-published; not 'best'"},
      {"--sweep", "accounting", "--accountant must be as-published"},
      {"--sweep", "ratio", "--dataset", "reddit", "are among cora_ml, coauthor_cs, coauthor_phy; not 'reddit'"},
      {"--sweep", "epsilon", "--values", "0", "--values must be from 0.001 to 100, got 0"},
      {"--sweep", "ratio", "--values", "1", "options.structure_share must be below 1"},
      {"--sweep", "top-k", "--values", "2.5", "set top_k takes a whole number; not '2.5'"},
  };
  for (const std::vector<std::string>& parts : cases) {
    ExpectRefused(Study("sweep", {parts.begin(), parts.end() - 1}), kUsage, parts.back());
  }
}

class PlotTest : public StudyTest {
 protected:
  static bool HasMatplotlib() {
    return e2e::RunCommand({"/usr/bin/python3", "-c", "import matplotlib"}, {}).exit_code == 0;
  }
  [[nodiscard]] std::vector<std::string> Plot(const std::vector<std::string>& files) const {
    std::vector<std::string> arguments = {"plot", "-o", directory_.path()};
    arguments.insert(arguments.end(), files.begin(), files.end());
    return arguments;
  }
};

constexpr const char* kSweepCsv =
    "sweep,graph,delta,accountant,inference,split,method,epsilon,value,seeds,mean,std,plain_mean,plain_std,paper,"
    "sound_epsilon,published_epsilon\n"
    "top-k,cora_ml,0.002,sound,mean-field,random,dpar-gm,8.0,2.0,5,0.8,0.01,0.8,0.01,0.4854,8.0,\n"
    "top-k,cora_ml,0.002,sound,mean-field,random,dpar-gm,8.0,4.0,5,0.7,0.01,0.8,0.01,,8.0,\n";

TEST_F(PlotTest, DrawsAxesUnitsAndThePapersPoints) {
  if (!HasMatplotlib()) {
    GTEST_SKIP() << "Debian's python3-matplotlib is not installed";
  }
  const std::string file = directory_.File("top-k.csv");
  WriteFile(file, kSweepCsv);
  const CommandResult result = Run(Plot({file}));
  ASSERT_EQ(result.exit_code, kDone) << result.err;
  EXPECT_THAT(ReadFile(directory_.File("top-k.png")), StartsWith("\x89PNG\r\n"));
  const std::string svg = ReadFile(directory_.File("top-k.svg"));
  for (const char* text : {"K, entries of a row", "accuracy (share of nodes)", "DPAR-GM", "paper's Table 1",
                           "standard deviation over 5 seeds", "SOUND noise, our plan"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST_F(PlotTest, DrawsRivalsApartBesideWhatNeedsNoPromise) {
  if (!HasMatplotlib()) {
    GTEST_SKIP() << "Debian's python3-matplotlib is not installed";
  }
  const std::string header = std::string(kSweepCsv).substr(0, std::string(kSweepCsv).find('\n') + 1);
  const std::string ours = directory_.File("ours.csv");
  WriteFile(ours, header +
                      "epsilon,cora_ml,0.002,sound,mean-field,random,features,8.0,8.0,5,0.8,0.01,0.8,0.01,,8.0,\n"
                      "epsilon,cora_ml,0.002,sound,mean-field,random,dpar-gm,8.0,8.0,5,0.8,0.01,0.8,0.01,,8.0,\n");
  const std::string rivals = directory_.File("rivals.csv");
  WriteFile(rivals, header + "epsilon,cora_ml,0.002,sound,none,random,gap,8.0,8.0,3,0.7,0.01,0.7,0.01,0.5733,8.0,\n");
  const CommandResult result = Run(Plot({ours, rivals}));
  ASSERT_EQ(result.exit_code, kDone) << result.err;
  const std::string own = ReadFile(directory_.File("epsilon.svg"));
  EXPECT_THAT(own, HasSubstr("DPAR-GM"));
  EXPECT_THAT(own, ::testing::Not(HasSubstr("GAP")));
  const std::string beside = ReadFile(directory_.File("epsilon-rivals.svg"));
  for (const char* text : {"GAP", "Features", "over 3 or 5 seeds", "Features: mean-field", "(F, P)"}) {
    EXPECT_THAT(beside, HasSubstr(text));
  }
  EXPECT_THAT(beside, ::testing::Not(HasSubstr("DPAR-GM")));
}

TEST_F(PlotTest, DrawsWhatEmbedWrites) {
  if (!HasMatplotlib()) {
    GTEST_SKIP() << "Debian's python3-matplotlib is not installed";
  }
  WriteStudyGraph();
  const CommandResult embedded =
      Run({"embed", "--data", directory_.path(), "--epsilons", "8", "--nodes", "100", "--threads", "2"});
  ASSERT_EQ(embedded.exit_code, kDone) << embedded.err;
  EXPECT_THAT(embedded.out, StartsWith("graph,accountant,method,epsilon,node,label,e0,e1,e2,e3\n"
                                       "cora_ml,as-published,dpar-gm,8,0,"));
  EXPECT_EQ(std::count(embedded.out.begin(), embedded.out.end(), '\n'), 301);
  const std::string file = directory_.File("embeddings.csv");
  WriteFile(file, embedded.out);
  const CommandResult drawn = Run(Plot({file}));
  ASSERT_EQ(drawn.exit_code, kDone) << drawn.err;
  EXPECT_THAT(ReadFile(directory_.File("embeddings.svg")), HasSubstr("auto, SOUND, epsilon 8"));
}

TEST_F(PlotTest, RefusesFilesThatItCannotDraw) {
  ExpectRefused({"plot", "-o", directory_.File("none"), "x.csv"}, kUsage, "--output must be a directory that is there");
  ExpectRefused({"plot"}, kUsage, "files is required");
  if (!HasMatplotlib()) {
    GTEST_SKIP() << "Debian's python3-matplotlib is not installed";
  }
  const std::string file = directory_.File("other.csv");
  WriteFile(file, "a,b\n1,2\n");
  const CommandResult other = Run(Plot({file}));
  EXPECT_EQ(other.exit_code, kFailed);
  EXPECT_THAT(other.err, HasSubstr("other.csv' is no CSV file of dpar-lab sweep or dpar-lab embed"));
  EXPECT_THAT(other.err, HasSubstr("dpar-lab: no picture was drawn"));
  const CommandResult missing = Run(Plot({directory_.File("missing.csv")}));
  EXPECT_EQ(missing.exit_code, kFailed);
  EXPECT_THAT(missing.err, HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace dpar::lab
