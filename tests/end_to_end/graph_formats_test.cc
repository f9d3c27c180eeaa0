// Graphs of other tools: what docs/graph_files.md tells users of PyTorch Geometric and DGL, run as it stands there, and
// conversions there and back by the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/document.h"
#include "tests/end_to_end/process.h"

namespace dpar::e2e {
namespace {

using ::testing::HasSubstr;

// What the two lines use of the libraries, which are not installed here: the same names with the same meaning.
constexpr const char* kStandIns = R"(
import numpy as np, scipy.sparse as sp

c = 2

class Tensor:
    def __init__(self, array):
        self.array = np.asarray(array)
    def numpy(self):
        return self.array

class Data:
    edge_index = Tensor([[0, 1, 1, 2, 0], [1, 0, 2, 1, 1]])
    x = Tensor(np.array([[1, 0, 2], [0, 0, 1], [0, 3, 0], [1, 1, 1]], dtype=np.float32))
    y = Tensor([0, 1, 1, 0])
    num_nodes = 4
    num_edges = 5

class Graph:
    ndata = {"feat": Data.x, "label": Data.y}
    def adj_external(self, scipy_fmt):
        return sp.coo_matrix((np.ones(5), Data.edge_index.numpy()), (4, 4)).asformat(scipy_fmt)

data, g = Data(), Graph()
)";

class GraphFormatsTest : public ::testing::Test {
 protected:
  // Runs a line of shell in the scratch directory.
  CommandResult Shell(const std::string& line) const {
    return RunCommand({"/bin/bash", "-c", absl::StrCat("cd '", directory_.path(), "' && ", line)},
                      {{"PATH", absl::StrCat(BinaryPath(""), ":/usr/bin:/bin")}});
  }

  TemporaryDirectory directory_;
};

TEST_F(GraphFormatsTest, TwoLinesOfPythonWriteOurFile) {
  if (Shell("python3 -c 'import numpy, scipy.sparse'").exit_code != 0) {
    GTEST_SKIP() << "python3-numpy and python3-scipy are not installed";
  }
  const std::string document = ReadSource("docs/graph_files.md");
  for (const char* library : {"PyTorch Geometric", "DGL"}) {
    const std::string code = CodeBlock(document, absl::StrCat("<!-- ", library, " -->"), "python");
    EXPECT_EQ(std::count(code.begin(), code.end(), '\n'), 2) << library;
    WriteFile(directory_.File("write.py"), absl::StrCat(kStandIns, code));
    const CommandResult written = Shell("python3 write.py");
    ASSERT_EQ(written.exit_code, 0) << library << written.err;
    const CommandResult inspected = Shell("dpar graph inspect graph.npz");
    EXPECT_EQ(inspected.exit_code, 0) << library << inspected.err;
    EXPECT_THAT(inspected.out, HasSubstr("  nodes     4\n")) << library;
    EXPECT_THAT(inspected.out, HasSubstr("  edges     2 ")) << library;
    EXPECT_THAT(inspected.out, HasSubstr("  features  3 ")) << library;
    EXPECT_THAT(inspected.out, HasSubstr("  classes   2\n")) << library;
  }
}

TEST_F(GraphFormatsTest, AGraphSurvivesEveryFormat) {
  const CommandResult result = Shell(
      "dpar graph generate -o a.npz --nodes 300 --classes 4 --features 40 && "
      "dpar graph convert a.npz -o b.graphml && dpar graph convert b.graphml -o c.sealed && "
      "dpar graph convert c.sealed -o d.npz && cmp a.npz d.npz && echo same");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("same\n"));
}

}  // namespace
}  // namespace dpar::e2e
