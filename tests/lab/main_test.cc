// dpar-lab: what its commands have in common.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/graph/sealed_graph.h"
#include "tests/lab/lab_run.h"

namespace dpar::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(LabTest, FilesThatAreNoGraphsAreRefused) {
  const std::string text = directory_.File("text.npz");
  e2e::WriteFile(text, "not a graph\n");
  const std::string sealed = directory_.File("cut.sealed");
  ASSERT_TRUE(WriteSealedGraph(sealed, MakeGraph(2, {{0, 1}})).ok());
  e2e::WriteFile(sealed, e2e::ReadFile(sealed).substr(0, 100));
  const std::string missing = directory_.File("missing.npz");
  const std::vector<std::vector<std::string>> commands = {
      {"accuracy", "--non-private"},
      {"appr", "--seeds", "0"},
      {"select", "--mechanism", "gm", "--epsilon", "1", "--delta", "1e-5"},
  };
  for (const std::vector<std::string>& command : commands) {
    const auto refused = [&command](const std::string& file, int exit_code, const std::string& message) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"--graph", file});
      ExpectRefused(arguments, exit_code, message);
    };
    refused(missing, kUsage, absl::StrCat("cannot read '", missing, "': No such file or directory"));
    refused(directory_.path(), kUsage, "it is a directory, and a file is needed");
    refused("/dev/null", kUsage, "it is not a regular file");
    refused(text, kFailed, absl::StrCat("'", text, "': file is not an npz file"));
    refused(sealed, kFailed, sealed);
  }
}

TEST_F(LabTest, HelpShowsAnExampleOfEachCommand) {
  EXPECT_THAT(Run({"--help"}).out, HasSubstr("dpar-lab appr --graph graph.npz --seeds 0,5,9"));
  EXPECT_THAT(Run({"accuracy", "--help"}).out, HasSubstr("Example:\n  dpar-lab accuracy --graph graph.npz"));
  EXPECT_THAT(Run({"appr", "--help"}).out, HasSubstr("Example:\n  dpar-lab appr --graph graph.npz"));
  EXPECT_THAT(Run({"select", "--help"}).out, HasSubstr("Example:\n  dpar-lab select --graph graph.npz"));
  for (const std::string command : {"embed", "plot", "sweep", "table"}) {
    EXPECT_THAT(Run({command, "--help"}).out, HasSubstr(absl::StrCat("Example:\n  dpar-lab ", command, " ")));
  }
  EXPECT_EQ(Run({"select", "--help"}).exit_code, kDone);
  EXPECT_THAT(Run({"--version"}).out, StartsWith("dpar-lab "));
}

TEST_F(LabTest, ACommandLineWithoutAKnownCommandIsRefused) {
  ExpectRefused({}, kUsage, "try: dpar-lab --help");
  ExpectRefused({"train"}, kUsage, "try: dpar-lab --help");
  ExpectRefused({"appr"}, kUsage, "try: dpar-lab appr --help");
}

}  // namespace
}  // namespace dpar::lab
