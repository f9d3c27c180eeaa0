#include "core/graph/local_graph.h"

#include <gtest/gtest.h>

#include "core/graph/testing/npz_fixture.h"

namespace dpar {
namespace {

using ::dpar::testing::ReadBytes;
using ::dpar::testing::Summary;
using ::dpar::testing::TestPath;
using ::dpar::testing::WriteBytes;

// Nodes 0 - 1 - 2; node 2 has no label.
Graph Path() {
  Graph graph;
  graph.sizes = {3, 2, 2};
  graph.edge_offsets = {0, 1, 3, 4};
  graph.neighbours = {1, 0, 2, 1};
  graph.features = {{0, 1, 2, 3}, {0, 1, 0}, {1, 2, 3}};
  graph.labels = {0, 1, kUnlabelled};
  return graph;
}

TEST(LocalGraph, GivesTheSameGraphFromEitherKindOfFile) {
  const std::string npz = TestPath("graph.npz");
  const std::string sealed = TestPath("graph.sealed");
  ASSERT_TRUE(WriteGraphFile(npz, Path()).ok());
  ASSERT_TRUE(WriteSealedGraph(sealed, Path()).ok());
  for (const std::string& path : {npz, sealed}) {
    const auto graph = LocalGraph::Open(path);
    ASSERT_TRUE(graph.ok()) << path;
    ASSERT_TRUE(graph->View().ok()) << path;
    EXPECT_EQ(graph->View()->sizes, Path().sizes) << path;
    EXPECT_EQ(CanonicalContent(*graph->View()), CanonicalContent(Path())) << path;
    EXPECT_EQ(graph->Edges()->edge_count(), 2) << path;
  }
}

TEST(LocalGraph, ReportsWhatReadingChanged) {
  const std::string npz = TestPath("graph.npz");
  const std::string sealed = TestPath("graph.sealed");
  ASSERT_TRUE(WriteGraphFile(npz, Path()).ok());
  ASSERT_TRUE(WriteSealedGraph(sealed, Path()).ok());
  EXPECT_EQ(LocalGraph::Open(npz)->report().unlabelled_nodes, 1);
  EXPECT_EQ(LocalGraph::Open(sealed)->report().edge_count, 0);
}

TEST(LocalGraph, FindsDamageWhenTheSectionIsAskedFor) {
  const std::string sealed = TestPath("graph.sealed");
  ASSERT_TRUE(WriteSealedGraph(sealed, Path()).ok());
  std::string bytes = ReadBytes(sealed);
  bytes[4096] = static_cast<char>(bytes[4096] ^ 1);
  WriteBytes(sealed, bytes);
  const auto graph = LocalGraph::Open(sealed);
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(graph->View().status().code(), absl::StatusCode::kDataLoss);
}

TEST(LocalGraph, RefusesOtherFilesAsTheReadersDo) {
  const std::string path = TestPath("text");
  WriteBytes(path, "hello");
  EXPECT_EQ(Summary(LocalGraph::Open(path).status()), "INVALID_ARGUMENT INVALID_GRAPH array=file");
  EXPECT_EQ(LocalGraph::Open(TestPath("missing")).status().code(), absl::StatusCode::kNotFound);
}

TEST(LocalGraph, KnowsWhenTheClassesWereCounted) {
  const std::string npz = TestPath("graph.npz");
  ASSERT_TRUE(WriteGraphFile(npz, Path()).ok());
  EXPECT_FALSE(LocalGraph::Open(npz)->classes_counted());
}

TEST(WriteLocalGraph, WritesWhatTheNameSays) {
  ASSERT_TRUE(WriteLocalGraph(TestPath("a.npz"), Path()).ok());
  ASSERT_TRUE(WriteLocalGraph(TestPath("a.sealed"), Path()).ok());
  EXPECT_FALSE(IsSealedGraph(TestPath("a.npz")));
  EXPECT_TRUE(IsSealedGraph(TestPath("a.sealed")));
  EXPECT_EQ(Summary(WriteLocalGraph(TestPath("a.csv"), Path())), "INVALID_ARGUMENT INVALID_FIELD field=path");
}

}  // namespace
}  // namespace dpar
