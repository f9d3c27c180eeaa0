// What every command says when something is wrong: the exit code, one JSON object, and the command to try next.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/json_output.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using Line = std::vector<std::string>;
using ::testing::HasSubstr;

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kNotAuthorised = 4;
constexpr int kUnavailable = 5;

class BadInputTest : public SharedServerTest {
 protected:
  static void SetUpTestSuite() {
    // Calls without a valid token are what this is about, and their answers need not wait.
    StartServer({"--auth-failures-per-minute", "1000000"});
    WriteFile(server().Scratch("good.npz"), GraphBytes(MakeGraph(920)));
    WriteFile(server().Scratch("bad.npz"), "neither a graph nor a model");
    WriteFile(server().Scratch("bad.csv"), "node,class,probability\nx,y,z\n");
    WriteFile(server().Scratch("bad.graphml"), "<html></html>");
  }

  // Commands that call a server, each with arguments that are right in themselves.
  static std::vector<std::pair<Line, size_t>> RemoteCommands() {
    const std::string good = server().Scratch("good.npz");
    return {{{"upload", good}, 1},
            {{"dataset", "upload", good}, 2},
            {{"datasets"}, 1},
            {{"dataset", "list"}, 2},
            {{"dataset", "show", "demo"}, 2},
            {{"dataset", "delete", "demo", "--yes"}, 2},
            {{"train", "demo", "--epsilon", "1"}, 1},
            {{"jobs"}, 1},
            {{"job", "list"}, 2},
            {{"job", "show", "j"}, 2},
            {{"watch", "j"}, 1},
            {{"job", "watch", "j"}, 2},
            {{"cancel", "j"}, 1},
            {{"job", "cancel", "j"}, 2},
            {{"download", "j"}, 1},
            {{"job", "download", "j"}, 2},
            {{"population"}, 1},
            {{"population", "show"}, 2},
            {{"population", "history", "demo"}, 2},
            {{"ledger", "list"}, 2},
            {{"ledger", "verify"}, 2},
            {{"ledger", "adjust", "tenants/t/datasets/d", "--debit-units", "1", "--reason", "r"}, 2},
            {{"cap", "tenants/t/datasets/d", "--epsilon", "1", "--reason", "r"}, 1},
            {{"debit", "tenants/t/datasets/d", "--units", "1", "--reason", "r"}, 1},
            {{"spend"}, 1},
            {{"tenant", "create", "t"}, 2},
            {{"tenant", "list"}, 2},
            {{"token", "create", "--tenant", "t", "--role", "owner"}, 2},
            {{"token", "list"}, 2},
            {{"token", "rotate", "tenants/t/tokens/i"}, 2},
            {{"token", "revoke", "tenants/t/tokens/i"}, 2},
            {{"whoami"}, 1}};
  }

  // Runs it with --json and in words: the code, one object with a reason and a hint, and "try:" on stderr.
  static void ExpectError(const Line& line, size_t words, const Environment& environment, int exit_code) {
    const std::string command = absl::StrJoin(Line(line.begin(), line.begin() + static_cast<long>(words)), " ");
    Line arguments = line;
    arguments.insert(arguments.begin(), BinaryPath("dpar"));
    arguments.emplace_back("--json");
    const CommandResult result = RunCommand(arguments, environment);
    EXPECT_EQ(result.exit_code, exit_code) << command << "\n" << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr("error: ")) << command;
    EXPECT_THAT(result.err, HasSubstr("  try: ")) << command;
    const std::vector<nlohmann::json> objects = JsonLines(result, command);
    ASSERT_EQ(objects.size(), 1U) << command << result.out;
    EXPECT_EQ(objects[0].value("exit_code", -1), exit_code) << command;
    EXPECT_NE(objects[0]["error"].value("message", ""), "") << command;
    EXPECT_NE(objects[0]["error"].value("hint", ""), "") << command;
  }

  // All at once, because a command tries a server that does not answer more than once before it gives up.
  static void ExpectErrorOfEveryCommand(const Environment& environment, int exit_code) {
    std::vector<std::thread> runs;
    for (const auto& [line, words] : RemoteCommands()) {
      runs.emplace_back(
          [line = line, words = words, &environment, exit_code] { ExpectError(line, words, environment, exit_code); });
    }
    for (std::thread& run : runs) {
      run.join();
    }
  }
};

