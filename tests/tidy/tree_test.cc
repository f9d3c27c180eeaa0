// The checks of tidy.h on the project itself, and clang-format.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tidy/tidy.h"

namespace dpar::tidy {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct CommandResult {
  int exit_code = -1;
  std::string output;
};

CommandResult RunCommand(const std::string& command) {
  CommandResult result;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) {
    return result;
  }
  std::array<char, 4096> buffer;
  for (size_t read = 0; (read = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    result.output.append(buffer.data(), read);
  }
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

std::string ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string ClangFormat(const std::string& files) { return "clang-format-14 --dry-run --Werror --style=file " + files; }

// Tracked files, and new ones that are not ignored.
class TreeTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = Environment("DPAR_SOURCE_DIR");
    ASSERT_FALSE(root_.empty()) << "run it through ctest, which sets DPAR_SOURCE_DIR";
    const CommandResult files =
        RunCommand("git -c safe.directory='*' -C '" + root_ + "' ls-files -co --exclude-standard");
    ASSERT_EQ(files.exit_code, 0) << files.output;
    std::istringstream lines(files.output);
    for (std::string path; std::getline(lines, path);) {
      if (std::filesystem::is_regular_file(root_ + "/" + path)) {
        tree_[path] = ReadFile(root_ + "/" + path);
      }
    }
    ASSERT_TRUE(tree_.contains("core/error.h")) << "this is not the project's tree";
    rooms_ = ReadRooms(tree_["ARCHITECTURE.md"]);
    ASSERT_TRUE(rooms_.contains("core/graph")) << "ARCHITECTURE.md has no table of rooms";
  }

  static std::string root_;
  static Tree tree_;
  static Rooms rooms_;
};

std::string TreeTest::root_;
Tree TreeTest::tree_;
Rooms TreeTest::rooms_;

TEST_F(TreeTest, RoomsIncludeDownwardsOnly) { EXPECT_EQ(ToText(CheckIncludes(tree_, rooms_)), ""); }

TEST_F(TreeTest, NoPermissionIsUnused) { EXPECT_EQ(ToText(CheckPermissionsUsed(tree_, rooms_)), ""); }

TEST_F(TreeTest, FunctionsAndFilesCanBeReadInOnePiece) { EXPECT_EQ(ToText(CheckSizes(tree_)), ""); }

TEST_F(TreeTest, TargetsLinkWhatTheirRoomMay) { EXPECT_EQ(ToText(CheckLinks(tree_, rooms_)), ""); }

TEST_F(TreeTest, TheClientLinksNoLibTorch) {
  EXPECT_EQ(ToText(CheckNeverLinked(tree_, "dpar", "dpar_torch")), "");
  // Were the check blind, it would find nothing here either.
  EXPECT_NE(ToText(CheckNeverLinked(tree_, "dpard", "dpar_torch")), "");
}

TEST_F(TreeTest, CoreHasNoClockAndNothingHasWeakRandomness) { EXPECT_EQ(ToText(CheckForbiddenCode(tree_)), ""); }

TEST_F(TreeTest, NoNotesToSelfAreLeft) { EXPECT_EQ(ToText(CheckWords(tree_)), ""); }

TEST_F(TreeTest, EverySourceIsCompiled) {
  const std::string commands = ReadFile(Environment("DPAR_BINARY_DIR") + "/compile_commands.json");
  const std::set<std::string> compiled = CompiledFiles(commands, root_);
  ASSERT_FALSE(compiled.empty()) << "no compile_commands.json in DPAR_BINARY_DIR";
  EXPECT_EQ(ToText(CheckCompiled(tree_, compiled)), "");
}

TEST_F(TreeTest, EveryHeaderIsUsedAndGuarded) { EXPECT_EQ(ToText(CheckHeaders(tree_)), ""); }

TEST_F(TreeTest, EveryCallOfTheApiIsCommented) { EXPECT_EQ(ToText(CheckProtoComments(tree_)), ""); }

TEST_F(TreeTest, ClangFormatWouldChangeNothing) {
  if (RunCommand("clang-format-14 --version").exit_code != 0) {
    GTEST_SKIP() << "no clang-format-14 here (Debian 12 has it); other versions format otherwise";
  }
  std::string files;
  for (const auto& [path, content] : tree_) {
    if (path.ends_with(".h") || path.ends_with(".cc")) {
      files += " '" + path + "'";
    }
  }
  const CommandResult result = RunCommand("cd '" + root_ + "' && " + ClangFormat(files));
  EXPECT_EQ(result.exit_code, 0) << "run: clang-format-14 -i on the files below\n" << result.output;
}

TEST_F(TreeTest, ClangFormatRefusesAFileItWouldChange) {
  if (RunCommand("clang-format-14 --version").exit_code != 0) {
    GTEST_SKIP() << "no clang-format-14 here (Debian 12 has it)";
  }
  const std::string directory = ::testing::TempDir() + "/tidy_format_" + std::to_string(getpid());
  std::filesystem::create_directories(directory);
  std::filesystem::copy_file(root_ + "/.clang-format", directory + "/.clang-format",
                             std::filesystem::copy_options::overwrite_existing);
  std::ofstream(directory + "/good.cc") << "int x = 1;\n";
  std::ofstream(directory + "/bad.cc") << "int  x=1;\n";
  EXPECT_EQ(RunCommand(ClangFormat(directory + "/good.cc")).exit_code, 0);
  const CommandResult bad = RunCommand(ClangFormat(directory + "/bad.cc"));
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_THAT(bad.output, ::testing::HasSubstr("bad.cc:1:"));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace dpar::tidy
