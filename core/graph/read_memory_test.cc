// Peak memory while graphs are read, measured: each reading is a process of its own that is asked for the most it held.
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>

#include "core/graph/generate.h"
#include "core/graph/graph_file.h"
#include "core/graph/testing/child_memory.h"
#include "core/graph/testing/npz_fixture.h"
#include "core/random/testing/fixed_random.h"
#include "core/status_macros.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using ::dpar::testing::InChild;
using ::dpar::testing::kMemoryMeansNothing;
using ::dpar::testing::PeakBytes;
using ::dpar::testing::TestPath;

constexpr double kLargestShare = 1.5;  // of the result, that reading may take
// For each edge entry or feature entry of an npz, beside this for each node.
constexpr double kLargestEntryBytes = 12;
constexpr int64_t kLargestNodeBytes = 40;
// Far above what an allocator and a few buffers add.
constexpr int64_t kSmallestResultBytes = int64_t{20} << 20;

int64_t BytesOf(const Graph& graph) {
  const auto bytes = [](const auto& entries) {
    return static_cast<int64_t>(entries.size() * sizeof(typename std::decay_t<decltype(entries)>::value_type));
  };
  return bytes(graph.edge_offsets) + bytes(graph.neighbours) + bytes(graph.features.offsets) +
         bytes(graph.features.columns) + bytes(graph.features.values) + bytes(graph.labels);
}

struct Measured {
  int64_t result_bytes = 0;  // 0 when it failed
  int64_t peak_bytes = 0;
};

using Read = std::function<absl::StatusOr<ImportedGraph>()>;

Measured MeasureReading(const Read& read) {
  return InChild<Measured>([&read] {
    const int64_t before = PeakBytes();
    const absl::StatusOr<ImportedGraph> imported = read();
    if (!imported.ok()) {
      std::fprintf(stderr, "%s\n", imported.status().ToString().c_str());
      return Measured();
    }
    return Measured{BytesOf(imported->graph), PeakBytes() - before};
  });
}

template <typename Entries>
NpyView OneDimension(const Entries& entries) {
  return {{static_cast<int64_t>(entries.size())}, std::span(entries)};
}

// The graph without the entries of which keep(node, neighbour) is false.
template <typename Keep>
Graph WithoutEntries(const Graph& graph, const Keep& keep) {
  Graph result = graph;
  result.neighbours.clear();
  for (int64_t node = 0; node < graph.sizes.node_count; ++node) {
    for (const int32_t neighbour : graph.edges().neighbours_of(node)) {
      if (keep(node, neighbour)) {
        result.neighbours.push_back(neighbour);
      }
    }
    result.edge_offsets[static_cast<size_t>(node) + 1] = static_cast<int64_t>(result.neighbours.size());
  }
  return result;
}

absl::Status WriteOneDirection(const Graph& graph, const std::string& path) {
  return WriteGraphFile(path, WithoutEntries(graph, [](int64_t node, int32_t neighbour) { return node < neighbour; }));
}

// int64 indices and double weights, in the other spelling. Every tenth edge stands in one direction only: few enough
// that a copy which makes room for them would stand beside nearly the whole result.
absl::Status WriteWide(const Graph& symmetric, const std::string& path) {
  const Graph graph = WithoutEntries(
      symmetric, [](int64_t node, int32_t neighbour) { return node < neighbour || (node + neighbour) % 10 != 0; });
  const std::vector<int64_t> indices(graph.neighbours.begin(), graph.neighbours.end());
  const std::vector<int64_t> columns(graph.features.columns.begin(), graph.features.columns.end());
  const std::vector<double> weights(graph.neighbours.size(), 0.5);
  const std::vector<double> values(graph.features.values.begin(), graph.features.values.end());
  const std::vector<int64_t> labels(graph.labels.begin(), graph.labels.end());
  const std::vector<int64_t> adjacency_shape = {graph.sizes.node_count, graph.sizes.node_count};
  const std::vector<int64_t> feature_shape = {graph.sizes.node_count, graph.sizes.feature_count};
  return WriteNpzFile(path, {{"adj_matrix.data", OneDimension(weights)},
                             {"adj_matrix.indices", OneDimension(indices)},
                             {"adj_matrix.indptr", OneDimension(graph.edge_offsets)},
                             {"adj_matrix.shape", OneDimension(adjacency_shape)},
                             {"attr_matrix.data", OneDimension(values)},
                             {"attr_matrix.indices", OneDimension(columns)},
                             {"attr_matrix.indptr", OneDimension(graph.features.offsets)},
                             {"attr_matrix.shape", OneDimension(feature_shape)},
                             {"labels", OneDimension(labels)}});
}

