// What somebody at a terminal sees: a progress display that fits the window, Ctrl-C, a price before it is paid.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/terminal_command.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCtrlC = "\x03";

class TerminalTest : public SharedServerTest {
 protected:
  // A dataset, and arguments of a training on it that takes minutes: long enough on any machine.
  struct Slow {
    TenantAccess tenant;
    std::string dataset;
  };
  static Slow MakeSlow(uint64_t seed) {
    Slow slow;
    slow.tenant = server().NewTenant();
    slow.dataset = UploadGraph(server().Owner(slow.tenant), slow.tenant.name,
                               MakeGraph(seed, {.nodes = 4000, .classes = 20, .features = 500}));
    return slow;
  }
  static std::vector<std::string> LongTraining(const Slow& slow) {
    return Dpar({"train", slow.dataset, "--epsilon", "1", "--steps", "400000", "--yes"});
  }
  // The id in "come back:  dpar job watch ID".
  static std::string JobOf(const std::string& output) {
    const std::string mark = "dpar job watch ";
    const size_t place = output.find(mark);
    if (place == std::string::npos) return "";
    const size_t begin = place + mark.size();
    return output.substr(begin, output.find_first_of("\r\n", begin) - begin);
  }

  static std::vector<std::string> Dpar(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), BinaryPath("dpar"));
    return arguments;
  }
  static Environment For(const TenantAccess& tenant, Environment added = {}) {
    for (const auto& [name, value] : server().DparEnvironment(tenant.owner_token)) added[name] = value;
    return added;
  }
};

TEST_F(TerminalTest, TheDisplayHasStageBarRateAndEpsilonAndCtrlCLeavesTheJobRunning) {
  const Slow slow = MakeSlow(900);
  TerminalCommand train(LongTraining(slow), For(slow.tenant), 100);
  for (const char* text : {"training [", "ETA ", " steps", "epsilon 0.", "/s", "\x1b[36m"}) {
    ASSERT_TRUE(train.AwaitText(text)) << text << train.output();
  }
  EXPECT_LT(WidestLine(train.output()), 100);
  train.Type(kCtrlC);
  EXPECT_EQ(train.AwaitEnd(), 130) << train.output();
  EXPECT_THAT(train.output(), HasSubstr("stopped watching; the job goes on"));

  // The way back that it named; and the job ends when it is cancelled, not before.
  const std::string job = JobOf(train.output());
  TerminalCommand watch(Dpar({"job", "watch", job}), For(slow.tenant), 100);
  ASSERT_TRUE(watch.AwaitText("training [")) << watch.output();
  EXPECT_EQ(server().Dpar(slow.tenant.owner_token, {"job", "cancel", job}).exit_code, 0);
  EXPECT_EQ(watch.AwaitEnd(), 1) << watch.output();
  EXPECT_THAT(watch.output(), HasSubstr("state     cancelled"));
}

TEST_F(TerminalTest, ANarrowWindowAndOneThatIsMadeNarrowerAreNotOverrun) {
  const Slow slow = MakeSlow(901);
  TerminalCommand train(LongTraining(slow), For(slow.tenant), 60);
  ASSERT_TRUE(train.AwaitText("training [")) << train.output();
  const size_t drawn = train.output().find("training [");
  ASSERT_TRUE(train.AwaitText("\x1b[J", drawn + 300)) << train.output();
  EXPECT_LT(WidestLine(train.output().substr(drawn)), 60) << train.output();
  train.Resize(32);
  // What was being drawn at that moment may still have the old width.
  const size_t narrow = train.output().size() + 300;
  ASSERT_TRUE(train.AwaitText("\x1b[J", narrow)) << train.output();
  const size_t settled = train.output().find("\x1b[J", narrow);
  ASSERT_TRUE(train.AwaitText("\x1b[J", settled + 100)) << train.output();
  EXPECT_LT(WidestLine(train.output().substr(settled)), 32) << train.output();
  train.Type(kCtrlC);
  EXPECT_EQ(train.AwaitEnd(), 130);
  EXPECT_EQ(server().Dpar(slow.tenant.owner_token, {"job", "cancel", JobOf(train.output())}).exit_code, 0);
}

TEST_F(TerminalTest, NoColorIsRespected) {
  const TenantAccess tenant = server().NewTenant();
  const std::string dataset = UploadGraph(server().Owner(tenant), tenant.name, MakeGraph(902));
  TerminalCommand train(Dpar({"train", dataset, "--epsilon", "1", "--yes"}), For(tenant, {{"NO_COLOR", "1"}}), 80);
  EXPECT_EQ(train.AwaitEnd(), 0) << train.output();
  EXPECT_THAT(train.output(), HasSubstr("succeeded"));
  // Only the cursor is moved: no sequence that ends in m.
  EXPECT_THAT(train.output(), Not(::testing::ContainsRegex("\x1b\\[[0-9;]*m")));
}

