// A client that shares nothing with this project but its protos: docs/any_language.py, against a real server.
#include <gtest/gtest.h>

#include <algorithm>
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

class AnyLanguageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Looked for, not imported: that takes seconds.
    const CommandResult missing = RunCommand(
        {kPython, "-c",
         "import importlib.util as u; print(*[m for m in ('google.protobuf', 'grpc', 'numpy', 'scipy', 'torch') if not "
         "u.find_spec(m)])"},
        {});
    if (missing.exit_code != 0 || missing.out != "\n") {
      GTEST_SKIP()
          << "missing (Debian: python3-protobuf, python3-grpcio, python3-numpy, python3-scipy, python3-torch): "
          << missing.out << missing.err;
    }
    stubs_ = server_.Scratch("stubs");
    std::filesystem::create_directory(stubs_);
    const std::string generate = absl::StrCat(
        "cd '", std::getenv("DPAR_SOURCE_DIR"), "' && protoc -I proto --python_out='", stubs_, "' --grpc_python_out='",
        stubs_, "' --plugin=protoc-gen-grpc_python=\"$(command -v grpc_python_plugin)\" proto/dpar/v1/*.proto");
    const CommandResult generated = RunCommand({"/bin/sh", "-c", generate}, {});
    if (generated.exit_code != 0) {
      GTEST_SKIP() << "protobuf-compiler or protobuf-compiler-grpc is missing: " << generated.err;
    }
    ASSERT_TRUE(server_.Start());
    tenant_ = server_.NewTenant();
  }

  // Uploads, trains, watches, downloads and predicts; its files go to `output`.
  CommandResult RunClient(const std::string& graph, const std::string& epsilon, const std::string& query,
                          const std::string& output, const std::string& token) const {
    std::filesystem::create_directory(output);
    return RunCommand({kPython, absl::StrCat(std::getenv("DPAR_SOURCE_DIR"), "/docs/any_language.py"), tenant_.name,
                       graph, "4", epsilon, query, output},
                      {{"DPAR_SERVER", server_.address()},
                       {"DPAR_CA", server_.ca_file()},
                       {"DPAR_TOKEN", token},
                       {"PYTHONPATH", stubs_},
                       {"PYTHONDONTWRITEBYTECODE", "1"}},
                      kPatience);
  }

  TestServer server_;
  std::string stubs_;
  TenantAccess tenant_;
};

TEST_F(AnyLanguageTest, UploadsTrainsWatchesDownloadsAndPredictsTheSameClassesAsDpar) {
  const std::string graph = server_.Scratch("graph.npz");
  constexpr int64_t kNodes = 800;
  WriteFile(graph, GraphBytes(MakeGraph(1200, {.nodes = kNodes, .classes = 4, .features = 80})));
  const std::string query = server_.Scratch("query.npz");
  WriteFile(query, GraphBytes(MakeGraph(1201, {.nodes = kNodes, .classes = 4, .features = 80})));
  const std::string output = server_.Scratch("model");
  const CommandResult run = RunClient(graph, "2", query, output, tenant_.owner_token);
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("succeeded 30/30 epsilon so far 2\n"));

  const std::string csv = server_.Scratch("predictions.csv");
  const CommandResult predicted =
      server_.Dpar(tenant_.owner_token, {"predict", "--model", output + "/model.npz", "--graph", query, "--propagation",
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
  const CommandResult verified = server_.Dpar(
      "", {"verify", output + "/certificate.json", "--model", output + "/model.npz", "--model", output + "/model.onnx",
           "--model", output + "/model.pt", "--key", server_.data_directory() + "/keys/signing.pub"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
}

TEST_F(AnyLanguageTest, FitsOnAPage) {
  const std::vector<std::string> lines =
      absl::StrSplit(ReadFile(absl::StrCat(std::getenv("DPAR_SOURCE_DIR"), "/docs/any_language.py")), '\n');
  EXPECT_LE(std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return !line.empty(); }), 40);
}

TEST_F(AnyLanguageTest, SaysTheReasonOfARefusal) {
  const std::string graph = server_.Scratch("graph.npz");
  WriteFile(graph, GraphBytes(MakeGraph(1201)));
  const CommandResult over = RunClient(graph, "50", graph, server_.Scratch("none"), tenant_.owner_token);
  EXPECT_NE(over.exit_code, 0) << over.out << over.err;
  EXPECT_THAT(over.err, HasSubstr("FAILED_PRECONDITION"));
}

}  // namespace
}  // namespace dpar::e2e
