#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    Write("schema.yaml",
          "nodes:\n  id: name\n  label: {column: kind, classes: [a, b]}\n  columns:\n    yes: {type: flag}\n"
          "edges: {source: source, target: target}\n");
    Write("nodes.csv", "name,kind,yes\nn0,a,yes\nn1,b,no\nn2,,yes\nn3,b,\n");
    Write("edges.csv", "source,target\nn0,n1\nn1,n2\nn2,n1\nn3,n1\nn3,n1\nn2,n2\n");
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(Path(name)) << text; }
  [[nodiscard]] std::string Bytes(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] Graph Read(const std::string& name) const {
    const auto imported = ReadGraphFile(Path(name), GraphLimits(), std::nullopt);
    EXPECT_TRUE(imported.ok()) << imported.status();
    return imported.ok() ? imported->graph : Graph();
  }
  [[nodiscard]] CommandRun ConvertTables(const std::string& output, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"graph",   "convert",         "--schema", Path("schema.yaml"),
                                          "--nodes", Path("nodes.csv"), "--edges",  Path("edges.csv"),
                                          "-o",      Path(output)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunCommand(arguments);
  }

  std::string directory_;
};

TEST_F(ConvertCommandTest, TakesTheClassesOfAGraphFileFromItOrFromTheCaller) {
  ASSERT_EQ(ConvertTables("g.npz").exit_code, 0);
  EXPECT_EQ(RunCommand({"graph", "convert", Path("g.npz"), "-o", Path("h.npz"), "--classes", "0"}).exit_code, 2);
  ASSERT_EQ(RunCommand({"graph", "convert", Path("g.npz"), "-o", Path("h.npz")}).exit_code, 0);
  EXPECT_EQ(Read("h.npz").sizes, (PublicSizes{4, 4, 2}));
  Graph plain = Read("g.npz");
  ASSERT_EQ(WriteGraphFile(Path("g.npz"), plain), absl::OkStatus());  // without names
  ASSERT_EQ(RunCommand({"graph", "convert", Path("g.npz"), "-o", Path("h.sealed"), "--classes", "7"}).exit_code, 0);
  EXPECT_EQ(RunCommand({"graph", "convert", Path("h.sealed"), "-o", Path("h.npz"), "--classes", "7"}).exit_code, 1);
  ASSERT_EQ(RunCommand({"graph", "convert", Path("h.sealed"), "-o", Path("h.npz")}).exit_code, 0);
  EXPECT_EQ(Read("h.npz").sizes, (PublicSizes{4, 4, 7}));
}