TEST_F(TerminalTest, WithoutATerminalThereAreOnlyPlainLines) {
  const Slow slow = MakeSlow(903);
  const CommandResult train =
      server().Dpar(slow.tenant.owner_token, {"train", slow.dataset, "--epsilon", "1", "--steps", "200"});
  EXPECT_EQ(train.exit_code, 0) << train.err;
  EXPECT_THAT(train.err, HasSubstr("training "));
  EXPECT_THAT(train.err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(train.err, Not(HasSubstr("\r")));
  EXPECT_THAT(train.err, Not(HasSubstr("[Y/n]")));
  EXPECT_THAT(train.out, HasSubstr("succeeded"));
}

TEST_F(TerminalTest, ThePriceIsShownAndAskedForBeforeItIsPaid) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(904));
  TerminalCommand declined(Dpar({"train", dataset, "--epsilon", "1"}), For(tenant), 100);
  ASSERT_TRUE(declined.AwaitText("would be left. Train? [Y/n] ")) << declined.output();
  EXPECT_THAT(declined.output(), ::testing::ContainsRegex("epsilon 1 costs [0-9.]+% of the cap, [0-9.]+% would"));
  declined.Type("n\n");
  EXPECT_EQ(declined.AwaitEnd(), 1);
  EXPECT_THAT(declined.output(), HasSubstr("nothing was queued or spent"));

  TerminalCommand interrupted(Dpar({"train", dataset, "--epsilon", "1"}), For(tenant), 100);
  ASSERT_TRUE(interrupted.AwaitText("[Y/n] ")) << interrupted.output();
  interrupted.Type(kCtrlC);
  EXPECT_EQ(interrupted.AwaitEnd(), 130);
  EXPECT_THAT(interrupted.output(), HasSubstr("interrupted; nothing was queued"));
  EXPECT_EQ(server().Dpar(tenant.owner_token, {"jobs"}).out, "no jobs yet\nnext: dpar train DATASET --epsilon 1\n");

  TerminalCommand agreed(Dpar({"train", dataset, "--epsilon", "1"}), For(tenant), 100);
  ASSERT_TRUE(agreed.AwaitText("[Y/n] ")) << agreed.output();
  agreed.Type("\n");
  EXPECT_EQ(agreed.AwaitEnd(), 0) << agreed.output();
}

TEST_F(TerminalTest, ATokenThatIsTypedDoesNotShow) {
  const TenantAccess tenant = server().NewTenant();
  Environment environment = For(tenant);
  environment.erase("DPAR_TOKEN");
  TerminalCommand login(Dpar({"login", "--name", "typed"}), environment, 100);
  ASSERT_TRUE(login.AwaitText("Token (it does not show")) << login.output();
  login.Type(tenant.owner_token + "\n");
  EXPECT_EQ(login.AwaitEnd(), 0) << login.output();
  EXPECT_THAT(login.output(), Not(HasSubstr(tenant.owner_token)));
  EXPECT_THAT(login.output(), HasSubstr(absl::StrCat("as owner of ", tenant.name)));
  // From now on the profile is enough.
  environment.erase("DPAR_SERVER");
  environment.erase("DPAR_CA");
  const CommandResult whoami = RunCommand(Dpar({"whoami"}), environment);
  EXPECT_EQ(whoami.exit_code, 0) << whoami.err;
  EXPECT_THAT(whoami.out, HasSubstr(tenant.name));
}

TEST_F(TerminalTest, ATerminalShowsAgainWhatIsTypedAfterAnInterruptedLogin) {
  const TenantAccess tenant = server().NewTenant();
  Environment environment = For(tenant);
  environment.erase("DPAR_TOKEN");
  // The shell stays, as a user's does, and says what it finds afterwards.
  const std::string line = absl::StrCat("trap : INT; '", BinaryPath("dpar"),
                                        "' login; code=$?; stty -a | grep -q ' echo ' && echo shows after $code");
  TerminalCommand shell({"/bin/bash", "-c", line}, environment, 100);
  ASSERT_TRUE(shell.AwaitText("Token (it does not show")) << shell.output();
  shell.Type(kCtrlC);
  EXPECT_EQ(shell.AwaitEnd(), 0) << shell.output();
  EXPECT_THAT(shell.output(), HasSubstr("shows after 130"));
}

TEST_F(TerminalTest, TablesFitEightyColumns) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(905));
  ASSERT_EQ(server().Dpar(tenant.owner_token, {"train", dataset, "--epsilon", "1"}).exit_code, 0);
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"dataset", "list"},
                                             {"job", "list"},
                                             {"population", "show"},
                                             {"population", "history", dataset},
                                             {"ledger", "list", dataset},
                                             {"token", "list"},
                                             {"profile", "list"},
                                             {"--help"},
                                             {"train", "--help"},
                                             {"graph", "convert", "--help"},
                                             {"predict", "--help"}}) {
    TerminalCommand command(Dpar(arguments), For(tenant), 80);
    EXPECT_EQ(command.AwaitEnd(), 0) << arguments[0] << command.output();
    EXPECT_LE(WidestLine(command.output()), 100) << arguments[0] << command.output();
    if (arguments.back() != "--help") {
      EXPECT_LE(WidestLine(command.output()), 80) << arguments[0] << command.output();
    }
  }
}

}  // namespace
}  // namespace dpar::e2e
