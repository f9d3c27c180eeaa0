#include "client/cli/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "client/cli/testing/command_run.h"

namespace dpar {
namespace {

using testing::CommandRun;
using ::testing::HasSubstr;
using testing::RunCommand;
using ::testing::StartsWith;

const std::vector<std::vector<std::string>>& AllCommands() {
  static const auto* const commands = new std::vector<std::vector<std::string>>{{"graph", "generate"},
                                                                                {"graph", "inspect"},
                                                                                {"graph", "convert"},
                                                                                {"graph", "split"},
                                                                                {"privacy", "epsilon"},
                                                                                {"privacy", "delta"},
                                                                                {"privacy", "calibrate"},
                                                                                {"privacy", "compare"},
                                                                                {"upload"},
                                                                                {"datasets"},
                                                                                {"train"},
                                                                                {"watch"},
                                                                                {"cancel"},
                                                                                {"jobs"},
                                                                                {"population"},
                                                                                {"download"},
                                                                                {"verify"},
                                                                                {"certificate", "verify"},
                                                                                {"certificate", "show"},
                                                                                {"certificate", "keys"},
                                                                                {"predict"},
                                                                                {"tenant", "create"},
                                                                                {"tenant", "list"},
                                                                                {"token", "create"},
                                                                                {"token", "list"},
                                                                                {"token", "rotate"},
                                                                                {"token", "revoke"},
                                                                                {"whoami"},
                                                                                {"cap"},
                                                                                {"debit"},
                                                                                {"spend"}};
  return *commands;
}

TEST(AppTest, HelpIsAMapOfTheCommands) {
  const CommandRun run = RunCommand({"--help"});
  EXPECT_EQ(run.exit_code, 0);
  for (const auto& command : AllCommands()) {
    EXPECT_THAT(run.out, HasSubstr("  " + command.front() + " "));
  }
  EXPECT_THAT(run.out, HasSubstr("Exit codes: 0 done, 1 failed, 2 usage, 3 refused by budget, 4 not authorised"));
  EXPECT_THAT(run.out, HasSubstr("DPAR_TOKEN_FILE"));
}

TEST(AppTest, EveryCommandHasHelpWithAnExampleOfItself) {
  for (std::vector<std::string> command : AllCommands()) {
    std::string name = "dpar";
    for (const std::string& part : command) {
      name += " " + part;
    }
    command.push_back("--help");
    const CommandRun run = RunCommand(command);
    EXPECT_EQ(run.exit_code, 0) << name;
    EXPECT_THAT(run.out, HasSubstr("Example:\n  " + name)) << name;
  }
}

TEST(AppTest, ACommandThatHasAShortFormIsListedInItsGroupAllTheSame) {
  const CommandRun run = RunCommand({"certificate", "--help"});
  EXPECT_EQ(run.exit_code, 0);
  for (const char* command : {"  verify ", "  show ", "  keys "}) {
    EXPECT_THAT(run.out, HasSubstr(command));
  }
}

TEST(AppTest, VersionIsPrinted) {
  const CommandRun run = RunCommand({"--version"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, StartsWith("dpar 0."));
}

TEST(AppTest, WrongUsageIsExitCodeTwoWithAHint) {
  const std::vector<std::vector<std::string>> lines = {{},
                                                       {"unknown"},
                                                       {"graph"},
                                                       {"graph", "unknown"},
                                                       {"train"},
                                                       {"train", "demo"},
                                                       {"train", "demo", "--epsilon", "much"},
                                                       {"train", "demo", "--epsilon", "1", "--colour"},
                                                       {"jobs", "extra"},
                                                       {"cap", "demo", "--epsilon", "1"},
                                                       {"predict", "--model", "x"}};
  for (const auto& line : lines) {
    const CommandRun run = RunCommand(line);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr("error: "));
    EXPECT_THAT(run.err, HasSubstr("--help"));
    EXPECT_EQ(run.out, "");
  }
}

TEST(AppTest, WrongUsageWithJsonIsOneObject) {
  const CommandRun run = RunCommand({"graph", "inspect", "--json"});
  EXPECT_EQ(run.exit_code, 2);
  ASSERT_TRUE(run.json().is_object()) << run.out;
  EXPECT_EQ(run.json()["version"], 1);
  EXPECT_EQ(run.json()["command"], "graph inspect");
  EXPECT_EQ(run.json()["error"]["reason"], "INVALID_FIELD");
  EXPECT_EQ(run.json()["exit_code"], 2);
}

TEST(AppTest, WithoutACertificateAuthorityNothingIsSent) {
  const CommandRun run = RunCommand({"jobs"}, {{"DPAR_TOKEN", "dpar_x_y"}});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("export DPAR_CA="));
}

class ConnectedAppTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ca_ = ::testing::TempDir() + "/app_test_ca.pem";
    std::ofstream(ca_) << "-----BEGIN CERTIFICATE-----\nnot one\n-----END CERTIFICATE-----\n";
  }
  void TearDown() override { std::filesystem::remove(ca_); }
  std::string ca_;
};

