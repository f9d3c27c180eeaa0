#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/cli/testing/command_run.h"
#include "core/graph/graph_file.h"
#include "core/graph/sealed_graph.h"

namespace dpar {
namespace {

using testing::CommandRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunCommand;

class ConvertCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "/convert_command_test";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    Write("edges.csv", "source,target\n0,1\n1,2\n2,1\n3,1\n3,1\n2,2\n");
    Write("dense.csv", "1.5,0,2\n0,3,0\n0,0,0\n0,0,4\n");
    Write("sparse.csv", "0\t0\t1.5\n0\t2\t2\n1\t1\t3\n3\t2\t4\n3\t0\t0\n");
    Write("labels.csv", "0\n1\n-1\n1\n");
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(Path(name)) << text; }
  [[nodiscard]] std::string Bytes(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void Gzip(const std::string& name) const {
    gzFile file = gzopen(Path(name + ".gz").c_str(), "wb");
    const std::string text = Bytes(name);
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
  }
  [[nodiscard]] Graph Read(const std::string& name) const {
    const auto imported = ReadGraphFile(Path(name), GraphLimits(), std::nullopt);
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? imported->graph : Graph();
  }
  [[nodiscard]] CommandRun ConvertText(const std::string& output, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"graph",      "convert",         "--edges",  Path("edges.csv"),
                                          "--features", Path("dense.csv"), "--labels", Path("labels.csv"),
                                          "-o",         Path(output)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "--classes") == more.end()) {
      arguments.insert(arguments.end(), {"--classes", "2"});
    }
    return RunCommand(arguments);
  }

  std::string directory_;
};

TEST_F(ConvertCommandTest, CountsNoSizeButTheLinesAndColumnsOfDenseFeatures) {
  const std::vector<std::string> dense = {"graph",      "convert",         "--edges",  Path("edges.csv"),
                                          "--features", Path("dense.csv"), "--labels", Path("labels.csv"),
                                          "-o",         Path("g.npz")};
  const CommandRun unstated = RunCommand(dense);
  EXPECT_EQ(unstated.exit_code, 2);
  EXPECT_THAT(unstated.err, HasSubstr("text files need --classes"));
  ASSERT_EQ(ConvertText("g.npz", {"--classes", "5"}).exit_code, 0);
  EXPECT_EQ(Read("g.npz").sizes, (PublicSizes{4, 3, 5}));
  EXPECT_EQ(ConvertText("g.npz", {"--nodes", "3", "--feature-count", "3"}).exit_code, 1);
  EXPECT_EQ(ConvertText("g.npz", {"--nodes", "0"}).exit_code, 2);
  std::vector<std::string> sparse = dense;
  sparse[5] = Path("sparse.csv");
  sparse.insert(sparse.end(), {"--sparse-features", "--classes", "2", "--nodes", "4"});
  EXPECT_EQ(RunCommand(sparse).exit_code, 2) << "without --feature-count";
}

TEST_F(ConvertCommandTest, TakesTheClassesOfAGraphFileFromItOrFromTheCaller) {
  ASSERT_EQ(ConvertText("g.npz").exit_code, 0);
  EXPECT_EQ(RunCommand({"graph", "convert", Path("g.npz"), "-o", Path("h.npz"), "--nodes", "4"}).exit_code, 2);
  ASSERT_EQ(RunCommand({"graph", "convert", Path("g.npz"), "-o", Path("h.npz")}).exit_code, 0);
  EXPECT_EQ(Read("h.npz").sizes, (PublicSizes{4, 3, 2}));
  ASSERT_EQ(RunCommand({"graph", "convert", Path("g.npz"), "-o", Path("h.sealed"), "--classes", "7"}).exit_code, 0);
  EXPECT_EQ(RunCommand({"graph", "convert", Path("h.sealed"), "-o", Path("h.npz"), "--classes", "7"}).exit_code, 1);
  ASSERT_EQ(RunCommand({"graph", "convert", Path("h.sealed"), "-o", Path("h.npz")}).exit_code, 0);
  EXPECT_EQ(Read("h.npz").sizes, (PublicSizes{4, 3, 7}));
}

