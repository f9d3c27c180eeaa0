#include "client/cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/cli/testing/command_run.h"

namespace dpar {
namespace {

using testing::CommandRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RunCommand;

class CompletionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = absl::StrCat(::testing::TempDir(), "/completion_test.", ::getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // What a shell prints; "(failed)" when it ends with an error.
  static std::string Shell(const std::string& command) {
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string output;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
      output += static_cast<char>(c);
    }
    return ::pclose(pipe) == 0 ? output : absl::StrCat("(failed)", output);
  }

  // What bash offers for the last word of the line.
  std::string Complete(const std::string& words, int count) const {
    // The scripts call the dpar beside this test.
    const std::string programs = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
    return Shell(absl::StrCat("PATH=", programs, ":$PATH bash -c 'source ", directory_, "/dpar.bash; COMP_WORDS=(",
                              words, "); COMP_CWORD=", count, "; _dpar; echo -n \"${COMPREPLY[*]}\"'"));
  }

  std::string directory_;
};

TEST_F(CompletionTest, BashOffersCommandsThenTheirCommandsThenFlags) {
  std::ofstream(directory_ + "/dpar.bash") << RunCommand({"completion", "bash"}).out;
  EXPECT_EQ(Complete("dpar prof", 1), "profile");
  EXPECT_EQ(Complete("dpar graph \"\"", 2), "convert generate inspect schema split");
  EXPECT_EQ(Complete("dpar graph con", 2), "convert");
  EXPECT_EQ(Complete("dpar graph generate --homo", 3), "--homophily");
  EXPECT_EQ(Complete("dpar --json dataset del", 3), "delete");
  EXPECT_EQ(Complete("dpar train demo --epsilon 1 --dry", 5), "--dry-run");
  // Global flags go everywhere.
  EXPECT_EQ(Complete("dpar job show --tok", 3), "--token-file");
  // Where a file may stand, files are offered.
  std::ofstream(directory_ + "/graph-file.npz") << "x";
  EXPECT_EQ(Complete(absl::StrCat("dpar upload ", directory_, "/graph-f"), 2), directory_ + "/graph-file.npz");
  // The command that the build calls is not.
  EXPECT_EQ(Complete("dpar ma", 1), "");
}

TEST_F(CompletionTest, CandidatesCarryTheirHelp) {
  EXPECT_THAT(RunCommand({"complete", "--", "--json", "graph"}).out, HasSubstr("convert\tConvert between"));
  EXPECT_THAT(RunCommand({"complete", "--flags", "--", "graph", "generate"}).out, HasSubstr("--homophily\tProb"));
  EXPECT_THAT(RunCommand({"complete", "--flags", "--", "graph", "generate"}).out, HasSubstr("--token-file\t"));
}

TEST_F(CompletionTest, TheOtherShellsTakeTheirScripts) {
  for (const std::string shell : {"zsh", "fish"}) {
    const CommandRun run = RunCommand({"completion", shell});
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_THAT(run.out, HasSubstr("dpar complete"));
    const std::string file = absl::StrCat(directory_, "/dpar.", shell);
    std::ofstream(file) << run.out;
    if (Shell(absl::StrCat("command -v ", shell, " || true")).empty()) {
      std::cout << shell << " is not installed, so its script was not parsed" << std::endl;
      continue;
    }
    EXPECT_EQ(Shell(absl::StrCat(shell, " -n ", file, " 2>&1")), "");
  }
  EXPECT_EQ(RunCommand({"completion", "tcsh"}).exit_code, 2);
}

TEST_F(CompletionTest, EveryCommandHasAManualPageThatTroffTakes) {
  const CommandRun run = RunCommand({"man", directory_});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* page : {"dpar", "dpar-graph", "dpar-graph-convert", "dpar-train", "dpar-job-watch", "dpar-upload"}) {
    EXPECT_TRUE(std::filesystem::exists(absl::StrCat(directory_, "/", page, ".1"))) << page;
  }
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/dpar-man.1"));
  std::ifstream file(directory_ + "/dpar-graph-convert.1");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  EXPECT_THAT(page, HasSubstr(".SH NAME\ndpar\\-graph\\-convert \\- Convert between"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-accept\\-observed\\fR"));
  EXPECT_THAT(page, HasSubstr(".EX\ndpar graph convert \\-\\-schema people.schema.yaml"));
  EXPECT_THAT(page, HasSubstr("\\fBdpar\\-graph\\fR(1)"));
  if (Shell("command -v groff || true").empty()) {
    GTEST_SKIP() << "groff is not installed, so the pages were not set";
  }
  EXPECT_EQ(Shell(absl::StrCat("cat ", directory_, "/*.1 | groff -man -Tascii -ww -z 2>&1 | head -5")), "");
  EXPECT_EQ(RunCommand({"man", directory_ + "/none"}).exit_code, 2);
}

TEST_F(CompletionTest, CommandsAreListedEachBeforeThoseBelowIt) {
  CLI::App root;
  CLI::App* job = root.add_subcommand("job");
  job->add_subcommand("show");
  job->add_subcommand("list");
  root.add_subcommand("hidden")->group("");
  root.add_subcommand("budget");
  std::vector<std::string> names;
  for (const CommandNode& node : AllCommands(root)) {
    names.push_back(node.Joined(" "));
  }
  EXPECT_THAT(names, ElementsAre("", "budget", "job", "job list", "job show"));
}

}  // namespace
}  // namespace dpar
