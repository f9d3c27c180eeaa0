#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <vector>

#include "client/cli/testing/command_run.h"
#include "core/graph/graph_file.h"
#include "core/graph/npz.h"
#include "core/graph/sealed_graph.h"

namespace dpar {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunCommand;

class GraphCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "/graph_commands_test";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  std::string directory_;
};

TEST_F(GraphCommandsTest, GenerateWritesAGraphOfTheSizesAskedFor) {
  const CommandRun run = RunCommand({"graph", "generate", "-o", Path("g.npz"), "--nodes", "300", "--classes", "3",
                                     "--features", "60", "--degree", "4", "--homophily", "0.9", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["command"], "graph generate");
  EXPECT_EQ(run.json()["node_count"], 300);
  const auto graph = ReadGraphFile(Path("g.npz"), GraphLimits(), std::nullopt);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->graph.sizes, (PublicSizes{300, 60, 3}));
  EXPECT_EQ(run.json()["edge_count"], graph->graph.edge_count());
}

TEST_F(GraphCommandsTest, GenerateMakesAPowerLawOfDegrees) {
  const auto most = [&](const std::string& exponent) {
    EXPECT_EQ(RunCommand({"graph", "generate", "-o", Path("g.npz"), "--nodes", "5000", "--degree-exponent", exponent})
                  .exit_code,
              0);
    return RunCommand({"graph", "inspect", Path("g.npz"), "--json"}).json()["degree"]["most"].get<int>();
  };
  // Of degree 8: a node of 5000 that are alike has 50 neighbours with probability below 1e-22. The first node of its
  // class of 1250 expects 8 * 1250^(2/3), over 900, before merging.
  EXPECT_LT(most("0"), 50);
  EXPECT_GT(most("2.5"), 300);
}