TEST_F(ConvertCommandTest, MakesAGraphFileFromTables) {
  const CommandRun run = ConvertTables("g.npz", {"--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Graph graph = Read("g.npz");
  EXPECT_EQ(graph.sizes, (PublicSizes{4, 4, 2}));
  EXPECT_THAT(graph.edge_offsets, ElementsAre(0, 1, 4, 5, 6));
  EXPECT_THAT(graph.neighbours, ElementsAre(1, 0, 2, 3, 1, 1));
  EXPECT_THAT(graph.features.columns, ElementsAre(0, 1, 0)) << "the last node has no value at all";
  EXPECT_THAT(graph.features.values, ElementsAre(1, 1, 1));
  EXPECT_THAT(graph.labels, ElementsAre(0, 1, -1, 1));
  const Json json = run.json();
  EXPECT_EQ(json["command"], "graph convert");
  EXPECT_EQ(json["file"], Path("g.npz"));
  EXPECT_EQ(json["node_count"], 4);
  EXPECT_EQ(json["feature_count"], 4);
  EXPECT_EQ(json["class_count"], 2);
  EXPECT_EQ(json["edge_count"], 3);
  EXPECT_EQ(json["import"]["edges_symmetrised"], 2);
  EXPECT_EQ(json["import"]["duplicates_merged"], 1);
  EXPECT_EQ(json["import"]["self_loops_dropped"], 1);
  EXPECT_EQ(json["import"]["unlabelled_nodes"], 1);
  EXPECT_EQ(json["import"]["zero_features_dropped"], 0);
}

TEST_F(ConvertCommandTest, SaysWhatItDid) {
  const CommandRun run = ConvertTables("g.npz");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("writing\n"));
  EXPECT_EQ(run.out, "wrote " + Path("g.npz") +
                         ": 4 nodes, 3 edges, 4 features, 2 classes\n"
                         "symmetrised 2 directed edges, merged 1 duplicates, dropped 1 self loops and 0 zero features; "
                         "1 nodes have no label\n"
                         "next: dpar graph inspect " +
                         Path("g.npz") + ", dpar upload " + Path("g.npz") + "\n");
}

TEST_F(ConvertCommandTest, RewritesAGraphFileInItsNormalForm) {
  ASSERT_EQ(ConvertTables("a.npz").exit_code, 0);
  const CommandRun run = RunCommand({"graph", "convert", Path("a.npz"), "-o", Path("b.npz"), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["import"]["edges_symmetrised"], 0);
  EXPECT_EQ(Bytes("b.npz"), Bytes("a.npz")) << "it was in normal form already";
  ASSERT_EQ(RunCommand({"graph", "convert", Path("a.npz"), "-o", Path("a.npz")}).exit_code, 0) << "also in its place";
  EXPECT_EQ(Bytes("a.npz"), Bytes("b.npz"));
}

TEST_F(ConvertCommandTest, WritesAndReadsSealedGraphs) {
  const CommandRun sealing = ConvertTables("g.sealed");
  ASSERT_EQ(sealing.exit_code, 0) << sealing.err;
  EXPECT_THAT(sealing.out, Not(HasSubstr("next:")));
  EXPECT_TRUE(IsSealedGraph(Path("g.sealed")));
  const CommandRun run = RunCommand({"graph", "convert", Path("g.sealed"), "-o", Path("back.npz"), "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["edge_count"], 3);
  EXPECT_EQ(run.json()["import"]["edges_symmetrised"], 0);
  EXPECT_EQ(run.json()["import"]["unlabelled_nodes"], 1);
  ASSERT_EQ(ConvertTables("direct.npz").exit_code, 0);
  EXPECT_EQ(Bytes("back.npz"), Bytes("direct.npz"));
}

TEST_F(ConvertCommandTest, RefusesBadArguments) {
  Write("text.npz", "read only once the arguments are right");
  const auto refused = [](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"graph", "convert"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const CommandRun run = RunCommand(all);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    return run.err;
  };
  const std::string out = Path("out.npz");
  EXPECT_THAT(refused({"-o", out}), HasSubstr("give a graph file, or tables"));
  EXPECT_THAT(refused({Path("edges.csv")}), HasSubstr("--output"));
  EXPECT_THAT(refused({Path("edges.csv"), "--edges", Path("text.npz"), "-o", out}), HasSubstr("not both"));
  EXPECT_THAT(refused({"--edges", Path("text.npz"), "-o", out}), HasSubstr("--schema, --nodes and --edges"));
  EXPECT_THAT(refused({Path("missing.npz"), "-o", out}), HasSubstr("No such file"));
  EXPECT_THAT(refused({directory_, "-o", out}), HasSubstr("it is a directory"));
  EXPECT_THAT(refused({Path("text.npz"), "-o", Path("out.txt")}), HasSubstr("must end in .npz, .sealed or .graphml"));
  EXPECT_THAT(refused({Path("text.npz"), "-o", Path("no/out.npz")}), HasSubstr("is not a directory"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(ConvertCommandTest, RefusesBadFilesAndWritesNothing) {
  Write("nodes.csv", "name,kind,yes\nn0,a,yes\nn1,b,no\nn0,,yes\n");
  const CommandRun twice = ConvertTables("g.npz", {"--json"});
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_EQ(twice.json()["error"]["reason"], "INVALID_GRAPH");
  EXPECT_EQ(twice.json()["error"]["message"],
            "nodes.csv line 4, column name: the id 'n0' stands in line 2 already; a node is one row, and its id is its "
            "own");
  EXPECT_EQ(twice.json()["error"]["metadata"]["line"], "4");
  Write("text.npz", "this is not a zip");
  EXPECT_EQ(RunCommand({"graph", "convert", Path("text.npz"), "-o", Path("g.npz")}).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(Path("g.npz")));
}

TEST_F(ConvertCommandTest, RefusesADamagedSealedGraph) {
  ASSERT_EQ(ConvertTables("g.sealed").exit_code, 0);
  std::string bytes = Bytes("g.sealed");
  bytes.resize(bytes.size() - 1);
  std::ofstream(Path("cut.sealed"), std::ios::binary) << bytes;
  EXPECT_EQ(RunCommand({"graph", "convert", Path("cut.sealed"), "-o", Path("g.npz")}).exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(Path("g.npz")));
}

}  // namespace
}  // namespace dpar
