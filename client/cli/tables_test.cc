// Tables in, names out, with everything that happens on the owner's machine.
#include "client/cli/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/testing/command_run.h"
#include "core/graph/local_graph.h"
#include "core/infer/model.h"

namespace dpar {
namespace {

using testing::CommandRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using testing::RunCommand;

class TablesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "/tables_test";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    ASSERT_EQ(RunCommand({"graph", "generate", "--tables", directory_, "--nodes", "400", "--seed", "5"}).exit_code, 0);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(Path(name)) << text; }
  [[nodiscard]] std::string Bytes(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] CommandRun Convert(const std::string& schema, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"graph",    "convert",
                                          "--schema", Path(schema),
                                          "--nodes",  Path("accounts.csv"),
                                          "--edges",  Path("transfers.csv"),
                                          "-o",       Path("g.npz")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunCommand(arguments);
  }
  // A model of the bank's schema, whose weights favour class 1.
  void WriteModel() const {
    const auto schema = ParseSchema(Bytes("accounts.schema.yaml"));
    ASSERT_TRUE(schema.ok()) << schema.status();
    Model model;
    model.feature_count = schema->feature_count();
    model.class_count = 3;
    model.weights.assign(static_cast<size_t>((model.feature_count + 1) * 3), 0);
    model.weights[model.weights.size() - 2] = 5;
    model.schema = CanonicalSchema(*schema);
    ASSERT_EQ(WriteModelFile(Path("model.npz"), model), absl::OkStatus());
  }

  std::string directory_;
};