TEST_F(GraphCommandsTest, GenerateWritesASealedGraphWhenTheNameSaysSo) {
  const CommandRun run = RunCommand(
      {"graph", "generate", "-o", Path("g.sealed"), "--nodes", "300", "--classes", "3", "--features", "60", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto sealed = SealedGraph::Open(Path("g.sealed"));
  ASSERT_TRUE(sealed.ok()) << sealed.status();
  EXPECT_EQ(sealed->sizes(), (PublicSizes{300, 60, 3}));
  const auto edges = sealed->Edges();
  ASSERT_TRUE(edges.ok()) << edges.status();
  EXPECT_EQ(run.json()["edge_count"], edges->edge_count());
}

TEST_F(GraphCommandsTest, InspectAndSplitTakeASealedGraphAsTheyTakeAnNpz) {
  ASSERT_EQ(RunCommand({"graph", "generate", "-o", Path("g.npz"), "--nodes", "300"}).exit_code, 0);
  ASSERT_EQ(RunCommand({"graph", "convert", Path("g.npz"), "-o", Path("g.sealed")}).exit_code, 0);
  auto npz = RunCommand({"graph", "inspect", Path("g.npz"), "--json"}).json();
  auto sealed = RunCommand({"graph", "inspect", Path("g.sealed"), "--json"}).json();
  npz.erase("file");
  sealed.erase("file");
  EXPECT_EQ(sealed, npz);
  const CommandRun split =
      RunCommand({"graph", "split", Path("g.sealed"), "--train", Path("a.npz"), "--test", Path("b.npz"), "--json"});
  ASSERT_EQ(split.exit_code, 0) << split.err;
  EXPECT_EQ(split.json()["test"]["node_count"], 60);
}

TEST_F(GraphCommandsTest, GenerateSaysWhatItDoes) {
  const CommandRun run = RunCommand({"graph", "generate", "-o", Path("g.npz"), "--nodes", "10"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "generating\nwriting\n");
  EXPECT_THAT(run.out, HasSubstr("next: dpar graph inspect " + Path("g.npz")));
}

TEST_F(GraphCommandsTest, TwoGraphsDiffer) {
  ASSERT_EQ(RunCommand({"graph", "generate", "-o", Path("a.npz"), "--nodes", "200"}).exit_code, 0);
  ASSERT_EQ(RunCommand({"graph", "generate", "-o", Path("b.npz"), "--nodes", "200"}).exit_code, 0);
  EXPECT_NE(CanonicalContent(ReadGraphFile(Path("a.npz"), GraphLimits(), std::nullopt)->graph),
            CanonicalContent(ReadGraphFile(Path("b.npz"), GraphLimits(), std::nullopt)->graph));
}

TEST_F(GraphCommandsTest, GenerateRefusesBadOptionsAndPlaces) {
  EXPECT_EQ(RunCommand({"graph", "generate", "-o", Path("g.npz"), "--nodes", "0"}).exit_code, 2);
  EXPECT_EQ(RunCommand({"graph", "generate", "-o", Path("g.npz"), "--homophily", "1.5"}).exit_code, 2);
  EXPECT_EQ(RunCommand({"graph", "generate", "-o", Path("g.npz"), "--homophily", "nan"}).exit_code, 2);
  for (const char* exponent : {"1.5", "-1", "11", "nan"}) {
    const CommandRun run =
        RunCommand({"graph", "generate", "-o", Path("g.npz"), "--degree-exponent", exponent, "--json"});
    EXPECT_EQ(run.exit_code, 2) << exponent;
    EXPECT_EQ(run.json()["error"]["reason"], "INVALID_FIELD") << exponent;
  }
  EXPECT_EQ(RunCommand({"graph", "generate", "-o", Path("g.npz"), "--seed", "one"}).exit_code, 2);
  const CommandRun unknown = RunCommand({"graph", "generate", "-o", Path("g.csv")});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("must end in .npz or .sealed"));
  EXPECT_EQ(RunCommand({"graph", "generate", "-o", directory_}).exit_code, 2);
  EXPECT_EQ(RunCommand({"graph", "generate", "-o", Path("no/g.npz")}).exit_code, 2);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(GraphCommandsTest, InspectShowsSizesDegreesLabelsAndWhatImportWouldDo) {
  ASSERT_EQ(RunCommand({"graph", "generate", "-o", Path("g.npz"), "--nodes", "300", "--classes", "3"}).exit_code, 0);
  const CommandRun run = RunCommand({"graph", "inspect", Path("g.npz"), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json json = run.json();
  EXPECT_EQ(json["node_count"], 300);
  EXPECT_EQ(json["class_count"], 3);
  EXPECT_EQ(
      json["label_counts"][0].get<int>() + json["label_counts"][1].get<int>() + json["label_counts"][2].get<int>(),
      300);
  EXPECT_EQ(json["import"]["self_loops_dropped"], 0);
  EXPECT_NEAR(json["degree"]["mean"].get<double>(), 2.0 * json["edge_count"].get<double>() / 300, 1e-12);
  const CommandRun text = RunCommand({"graph", "inspect", Path("g.npz")});
  EXPECT_THAT(text.out, HasSubstr("nodes     300"));
}

TEST_F(GraphCommandsTest, InspectReadsARealGraphWhenItIsThere) {
  const char* source = std::getenv("DPAR_SOURCE_DIR");
  const std::string path = std::string(source == nullptr ? "." : source) + "/../shared/data/cora_ml.npz";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path << " is not there; the generated graphs of the other tests cover the command";
  }
  const CommandRun run = RunCommand({"graph", "inspect", path, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["node_count"], 2995);
  EXPECT_EQ(run.json()["class_count"], 7);
}

TEST_F(GraphCommandsTest, BadFilesAreToldApart) {
  std::ofstream(Path("text.npz")) << "this is not a zip";
  std::ofstream(Path("empty.npz"));
  const CommandRun missing = RunCommand({"graph", "inspect", Path("missing.npz")});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("No such file"));
  const CommandRun directory = RunCommand({"graph", "inspect", directory_});
  EXPECT_EQ(directory.exit_code, 2);
  EXPECT_THAT(directory.err, HasSubstr("it is a directory"));
  const CommandRun text = RunCommand({"graph", "inspect", Path("text.npz"), "--json"});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_EQ(text.json()["error"]["reason"], "INVALID_GRAPH");
  EXPECT_THAT(text.err, HasSubstr("try: dpar graph convert FILE"));
  EXPECT_THAT(text.err, Not(HasSubstr("try: dpar graph inspect")));
  EXPECT_EQ(RunCommand({"graph", "inspect", Path("empty.npz")}).exit_code, 1);
}

TEST_F(GraphCommandsTest, SplitPartitionsTheNodesAndRemovesEdgesBetweenTheParts) {
  ASSERT_EQ(RunCommand({"graph", "generate", "-o", Path("g.npz"), "--nodes", "500", "--classes", "5"}).exit_code, 0);
  const CommandRun run = RunCommand({"graph", "split", Path("g.npz"), "--train", Path("train.npz"), "--test",
                                     Path("test.npz"), "--test-share", "0.3", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto whole = ReadGraphFile(Path("g.npz"), GraphLimits(), std::nullopt);
  const auto train = ReadGraphFile(Path("train.npz"), GraphLimits(), std::nullopt);
  const auto test = ReadGraphFile(Path("test.npz"), GraphLimits(), std::nullopt);
  ASSERT_TRUE(train.ok() && test.ok());
  EXPECT_EQ(train->graph.sizes, (PublicSizes{350, 500, 5}));
  EXPECT_EQ(test->graph.sizes, (PublicSizes{150, 500, 5}));
  EXPECT_EQ(train->graph.features.columns.size() + test->graph.features.columns.size(),
            whole->graph.features.columns.size());
  EXPECT_EQ(run.json()["edges_removed"],
            whole->graph.edge_count() - train->graph.edge_count() - test->graph.edge_count());
}

// A count of the labels would tell of a class's only node to all who see the parts' class count.
TEST_F(GraphCommandsTest, SplitNeedsAFileOrACallerThatStatesTheClasses) {
  const std::vector<int64_t> offsets = {0, 1, 2};
  const std::vector<int64_t> indices = {1, 0};
  const std::vector<int64_t> ones = {1, 1};
  const std::vector<int64_t> shape = {2, 2};
  const auto view = [](const std::vector<int64_t>& entries) {
    return NpyView{{static_cast<int64_t>(entries.size())}, std::span<const int64_t>(entries)};
  };
  std::map<std::string, NpyView> arrays = {{"labels", view(indices)}};
  for (const std::string matrix : {"adj", "attr"}) {
    arrays[matrix + "_data"] = view(ones);
    arrays[matrix + "_indices"] = view(indices);
    arrays[matrix + "_indptr"] = view(offsets);
    arrays[matrix + "_shape"] = view(shape);
  }
  ASSERT_TRUE(WriteNpzFile(Path("g.npz"), arrays).ok());
  std::vector<std::string> split = {"graph",  "split",          Path("g.npz"),  "--train", Path("train.npz"),
                                    "--test", Path("test.npz"), "--test-share", "0.5"};
  const CommandRun refused = RunCommand(split);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("num_classes is missing"));
  EXPECT_THAT(refused.err, HasSubstr("state it with --classes"));
  EXPECT_FALSE(std::filesystem::exists(Path("train.npz")));
  split.insert(split.end(), {"--classes", "5"});
  ASSERT_EQ(RunCommand(split).exit_code, 0);
  EXPECT_EQ(*ReadGraphSizes(Path("train.npz"), {}, std::nullopt), (PublicSizes{1, 2, 5}));
  EXPECT_THAT(RunCommand({"graph", "inspect", Path("g.npz")}).out,
              HasSubstr("classes   2 (by the labels; an upload needs --classes, since the file has no num_classes)"));
}

TEST_F(GraphCommandsTest, SplitRefusesBadSharesAndPlaces) {
  ASSERT_EQ(RunCommand({"graph", "generate", "-o", Path("g.npz"), "--nodes", "10"}).exit_code, 0);
  const auto split = [&](const std::string& share, const std::string& train, const std::string& test) {
    return RunCommand({"graph", "split", Path("g.npz"), "--train", train, "--test", test, "--test-share", share})
        .exit_code;
  };
  EXPECT_EQ(split("0", Path("a"), Path("b")), 2);
  EXPECT_EQ(split("1", Path("a"), Path("b")), 2);
  EXPECT_EQ(split("nan", Path("a"), Path("b")), 2);
  EXPECT_EQ(split("0.01", Path("a"), Path("b")), 2);
  EXPECT_EQ(split("0.2", Path("a"), Path("a")), 2);
  EXPECT_EQ(split("0.2", directory_, Path("b")), 2);
  EXPECT_EQ(split("0.2", Path("a"), Path("no/b")), 2);
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
}

}  // namespace
}  // namespace dpar