TEST_F(ConnectedAppTest, WithoutATokenTheExitCodeIsFour) {
  const CommandRun run = RunCommand({"jobs", "--ca", ca_});
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_THAT(run.err, HasSubstr("export DPAR_TOKEN_FILE="));
}

TEST_F(ConnectedAppTest, ATokenThatCannotBeReadOrIsNoneIsExitCodeFour) {
  EXPECT_EQ(RunCommand({"jobs", "--ca", ca_, "--token-file", ca_ + "-missing"}).exit_code, 4);
  EXPECT_EQ(RunCommand({"jobs", "--ca", ca_}, {{"DPAR_TOKEN", "two words"}}).exit_code, 4);
  EXPECT_EQ(RunCommand({"jobs", "--ca", ca_}, {{"DPAR_TOKEN", "line\nbreak"}}).exit_code, 4);
}

TEST_F(ConnectedAppTest, ACertificateAuthorityThatIsNoneIsExitCodeTwo) {
  EXPECT_EQ(RunCommand({"jobs", "--ca", "/dev/null"}).exit_code, 2);
  EXPECT_EQ(RunCommand({"jobs"}, {{"DPAR_CA", ca_ + "-missing"}}).exit_code, 2);
  std::ofstream(ca_) << "something else";
  EXPECT_EQ(RunCommand({"jobs", "--ca", ca_}).exit_code, 2);
}

TEST_F(ConnectedAppTest, AServerThatIsDownIsExitCodeFiveAndSaysHowToStartOne) {
  // Port 1 is privileged and nothing listens there.
  const CommandRun run =
      RunCommand({"--server", "127.0.0.1:1", "jobs", "--json"}, {{"DPAR_CA", ca_}, {"DPAR_TOKEN", "dpar_x_y"}});
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_THAT(run.err, HasSubstr("dpard --data-dir DIR --listen 127.0.0.1:1"));
  ASSERT_TRUE(run.json().is_object()) << run.out;
  EXPECT_EQ(run.json()["error"]["code"], "UNAVAILABLE");
}

TEST_F(ConnectedAppTest, BadIdsAreRefusedBeforeTheServerIsAsked) {
  const std::map<std::string, std::string> variables = {{"DPAR_CA", ca_}, {"DPAR_TOKEN", "dpar_x_y"}};
  const std::vector<std::vector<std::string>> lines = {
      {"train", "No Such", "--epsilon", "1"},
      {"train", "demo", "--epsilon", "1", "--method", "magic"},
      {"watch", "tenants/acme/datasets/demo"},
      {"cancel", "-"},
      {"population", "a/b"},
      {"population", "--entries"},
      {"debit", "tenants/acme/datasets/demo", "--units", "many", "--reason", "x"},
      {"download", "../../etc"},
      {"tenant", "create", "Not An Id"},
      {"token", "create"},
      {"token", "create", "--tenant", "acme", "--role", "king"},
      {"token", "create", "--tenant", "acme", "--role", "operator"},
      {"token", "create", "--operator", "--tenant", "acme"},
      {"token", "create", "--operator", "-o", "/no/such/directory/file"},
      {"token", "create", "--operator", "--scope", "everything"},
      {"token", "create", "--operator", "--scope", "read,"},
      {"token", "create", "--operator", "--expires-in", "soon"},
      {"token", "create", "--operator", "--expires-in", "-1h"},
      {"token", "create", "--operator", "--certificate-uri", "spiffe://a/b", "-o", "file"},
      {"token", "rotate", "id"},
      {"token", "rotate", "operator/tokens/id", "--overlap", "99999999999999999d"},
      {"token", "rotate", "operator/tokens/id", "--overlap", "d"},
      {"token", "revoke", "id"}};
  for (const auto& line : lines) {
    const CommandRun run = RunCommand(line, variables);
    EXPECT_EQ(run.exit_code, 2) << line[0] << " " << line[1] << ": " << run.err;
  }
}

TEST_F(ConnectedAppTest, AnErrorEndsAStreamOfJson) {
  const CommandRun run = RunCommand({"watch", "No Id", "--json"}, {{"DPAR_CA", ca_}, {"DPAR_TOKEN", "dpar_x_y"}});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.json()["terminal"], true);
}

}  // namespace
}  // namespace dpar