TEST_F(BadInputTest, ATokenThatIsMissingWrongOrExpiredIsExitCodeFour) {
  const TenantAccess tenant = server().NewTenant();
  v1::CreateTokenRequest request = TokenRequest(tenant.name, v1::OWNER);
  request.mutable_token()->mutable_expire_time()->set_seconds(absl::ToUnixSeconds(absl::Now()) + 5);
  const auto made = server().Operator().Call(&v1::OperatorService::Stub::CreateToken, request);
  ASSERT_THAT(made.status, IsOk());
  const std::string expired = made.value.secret();
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (server().Dpar(expired, {"whoami"}).exit_code == 0 && absl::Now() < end)
    absl::SleepFor(absl::Milliseconds(200));
  for (const auto& [line, words] : RemoteCommands()) {
    ExpectError(line, words, server().DparEnvironment(expired), kNotAuthorised);
  }
  const Line whoami = {"whoami"};
  ExpectError(whoami, 1, server().DparEnvironment(""), kNotAuthorised);
  ExpectError(whoami, 1, server().DparEnvironment("dpar_nobody_00"), kNotAuthorised);
}

TEST_F(BadInputTest, AWrongAuthorityAndAServerThatIsDownAreExitCodeFive) {
  TestServer other;
  ASSERT_TRUE(other.Start());
  Environment wrong_ca = server().DparEnvironment("dpar_x_1");
  wrong_ca["DPAR_CA"] = other.ca_file();
  const CommandResult refused = RunCommand({BinaryPath("dpar"), "whoami"}, wrong_ca);
  EXPECT_EQ(refused.exit_code, kUnavailable) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("check --ca or DPAR_CA"));
  ExpectErrorOfEveryCommand(wrong_ca, kUnavailable);

  Environment down = other.DparEnvironment("dpar_x_1");
  ASSERT_EQ(other.Terminate(), 0);
  const CommandResult away = RunCommand({BinaryPath("dpar"), "whoami"}, down);
  EXPECT_EQ(away.exit_code, kUnavailable) << away.err;
  EXPECT_THAT(away.err, HasSubstr("dpard --data-dir DIR"));
  ExpectErrorOfEveryCommand(down, kUnavailable);
}

// Local files, one of which stands for FILE: missing, unreadable, a directory, of another format.
TEST_F(BadInputTest, FilesThatAreMissingUnreadableOrOfAnotherFormatAreRefused) {
  const std::string out = server().Scratch("out.npz");
  const std::string good = server().Scratch("good.npz");
  const std::vector<std::pair<Line, size_t>> commands = {
      {{"graph", "inspect", "FILE.npz"}, 2},
      {{"graph", "split", "FILE.npz", "--train", out, "--test", server().Scratch("out2.npz")}, 2},
      {{"graph", "convert", "FILE.npz", "-o", out}, 2},
      {{"graph", "convert", "FILE.graphml", "-o", out}, 2},
      {{"graph", "schema", "FILE.csv", "FILE.csv", "-o", server().Scratch("out.yaml")}, 2},
      {{"upload", "FILE.npz"}, 1},
      {{"dataset", "upload", "FILE.npz"}, 2},
      {{"predict", "--model", "FILE.npz", "--graph", good}, 1},
      {{"evaluate", "--predictions", "FILE.csv", "--graph", good}, 1},
      {{"evaluate", "--predictions", "FILE.npz", "--graph", good}, 1},
  };
  const Environment environment = server().DparEnvironment("dpar_x_1");
  const auto with = [](Line line, const std::string& file) {
    for (std::string& argument : line) argument = absl::StrReplaceAll(argument, {{"FILE", file}});
    return line;
  };
  std::filesystem::create_directories(server().Scratch("directory.npz"));
  for (const auto& [line, words] : commands) {
    ExpectError(with(line, server().Scratch("missing")), words, environment, kUsage);
    ExpectError(with(line, server().Scratch("bad")), words, environment, kFailed);
  }
  ExpectError({"graph", "inspect", server().Scratch("directory.npz")}, 2, environment, kUsage);
  if (::geteuid() == 0) {
    std::cout << "skipped: a file that cannot be read, because root reads every file" << std::endl;
  } else {
    std::filesystem::permissions(server().Scratch("good.npz"), std::filesystem::perms::none);
    ExpectError({"graph", "inspect", server().Scratch("good.npz")}, 2, environment, kUsage);
    std::filesystem::permissions(server().Scratch("good.npz"), std::filesystem::perms::owner_all);
  }
}