TEST_F(TablesTest, TheBankIsWhatItsSchemaSaysAndTheSameForTheSameSeed) {
  const CommandRun run = Convert("accounts.schema.yaml", {"--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["node_count"], 400);
  EXPECT_EQ(run.json()["class_count"], 3);
  EXPECT_THAT(run.err, HasSubstr("column country: 'XK' is not among its 10 categories; it becomes 'other'"));
  EXPECT_THAT(run.err, HasSubstr("edges in all name an id that no node has"));
  std::filesystem::create_directories(Path("again"));
  ASSERT_EQ(RunCommand({"graph", "generate", "--tables", Path("again"), "--nodes", "400", "--seed", "5"}).exit_code, 0);
  EXPECT_EQ(Bytes("again/accounts.csv"), Bytes("accounts.csv"));
  EXPECT_EQ(Bytes("again/transfers.csv"), Bytes("transfers.csv"));
}

TEST_F(TablesTest, ADraftAsksAndIsRefusedUntilItIsAnswered) {
  const CommandRun drafted =
      RunCommand({"graph", "schema", Path("accounts.csv"), Path("transfers.csv"), "-o", Path("draft.yaml")});
  ASSERT_EQ(drafted.exit_code, 0) << drafted.err;
  EXPECT_THAT(drafted.out, HasSubstr("age: 0 to 110 holds what was seen. Declare a range that is public knowledge"));
  const auto draft = ParseSchema(Bytes("draft.yaml"));
  ASSERT_TRUE(draft.ok()) << draft.status();
  EXPECT_EQ(draft->id, "account");
  EXPECT_EQ(draft->label, "segment");
  EXPECT_EQ(draft->source, "from");
  EXPECT_EQ(draft->target, "to");
  std::vector<std::string> kinds;
  for (const ColumnSchema& column : draft->columns) {
    kinds.push_back(absl::StrCat(column.name, static_cast<int>(column.type)));
  }
  EXPECT_THAT(kinds, ElementsAre("age0", "balance0", "logins0", "opened3", "country1", "branch1", "card2", "purpose4",
                                 "phone6"));
  const CommandRun refused = Convert("draft.yaml");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("open questions"));
  EXPECT_THAT(refused.err, HasSubstr("age: "));
  EXPECT_FALSE(std::filesystem::exists(Path("g.npz")));
  const CommandRun accepted = Convert("draft.yaml", {"--accept-observed"});
  ASSERT_EQ(accepted.exit_code, 0) << accepted.err;
  const auto names = ReadGraphNames(Path("g.npz"), 400, 3);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(names->schema, HasSubstr(R"("accepted_observed":["segment","age")"));
}

TEST_F(TablesTest, NamesSurviveEveryFileAndASplit) {
  ASSERT_EQ(Convert("accounts.schema.yaml").exit_code, 0);
  ASSERT_EQ(RunCommand({"graph", "convert", Path("g.npz"), "-o", Path("g.sealed")}).exit_code, 0);
  ASSERT_EQ(RunCommand({"graph", "convert", Path("g.sealed"), "-o", Path("back.npz")}).exit_code, 0);
  EXPECT_EQ(Bytes("back.npz"), Bytes("g.npz"));
  const auto split = [this](const std::string& seed) {
    EXPECT_EQ(
        RunCommand({"graph", "split", Path("g.npz"), "--train", Path("a.npz"), "--test", Path("b.npz"), "--seed", seed})
            .exit_code,
        0);
    const auto names = ReadGraphNames(Path("b.npz"), 80, 3);
    EXPECT_TRUE(names.ok()) << names.status();
    return *names;
  };
  const GraphNames first = split("7");
  EXPECT_EQ(first.ids.size(), 80);
  EXPECT_THAT(std::string(first.ids[0]), ::testing::StartsWith("AC-"));
  EXPECT_THAT(first.classes, ElementsAre("private", "business", "dormant"));
  EXPECT_EQ(split("7"), first);
  EXPECT_NE(split("8").ids, first.ids);
}

TEST_F(TablesTest, TablesAreSplitAsTheGraphIs) {
  ASSERT_EQ(Convert("accounts.schema.yaml").exit_code, 0);
  ASSERT_EQ(
      RunCommand({"graph", "split", Path("g.npz"), "--train", Path("a.npz"), "--test", Path("b.npz"), "--seed", "7"})
          .exit_code,
      0);
  const CommandRun run = RunCommand({"graph", "split", "--schema", Path("accounts.schema.yaml"), "--nodes",
                                     Path("accounts.csv"), "--edges", Path("transfers.csv"), "--train", Path("train"),
                                     "--test", Path("test"), "--seed", "7", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.json()["test"]["node_count"], 80);
  ASSERT_EQ(RunCommand({"graph", "convert", "--schema", Path("accounts.schema.yaml"), "--nodes",
                        Path("test/accounts.csv"), "--edges", Path("test/transfers.csv"), "-o", Path("c.npz")})
                .exit_code,
            0);
  EXPECT_EQ(Bytes("c.npz"), Bytes("b.npz")) << "the rows, their order and the edges among them";
  EXPECT_EQ(RunCommand({"graph", "split", "--schema", Path("accounts.schema.yaml"), "--nodes", Path("accounts.csv"),
                        "--edges", Path("transfers.csv"), "--train", directory_, "--test", Path("test")})
                .exit_code,
            2)
      << "it would overwrite the tables";
}

TEST_F(TablesTest, AMalformedSchemaIsRefusedWithItsFile) {
  Write("broken.yaml", "node,class\nx,y\n");
  const auto result = Convert("broken.yaml");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("broken.yaml': schema, file: expected"));
}

TEST_F(TablesTest, ASplitOverwritesNothing) {
  for (const char* directory : {"n", "e", "x"}) {
    std::filesystem::create_directories(Path(directory));
  }
  std::filesystem::copy_file(Path("accounts.csv"), Path("n/data.csv"));
  std::filesystem::copy_file(Path("transfers.csv"), Path("e/data.csv"));
  std::filesystem::copy_file(Path("transfers.csv"), Path("x/transfers.csv"));
  const std::string transfers = Bytes("transfers.csv");
  const auto refusal = [this](const std::string& nodes, const std::string& edges, const std::string& train) {
    const CommandRun run =
        RunCommand({"graph", "split", "--schema", Path("accounts.schema.yaml"), "--nodes", Path(nodes), "--edges",
                    Path(edges), "--train", Path(train), "--test", Path("test")});
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_FALSE(std::filesystem::exists(Path("test"))) << "refused before anything is written";
    return run.err;
  };
  EXPECT_THAT(refusal("n/data.csv", "e/data.csv", "train"), HasSubstr("two parts would be written to"));
  EXPECT_THAT(refusal("accounts.csv", "x/transfers.csv", "x"), HasSubstr("holds the tables"));
  EXPECT_THAT(refusal("accounts.csv", "x/transfers.csv", "n/../x"), HasSubstr("holds the tables"));
  EXPECT_THAT(refusal("accounts.csv", "x/transfers.csv", "test/../test"), HasSubstr("the same directory"));
  std::filesystem::create_symlink(Path("transfers.csv"), Path("n/transfers.csv"));
  EXPECT_THAT(refusal("accounts.csv", "transfers.csv", "n"), HasSubstr("would overwrite the table"));
  EXPECT_EQ(Bytes("x/transfers.csv"), transfers);
  EXPECT_EQ(Bytes("transfers.csv"), transfers);
}

TEST_F(TablesTest, PredictionsHaveIdsAndClassNames) {
  WriteModel();
  const CommandRun run = RunCommand({"predict", "--model", Path("model.npz"), "--nodes", Path("accounts.csv"),
                                     "--edges", Path("transfers.csv"), "-o", Path("p.csv"), "--propagation", "none"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(Bytes("p.csv"), ::testing::StartsWith("id,class,probability\nAC-0000000,business,0."));
  const CommandRun evaluated = RunCommand({"evaluate", "--predictions", Path("p.csv"), "--nodes", Path("accounts.csv"),
                                           "--model", Path("model.npz"), "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(evaluated.json()["classes"][1]["class"], "business");
  EXPECT_EQ(evaluated.json()["classes"][1]["recall"], 1.0);
  // The same from a graph file, whose ids came with it.
  ASSERT_EQ(Convert("accounts.schema.yaml").exit_code, 0);
  ASSERT_EQ(RunCommand({"predict", "--model", Path("model.npz"), "--graph", Path("g.npz"), "-o", Path("q.csv"),
                        "--propagation", "none"})
                .exit_code,
            0);
  EXPECT_EQ(Bytes("q.csv"), Bytes("p.csv"));
  ASSERT_EQ(RunCommand({"graph", "convert", Path("g.npz"), "-o", Path("g.sealed")}).exit_code, 0);
  ASSERT_EQ(RunCommand({"predict", "--model", Path("model.npz"), "--graph", Path("g.sealed"), "-o", Path("r.csv"),
                        "--propagation", "none"})
                .exit_code,
            0);
  EXPECT_EQ(Bytes("r.csv"), Bytes("p.csv"));
}

TEST_F(TablesTest, TheNextCommandAfterAPredictionReadsIt) {
  WriteModel();
  ASSERT_EQ(Convert("accounts.schema.yaml").exit_code, 0);
  const auto graph = LocalGraph::Open(Path("g.npz"));
  ASSERT_TRUE(graph.ok());
  ASSERT_EQ(WriteLocalGraph(Path("plain.npz"), *graph->View(), {}), absl::OkStatus());
  const CommandRun run = RunCommand({"predict", "--model", Path("model.npz"), "--graph", Path("plain.npz"), "-o",
                                     Path("p.csv"), "--propagation", "none"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string mark = "next       dpar ";
  ASSERT_THAT(run.out, HasSubstr(mark));
  const size_t begin = run.out.find(mark) + mark.size();
  const std::vector<std::string> next = absl::StrSplit(run.out.substr(begin, run.out.find('\n', begin) - begin), ' ');
  const CommandRun evaluated = RunCommand(next);
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.out, HasSubstr("business"));
}

TEST_F(TablesTest, AGraphFileOfAnotherSchemaIsRefusedWithTheColumn) {
  WriteModel();
  const auto refusal = [this](const std::string& from, const std::string& to) {
    const std::string schema = absl::StrReplaceAll(Bytes("accounts.schema.yaml"), {{from, to}});
    EXPECT_NE(schema, Bytes("accounts.schema.yaml"));
    Write("other.yaml", schema);
    EXPECT_EQ(Convert("other.yaml").exit_code, 0);
    const CommandRun run = RunCommand({"predict", "--model", Path("model.npz"), "--graph", Path("g.npz")});
    EXPECT_EQ(run.exit_code, 1);
    return run.err;
  };
  EXPECT_THAT(refusal("[0, 120]", "[0, 130]"), HasSubstr("another schema than the model: column age differs"));
  EXPECT_THAT(refusal("[AT, BE,", "[BE, AT,"), HasSubstr("column country differs"));
  EXPECT_THAT(refusal("[private, business, dormant]", "[business, private, dormant]"), HasSubstr("the classes differ"));
}

TEST_F(TablesTest, ATableThatDoesNotFitTheModelIsRefusedWithTheColumn) {
  WriteModel();
  const auto refusal = [this](const std::string& from, const std::string& to) {
    Write("new.csv", absl::StrReplaceAll(Bytes("accounts.csv"), {{from, to}}));
    const CommandRun run = RunCommand(
        {"predict", "--model", Path("model.npz"), "--nodes", Path("new.csv"), "--edges", Path("transfers.csv")});
    EXPECT_NE(run.exit_code, 0);
    return run.err;
  };
  EXPECT_THAT(refusal(",age,", ",years,"), HasSubstr("new.csv line 1, column years: the schema does not know it"));
  EXPECT_THAT(refusal(",business,", ",gold,"), HasSubstr("column segment: 'gold' is not among its 3 classes"));
}

TEST_F(TablesTest, ATableWhereAGraphFileIsExpectedLeadsToItsSchema) {
  WriteModel();
  const std::string table = Path("accounts.csv");
  const std::vector<std::vector<std::string>> commands = {
      {"graph", "inspect", table},
      {"graph", "convert", table, "-o", Path("g.npz")},
      {"graph", "split", table, "--train", Path("a.npz"), "--test", Path("b.npz")},
      {"upload", table},
      {"predict", "--model", Path("model.npz"), "--graph", table},
      {"evaluate", "--predictions", table, "--graph", table}};
  for (const std::vector<std::string>& command : commands) {
    const CommandRun run = RunCommand(command);
    EXPECT_EQ(run.exit_code, 2) << command[0];
    EXPECT_THAT(run.err, HasSubstr("try: dpar graph schema NODES EDGES"));
    EXPECT_THAT(run.err, HasSubstr("--schema FILE.yaml --nodes NODES --edges EDGES"));
    EXPECT_THAT(run.err, Not(HasSubstr("try: dpar graph inspect")));
    EXPECT_THAT(run.err, Not(HasSubstr("try: dpar graph convert")));
  }
}

TEST_F(TablesTest, ATableThatIsRefusedIsNotSentToInspect) {
  Write("accounts.csv", absl::StrCat(Bytes("accounts.csv"), "AC-9999999\n"));
  const CommandRun run = Convert("accounts.schema.yaml");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("accounts.csv line 402: 1 fields"));
  EXPECT_THAT(run.err, HasSubstr("correct the table or the schema"));
  EXPECT_THAT(run.err, Not(HasSubstr("inspect")));
}

void OnInterrupt(int /*signal*/) {}

TEST_F(TablesTest, AnInterruptedUploadLeavesNoCopyBehind) {
  ASSERT_EQ(RunCommand({"graph", "generate", "--tables", directory_, "--nodes", "30000", "--seed", "5"}).exit_code, 0);
  std::filesystem::create_directories(Path("scratch"));
  ASSERT_EQ(::setenv("TMPDIR", Path("scratch").c_str(), 1), 0);
  const auto old = std::signal(SIGINT, OnInterrupt);  // for an interrupt that nothing waits for
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGINT);
  std::atomic<bool> stop = false;
  std::thread watcher([&] {
    pthread_sigmask(SIG_BLOCK, &mask, nullptr);
    while (!stop && std::filesystem::is_empty(Path("scratch"))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(::getpid(), SIGINT);
  });
  const CommandRun run = RunCommand({"upload", "--schema", Path("accounts.schema.yaml"), "--nodes",
                                     Path("accounts.csv"), "--edges", Path("transfers.csv")});
  stop = true;
  watcher.join();
  std::signal(SIGINT, old);
  ::unsetenv("TMPDIR");
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_THAT(run.err, HasSubstr("the upload was stopped"));
  EXPECT_TRUE(std::filesystem::is_empty(Path("scratch")));
}

TEST_F(TablesTest, InspectNotesFeaturesThatSuitNoDefault) {
  Graph graph;
  graph.sizes = {2, 2, 2};
  graph.edge_offsets = {0, 0, 0};
  graph.features.offsets = {0, 2, 3};
  graph.features.columns = {0, 1, 0};
  graph.features.values = {-1, 5000, 2};
  graph.labels = {0, 1};
  ASSERT_EQ(WriteGraphFile(Path("wide.npz"), graph), absl::OkStatus());
  const CommandRun run = RunCommand({"graph", "inspect", Path("wide.npz")});
  ASSERT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("1 of 2 feature columns have negative values"));
  EXPECT_THAT(run.err, HasSubstr("--transform unit"));
  EXPECT_THAT(run.err, HasSubstr("from 2 to 5000"));
  ASSERT_EQ(Convert("accounts.schema.yaml").exit_code, 0);
  const CommandRun tables = RunCommand({"graph", "inspect", Path("g.npz")});
  EXPECT_EQ(tables.err, "");
  EXPECT_THAT(tables.out, HasSubstr("\n    business "));
}

}  // namespace
}  // namespace dpar