TEST_F(ConvertCommandTest, MakesAGraphFileFromTextFiles) {
  const CommandRun run = ConvertText("g.npz", {"--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Graph graph = Read("g.npz");
  EXPECT_EQ(graph.sizes, (PublicSizes{4, 3, 2}));
  EXPECT_THAT(graph.edge_offsets, ElementsAre(0, 1, 4, 5, 6));
  EXPECT_THAT(graph.neighbours, ElementsAre(1, 0, 2, 3, 1, 1));
  EXPECT_THAT(graph.features.values, ElementsAre(1.5F, 2.0F, 3.0F, 4.0F));
  EXPECT_THAT(graph.labels, ElementsAre(0, 1, -1, 1));
  const Json json = run.json();
  EXPECT_EQ(json["command"], "graph convert");
  EXPECT_EQ(json["file"], Path("g.npz"));
  EXPECT_EQ(json["node_count"], 4);
  EXPECT_EQ(json["feature_count"], 3);
  EXPECT_EQ(json["class_count"], 2);
  EXPECT_EQ(json["edge_count"], 3);
  EXPECT_EQ(json["import"]["edges_symmetrised"], 2);
  EXPECT_EQ(json["import"]["duplicates_merged"], 1);
  EXPECT_EQ(json["import"]["self_loops_dropped"], 1);
  EXPECT_EQ(json["import"]["unlabelled_nodes"], 1);
  EXPECT_EQ(json["import"]["zero_features_dropped"], 0);
}

TEST_F(ConvertCommandTest, SaysWhatItDid) {
  const CommandRun run = ConvertText("g.npz", {"--nodes", "4", "--feature-count", "3", "--classes", "2"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "reading\nwriting\n");
  EXPECT_EQ(run.out, "wrote " + Path("g.npz") +
                         ": 4 nodes, 3 edges, 3 features, 2 classes\n"
                         "symmetrised 2 directed edges, merged 1 duplicates, dropped 1 self loops and 0 zero features; "
                         "1 nodes have no label\n"
                         "next: dpar graph inspect " +
                         Path("g.npz") + ", dpar upload " + Path("g.npz") + "\n");
}

TEST_F(ConvertCommandTest, ReadsSparseFeaturesAndGzip) {
  for (const char* name : {"edges.csv", "sparse.csv", "labels.csv"}) {
    Gzip(name);
  }
  const CommandRun run =
      RunCommand({"graph", "convert", "--edges", Path("edges.csv.gz"), "--features", Path("sparse.csv.gz"),
                  "--sparse-features", "--labels", Path("labels.csv.gz"), "-o", Path("sparse.npz"), "--json", "--nodes",
                  "4", "--feature-count", "3", "--classes", "2"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["import"]["zero_features_dropped"], 1);
  ASSERT_EQ(ConvertText("dense.npz").exit_code, 0);
  EXPECT_EQ(Read("sparse.npz"), Read("dense.npz"));
}

TEST_F(ConvertCommandTest, RewritesAGraphFileInItsNormalForm) {
  ASSERT_EQ(ConvertText("a.npz").exit_code, 0);
  const CommandRun run = RunCommand({"graph", "convert", Path("a.npz"), "-o", Path("b.npz"), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["import"]["edges_symmetrised"], 0);
  EXPECT_EQ(Bytes("b.npz"), Bytes("a.npz")) << "it was in normal form already";
  ASSERT_EQ(RunCommand({"graph", "convert", Path("a.npz"), "-o", Path("a.npz")}).exit_code, 0) << "also in its place";
  EXPECT_EQ(Bytes("a.npz"), Bytes("b.npz"));
}

TEST_F(ConvertCommandTest, NamesTheThreeFilesThatTextIs) {
  ASSERT_EQ(ConvertText("a.npz").exit_code, 0);
  const CommandRun run = RunCommand({"graph", "convert", Path("a.npz"), "-o", Path("b.csv"), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_FALSE(run.json().contains("file"));
  for (const char* part : {"edges", "features", "labels"}) {
    EXPECT_EQ(run.json()["files"][part], Path(absl::StrCat("b.", part, ".csv")));
    EXPECT_TRUE(std::filesystem::exists(Path(absl::StrCat("b.", part, ".csv"))));
  }
}

TEST_F(ConvertCommandTest, WritesAndReadsSealedGraphs) {
  const CommandRun sealing = ConvertText("g.sealed");
  ASSERT_EQ(sealing.exit_code, 0) << sealing.err;
  EXPECT_THAT(sealing.out, Not(HasSubstr("next:")));
  EXPECT_TRUE(IsSealedGraph(Path("g.sealed")));
  const CommandRun run = RunCommand({"graph", "convert", Path("g.sealed"), "-o", Path("back.npz"), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["edge_count"], 3);
  EXPECT_EQ(run.json()["import"]["edges_symmetrised"], 0);
  EXPECT_EQ(run.json()["import"]["unlabelled_nodes"], 1);
  ASSERT_EQ(ConvertText("direct.npz").exit_code, 0);
  EXPECT_EQ(Bytes("back.npz"), Bytes("direct.npz"));
}

TEST_F(ConvertCommandTest, RefusesBadArguments) {
  const auto refused = [](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"graph", "convert"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const CommandRun run = RunCommand(all);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    return run.err;
  };
  const std::string out = Path("out.npz");
  EXPECT_THAT(refused({"-o", out}), HasSubstr("give a graph file, or text files"));
  EXPECT_THAT(refused({Path("edges.csv")}), HasSubstr("--output"));
  EXPECT_THAT(refused({Path("a.npz"), "--edges", Path("edges.csv"), "-o", out}), HasSubstr("not both"));
  EXPECT_THAT(refused({Path("a.npz"), "--sparse-features", "-o", out}), HasSubstr("not both"));
  EXPECT_THAT(refused({"--edges", Path("edges.csv"), "-o", out}), HasSubstr("cannot read ''"));
  EXPECT_THAT(refused({Path("missing.npz"), "-o", out}), HasSubstr("No such file"));
  EXPECT_THAT(refused({directory_, "-o", out}), HasSubstr("it is a directory"));
  EXPECT_THAT(refused({Path("edges.csv"), "-o", Path("out.txt")}),
              HasSubstr("must end in .npz, .sealed, .graphml or .csv"));
  EXPECT_THAT(refused({Path("edges.csv"), "-o", Path("no/out.npz")}), HasSubstr("is not a directory"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(ConvertCommandTest, RefusesBadFilesAndWritesNothing) {
  Write("edges.csv", "0,1\n1,2\n7,1\n");
  const CommandRun far = ConvertText("g.npz", {"--json"});
  EXPECT_EQ(far.exit_code, 1);
  EXPECT_EQ(far.json()["error"]["reason"], "INVALID_GRAPH");
  EXPECT_EQ(far.json()["error"]["message"], "edges[3] is out of range");
  EXPECT_EQ(far.json()["error"]["metadata"]["position"], "3");
  Write("text.npz", "this is not a zip");
  EXPECT_EQ(RunCommand({"graph", "convert", Path("text.npz"), "-o", Path("g.npz")}).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(Path("g.npz")));
}

TEST_F(ConvertCommandTest, RefusesADamagedSealedGraph) {
  ASSERT_EQ(ConvertText("g.sealed").exit_code, 0);
  std::string bytes = Bytes("g.sealed");
  bytes.resize(bytes.size() - 1);
  std::ofstream(Path("cut.sealed"), std::ios::binary) << bytes;
  EXPECT_EQ(RunCommand({"graph", "convert", Path("cut.sealed"), "-o", Path("g.npz")}).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(Path("g.npz")));
}

}  // namespace
}  // namespace dpar