TEST_F(BadInputTest, OutputsThatCannotBeWrittenAreRefusedBeforeTheWork) {
  const std::string good = server().Scratch("good.npz");
  const std::string nowhere = server().Scratch("no/such/directory/x");
  const Environment environment = server().DparEnvironment("dpar_x_1");
  ExpectError({"graph", "generate", "-o", nowhere + ".npz"}, 2, environment, kUsage);
  ExpectError({"graph", "generate", "-o", server().Scratch("x.txt")}, 2, environment, kUsage);
  ExpectError({"graph", "convert", good, "-o", nowhere + ".graphml"}, 2, environment, kUsage);
  ExpectError({"graph", "convert", good, "-o", nowhere + ".csv"}, 2, environment, kUsage);
  ExpectError({"graph", "convert", good, "-o", server().Scratch("x.txt")}, 2, environment, kUsage);
  ExpectError({"predict", "--model", good, "--graph", good, "-o", nowhere + ".csv"}, 1, environment, kUsage);
  ExpectError({"predict", "--model", good, "--graph", good, "-o", server().Scratch("x.txt")}, 1, environment, kUsage);
  ExpectError({"predict", "--model", good, "--graph", good, "--format", "csv"}, 1, environment, kUsage);
  ExpectError({"token", "create", "--tenant", "t", "--role", "owner", "-o", nowhere}, 2, environment, kUsage);
}

TEST_F(BadInputTest, WhatIsTypedWronglyIsExitCodeTwo) {
  const Environment environment = server().DparEnvironment("dpar_x_1");
  const std::vector<std::pair<Line, size_t>> mistakes = {
      {{"login", "--name", "../up"}, 1},
      {{"login", "--name", "one", "--profile", "two"}, 1},
      {{"profile", "use", "../up"}, 2},
      {{"completion", "tcsh"}, 1},
      {{"dataset", "delete", "demo"}, 2},
      {{"ledger", "adjust", "tenants/t/datasets/d", "--reason", "r"}, 2},
      {{"ledger", "verify", "--sequence", "3"}, 2},
      {{"population", "--entries"}, 1},
      {{"train", "demo"}, 1},
      {{"train", "No Id", "--epsilon", "1"}, 1},
      {{"privacy", "epsilon", "--mechanism", "none"}, 2},
      {{"privacy", "delta", "--mechanism", "none"}, 2},
      {{"privacy", "calibrate", "--mechanism", "none"}, 2},
      {{"privacy", "compare", "--epsilon", "x"}, 2},
      {{"token", "revoke", "short"}, 2},
      {{"token", "rotate", "short"}, 2},
      {{"tenant", "create", "No Id"}, 2},
  };
  for (const auto& [line, words] : mistakes) {
    ExpectError(line, words, environment, kUsage);
  }
  ExpectError({"profile", "use", "gone"}, 2, environment, kFailed);
  ExpectError({"profile", "remove", "gone"}, 2, environment, kFailed);
  ExpectError({"profile", "show", "gone"}, 2, environment, kFailed);
  ExpectError({"whoami", "--profile", "gone"}, 1, environment, kFailed);
}

// A disk that takes four kilobytes of a file and no more.
TEST_F(BadInputTest, ADownloadThatDoesNotFitLeavesNothingBehind) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset =
      UploadGraph(owner, tenant.name, MakeGraph(921, {.nodes = 200, .classes = 3, .features = 2000}));
  const auto created = CreateJob(owner, JobRequest(dataset, 1));
  ASSERT_THAT(created.status, IsOk());
  WaitForJob(owner, created.value.name());
  const std::string out = server().Scratch("full");
  const CommandResult result = RunCommand({"/bin/bash", "-c",
                                           absl::StrCat("trap '' XFSZ; ulimit -f 4; '", BinaryPath("dpar"),
                                                        "' job download ", created.value.name(), " -o '", out, "'")},
                                          server().DparEnvironment(tenant.owner_token));
  EXPECT_EQ(result.exit_code, kFailed) << result.err;
  EXPECT_THAT(result.err, HasSubstr("cannot write"));
  EXPECT_THAT(result.err, HasSubstr("  try: "));
  EXPECT_TRUE(std::filesystem::is_empty(out));
}

}  // namespace
}  // namespace dpar::e2e
