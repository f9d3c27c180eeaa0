// The example of docs/sdk.md, built against an installed library and run against a server.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/document.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using ::testing::HasSubstr;

class SdkTest : public SharedServerTest {
 protected:
  // Runs a line of shell in the scratch directory.
  static CommandResult Shell(const std::string& line, const Environment& environment = {}) {
    return RunCommand({"/bin/bash", "-c", absl::StrCat("cd '", server().Scratch("."), "' && ", line)}, environment,
                      absl::Seconds(200));
  }
};

TEST_F(SdkTest, TheExampleIsShortAndWorksAgainstAnInstalledLibrary) {
  const std::string document = ReadSource("docs/sdk.md");
  const std::string code = CodeBlock(document, "<!-- sdk example -->", "cpp");
  const std::string project = CodeBlock(document, "<!-- sdk example -->", "cmake");
  ASSERT_NE(code, "");
  ASSERT_NE(project, "");
  EXPECT_LT(std::count(code.begin(), code.end(), '\n'), 60);

  const std::string binary_directory = std::getenv("DPAR_BINARY_DIR");
  const CommandResult installed =
      Shell(absl::StrCat("cmake --install '", binary_directory, "' --component sdk --prefix prefix"));
  ASSERT_EQ(installed.exit_code, 0) << installed.out << installed.err;
  ASSERT_EQ(Shell("mkdir example").exit_code, 0);
  WriteFile(server().Scratch("example/example.cc"), code);
  WriteFile(server().Scratch("example/CMakeLists.txt"), project);
  // As it is written it compiles without warnings; unoptimised, since that is quicker, and with the sanitizers that the
  // library has. The compiler's cache, where there is one, knows the program from the last time.
  const CommandResult built = Shell(absl::StrCat(
      "launcher=$(command -v ccache || true); sanitize=$(sed -n 's/^DPAR_SANITIZE:STRING=//p' '", binary_directory,
      "/CMakeCache.txt'); cmake -S example -B example/build -DCMAKE_PREFIX_PATH=$PWD/prefix -DCMAKE_BUILD_TYPE=Debug "
      "-DCMAKE_CXX_FLAGS=\"-O0 -g0 -Wall -Wextra -Werror ${sanitize:+-fsanitize=$sanitize}\" "
      "${launcher:+-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher} && cmake --build example/build"));
  ASSERT_EQ(built.exit_code, 0) << built.out << built.err;

  const TenantAccess tenant = server().NewTenant();
  WriteFile(server().Scratch("graph.npz"), GraphBytes(MakeGraph(910)));
  const CommandResult run =
      Shell("example/build/example graph.npz 120 30 3", server().DparEnvironment(tenant.owner_token));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("succeeded\nOK\n"));
  EXPECT_NE(ReadFile(server().Scratch("model.npz")), "");

  // Its error is a status with the API's words.
  const CommandResult refused =
      Shell("example/build/example graph.npz 121 30 3", server().DparEnvironment(tenant.owner_token));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.out, HasSubstr("INVALID_ARGUMENT"));
}

}  // namespace
}  // namespace dpar::e2e