// A matrix of 80 columns in which every fourth entry is not zero, and no edges.
absl::Status WriteDense(const Graph& graph, const std::string& path) {
  constexpr int64_t kColumns = 80;
  std::vector<float> dense(static_cast<size_t>(graph.sizes.node_count * kColumns), 0.0F);
  for (size_t at = 0; at < dense.size(); at += 4) {
    dense[at] = 1.0F;
  }
  const std::vector<float> no_weights;
  const std::vector<int32_t> no_neighbours;
  const std::vector<int32_t> offsets(graph.edge_offsets.size(), 0);
  const std::vector<int64_t> shape = {graph.sizes.node_count, graph.sizes.node_count};
  return WriteNpzFile(path, {{"adj_data", OneDimension(no_weights)},
                             {"adj_indices", OneDimension(no_neighbours)},
                             {"adj_indptr", OneDimension(offsets)},
                             {"adj_shape", OneDimension(shape)},
                             {"attr_matrix", NpyView{{graph.sizes.node_count, kColumns}, std::span(dense)}},
                             {"labels", OneDimension(graph.labels)}});
}

// The same graph in every form.
struct Files {
  std::string own = TestPath("own.npz");
  std::string wide = TestPath("wide.npz");
  std::string one_direction = TestPath("one_direction.npz");
  std::string dense = TestPath("dense.npz");
  bool written = false;
};

constexpr PublicSizes kSizes = {150'000, 1000, 5};

absl::Status WriteAll(const Files& files) {
  GeneratorOptions options;
  options.nodes = kSizes.node_count;
  options.classes = kSizes.class_count;
  options.average_degree = 24;
  options.features = kSizes.feature_count;
  options.features_per_node = 5;
  FixedRandom random(3);
  DPAR_ASSIGN_OR_RETURN(const Graph graph, GenerateGraph(options, random));
  DPAR_RETURN_IF_ERROR(WriteGraphFile(files.own, graph));
  DPAR_RETURN_IF_ERROR(WriteWide(graph, files.wide));
  DPAR_RETURN_IF_ERROR(WriteOneDirection(graph, files.one_direction));
  return WriteDense(graph, files.dense);
}

Files MakeFiles() {
  Files files;
  const Measured written = InChild<Measured>([&files] {
    const absl::Status status = WriteAll(files);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
    }
    return Measured{status.ok() ? 1 : 0, 0};
  });
  files.written = written.result_bytes == 1;
  return files;
}

class ReadMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kMemoryMeansNothing) {
      GTEST_SKIP() << "a sanitizer keeps memory of its own; the build without one measures";
    }
    static const Files all = MakeFiles();
    ASSERT_TRUE(all.written);
    files_ = &all;
  }

  static void ExpectWithinBound(double largest_share, const Read& read) {
    const Measured measured = MeasureReading(read);
    ASSERT_GE(measured.result_bytes, kSmallestResultBytes);
    const double share = static_cast<double>(measured.peak_bytes) / static_cast<double>(measured.result_bytes);
    RecordProperty("peak_share", std::to_string(share));
    EXPECT_LE(share, largest_share);
    EXPECT_GE(share, 1.0) << "the result itself must have been counted";
  }
  static void ExpectWithinBound(const std::string& npz) {
    ExpectWithinBound(kLargestShare, [&npz] { return ReadGraphFile(npz, {}, std::nullopt); });
  }

  const Files* files_ = nullptr;
};

// The server's default limits on entries rest on it (kCheckedEntryBytes in server/config.cc).
TEST_F(ReadMemoryTest, OfAnEntryIsBounded) {
  for (const std::string& npz : {files_->own, files_->wide, files_->one_direction}) {
    // In a child: what this process has freed would be taken again unseen.
    const bool both_ways = npz != files_->one_direction;
    const Measured counted = InChild<Measured>([&] {
      const absl::StatusOr<ImportedGraph> imported = ReadGraphFile(npz, {}, std::nullopt);
      const int64_t edges = imported.ok() ? static_cast<int64_t>(imported->graph.neighbours.size()) : 0;
      const int64_t features = imported.ok() ? static_cast<int64_t>(imported->graph.features.columns.size()) : 0;
      return Measured{edges / (both_ways ? 1 : 2) + features, 0};
    });
    const int64_t entries = counted.result_bytes;
    ASSERT_GT(entries, 1'000'000);
    const Measured measured = MeasureReading([&npz] { return ReadGraphFile(npz, {}, std::nullopt); });
    const double bytes =
        static_cast<double>(measured.peak_bytes - kLargestNodeBytes * kSizes.node_count) / static_cast<double>(entries);
    std::cout << npz << ": " << bytes << " bytes an entry\n";
    EXPECT_LE(bytes, kLargestEntryBytes) << npz;
    EXPECT_GT(bytes, 2) << npz;
  }
}

TEST_F(ReadMemoryTest, OfOurOwnFilesIsBounded) { ExpectWithinBound(files_->own); }

TEST_F(ReadMemoryTest, OfWideIndicesAndSomeOneWayEdgesIsBounded) { ExpectWithinBound(files_->wide); }

TEST_F(ReadMemoryTest, OfEdgesInOneDirectionIsBounded) { ExpectWithinBound(files_->one_direction); }

TEST_F(ReadMemoryTest, OfADenseFeatureMatrixIsBounded) { ExpectWithinBound(files_->dense); }

}  // namespace
}  // namespace dpar
