// A client that shares nothing with this project but its protos: tests/end_to_end/python_client.py, against a real
// server.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using ::testing::HasSubstr;

// Debian's, whose modules come from Debian's packages; another python3 may be the first in PATH.
constexpr char kPython[] = "/usr/bin/python3";
constexpr absl::Duration kPatience = absl::Seconds(180);

class PythonClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Looked for, not imported: that takes seconds.
    const CommandResult missing = RunCommand(
        {kPython, "-c",
         "import importlib.util as u; print(*[m for m in ('google.protobuf', 'grpc', 'numpy', 'torch') if not "
         "u.find_spec(m)])"},
        {});
    if (missing.exit_code != 0 || missing.out != "\n") {
      GTEST_SKIP() << "missing (Debian: python3-protobuf, python3-grpcio, python3-numpy, python3-torch): "
                   << missing.out << missing.err;
    }
    stubs_ = server_.Scratch("stubs");
    std::filesystem::create_directory(stubs_);
    const std::string generate = absl::StrCat(
        "cd '", std::getenv("DPAR_SOURCE_DIR"), "' && protoc -I proto --python_out='", stubs_, "' --grpc_python_out='",
        stubs_, "' --plugin=protoc-gen-grpc_python=\"$(command -v grpc_python_plugin)\" proto/dpar/v1/*.proto ",
        "proto/google/rpc/*.proto");
    const CommandResult generated = RunCommand({"/bin/sh", "-c", generate}, {});
    if (generated.exit_code != 0) {
      GTEST_SKIP() << "protobuf-compiler or protobuf-compiler-grpc is missing: " << generated.err;
    }
    ASSERT_TRUE(server_.Start());
    tenant_ = server_.NewTenant();
  }

  CommandResult RunPython(const std::string& script, const std::vector<std::string>& arguments,
                          const std::string& token) const {
    const std::string room = absl::StrCat(std::getenv("DPAR_SOURCE_DIR"), "/tests/end_to_end");
    std::vector<std::string> command = {kPython, absl::StrCat(room, "/", script)};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return RunCommand(command,
                      {{"DPAR_SERVER", server_.address()},
                       {"DPAR_CA", server_.ca_file()},
                       {"DPAR_TOKEN", token},
                       {"PYTHONPATH", absl::StrCat(stubs_, ":", room)},
                       {"PYTHONDONTWRITEBYTECODE", "1"}},
                      kPatience);
  }
  // Uploads, trains, watches, downloads and predicts; its files go to `output`.
  CommandResult RunClient(const std::string& graph, const std::string& epsilon, const std::string& output,
                          const std::string& token) const {
    std::filesystem::create_directory(output);
    return RunPython("python_client.py", {tenant_.name, graph, epsilon, output}, token);
  }

  TestServer server_;
  std::string stubs_;
  TenantAccess tenant_;
};

TEST_F(PythonClientTest, UploadsTrainsWatchesDownloadsAndPredictsTheSameClassesAsDpar) {
  const std::string graph = server_.Scratch("graph.npz");
  constexpr int64_t kNodes = 800;
  WriteFile(graph, GraphBytes(MakeGraph(1200, {.nodes = kNodes, .classes = 4, .features = 80})));
  const std::string output = server_.Scratch("model");
  const CommandResult run = RunClient(graph, "2", output, tenant_.owner_token);
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("succeeded 30/30 epsilon so far 2\n"));

  const std::string csv = server_.Scratch("predictions.csv");
  const CommandResult predicted =
      server_.Dpar(tenant_.owner_token, {"predict", "--model", output + "/model.npz", "--graph", graph, "--propagation",
                                         "none", "--shift", "off", "-o", csv});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  std::vector<std::string> classes;
  for (const absl::string_view line : absl::StrSplit(ReadFile(csv), '\n', absl::SkipEmpty())) {
    classes.push_back(std::vector<std::string>(absl::StrSplit(line, ','))[1]);
  }
  ASSERT_EQ(classes.size(), kNodes + 1U);
  classes.erase(classes.begin());  // the heading
  const std::vector<std::string> by_torch = absl::StrSplit(ReadFile(output + "/classes.txt"), '\n', absl::SkipEmpty());
  EXPECT_EQ(by_torch, classes);
  EXPECT_GT(std::set<std::string>(classes.begin(), classes.end()).size(), 1U) << "one class for all proves little";
}

TEST_F(PythonClientTest, SaysTheReasonOfARefusal) {
  const std::string graph = server_.Scratch("graph.npz");
  WriteFile(graph, GraphBytes(MakeGraph(1201)));
  const CommandResult over = RunClient(graph, "50", server_.Scratch("none"), tenant_.owner_token);
  EXPECT_EQ(over.exit_code, 1) << over.out << over.err;
  EXPECT_THAT(over.err, HasSubstr("FAILED_PRECONDITION / PRIVACY_BUDGET_EXHAUSTED"));
  const CommandResult stranger = RunClient(graph, "1", server_.Scratch("none"), "dpar_nobody_" + std::string(64, '0'));
  EXPECT_EQ(stranger.exit_code, 1) << stranger.out << stranger.err;
  EXPECT_THAT(stranger.err, HasSubstr("UNAUTHENTICATED / TOKEN_INVALID"));
}

TEST_F(PythonClientTest, TriesAgainWhatIsWorthItAndNothingElse) {
  const CommandResult tests = RunPython("python_client_retry_test.py", {}, "");
  EXPECT_EQ(tests.exit_code, 0) << tests.out << tests.err;
  EXPECT_THAT(tests.err, HasSubstr("Ran 3 tests"));
}

}  // namespace
}  // namespace dpar::e2e
