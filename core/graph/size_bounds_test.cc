#include "core/graph/size_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>

#include "core/graph/edge_list.h"
#include "core/graph/graph_file.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr SizeBounds kLimits = {400'000'000, 2'000'000'000};

TEST(SizeBoundsTest, CommonGraphsNeedNoFlag) {
  struct Common {
    const char* name;
    PublicSizes sizes;
    SizeBounds has;
  };
  for (const Common& graph :
       {Common{"Cora-ML", {2'995, 2'879, 7}, {8'158, 151'171}}, Common{"Citeseer", {3'312, 3'703, 6}, {4'536, 105'165}},
        Common{"Coauthor-CS", {18'333, 6'805, 15}, {81'894, 1'092'079}},
        Common{"Coauthor-Physics", {34'493, 8'415, 5}, {247'962, 1'137'311}},
        Common{"MUSAE Facebook", {22'470, 4'714, 4}, {170'823, 314'583}},
        Common{"FB100 Amherst", {1'786, 100, 5}, {73'892, 6'807}},
        Common{"few dense columns", {170'000, 128, 40}, {1'200'000, 170'000 * 128}},
        Common{"dense embeddings", {100'000, 1024, 10}, {500'000, 102'400'000}},
        Common{"a million nodes", {1'000'000, 10'000, 10}, {10'000'000, 100'000'000}},
        Common{"a small clique", {500, 3, 2}, {124'750, 1'500}}}) {
    const SizeBounds bounds = DefaultSizeBounds(graph.sizes, kLimits);
    EXPECT_LE(graph.has.edges, bounds.edges) << graph.name;
    EXPECT_LE(graph.has.feature_entries, bounds.feature_entries) << graph.name;
  }
}

TEST(SizeBoundsTest, DefaultsFollowFromSizesAndLimits) {
  EXPECT_EQ(DefaultSizeBounds({18'333, 6'805, 15}, kLimits), (SizeBounds{64 * 18'333, 256 * 18'333}));
  EXPECT_EQ(DefaultSizeBounds({100'000, 1'024, 2}, kLimits), (SizeBounds{6'400'000, 102'400'000}));
  EXPECT_EQ(DefaultSizeBounds({100'000, 1'025, 2}, kLimits), (SizeBounds{6'400'000, 25'600'000}));
  EXPECT_EQ(DefaultSizeBounds({1'000, 2'000, 2}, kLimits), (SizeBounds{131'072, 256'000}));
  EXPECT_EQ(DefaultSizeBounds({3, 2, 2}, kLimits), (SizeBounds{3, 6})) << "no more than there can be";
  EXPECT_EQ(DefaultSizeBounds({1, 1, 2}, kLimits), (SizeBounds{1, 1}));
  EXPECT_EQ(DefaultSizeBounds({1'000'000, 10'000, 2}, {7, 8}), (SizeBounds{7, 8})) << "no more than the server takes";
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  const SizeBounds largest = DefaultSizeBounds({kLargest, kLargest, 2}, kLimits);
  EXPECT_EQ(largest, kLimits) << "without an overflow";
}

// Three nodes, two edges, three feature entries.
Graph SmallGraph() {
  ImportedGraph imported;
  imported.graph.sizes = {3, 2, 2};
  imported.graph.labels = {0, 1, kUnlabelled};
  imported.graph.features = {{0, 2, 3, 3}, {0, 1, 1}, {1, 2, 3}};
  FillEdges({{0, 1}, {1, 2}}, imported);
  return imported.graph;
}

TEST(SizeBoundsTest, AGraphMayReachItsBounds) {
  EXPECT_TRUE(CheckSizeBounds(SmallGraph(), {2, 3}).ok());
  EXPECT_TRUE(CheckSizeBounds(SmallGraph(), kLimits).ok());
}

TEST(SizeBoundsTest, ARefusalNamesTheBoundAndTheFlagAndNoCount) {
  const absl::Status edges = CheckSizeBounds(SmallGraph(), {1, 3});
  EXPECT_EQ(edges.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(edges.message(), HasSubstr("more than 1 edges"));
  EXPECT_THAT(edges.message(), HasSubstr("--edge-bound NUMBER (no graph of these sizes has more than 3)"));
  EXPECT_THAT(edges.message(), HasSubstr("known without the data"));
  EXPECT_THAT(edges.message(), Not(HasSubstr("2")));
  const absl::Status entries = CheckSizeBounds(SmallGraph(), {2, 2});
  EXPECT_EQ(entries.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(entries.message(), HasSubstr("more than 2 entries"));
  EXPECT_THAT(entries.message(), HasSubstr("--entry-bound NUMBER (no graph of these sizes has more than 6)"));
  EXPECT_THAT(entries.message(), Not(HasSubstr("3")));
}

TEST(SizeBoundsTest, AFilesShapesTellHowMuchAGraphHasAtMost) {
  const std::string path = ::testing::TempDir() + "/size_bounds_test.npz";
  ASSERT_TRUE(WriteGraphFile(path, SmallGraph()).ok());
  EXPECT_EQ(*ReadStoredCounts(path, {}), (SizeBounds{4, 3})) << "each edge stands in both directions";
  std::filesystem::remove(path);
  EXPECT_EQ(ReadStoredCounts(path, {}).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace dpar
