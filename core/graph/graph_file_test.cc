#include "core/graph/graph_file.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>

#include "core/graph/testing/npz_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::BytesOf;
using ::dpar::testing::RawNpyOf;
using ::dpar::testing::ReadBytes;
using ::dpar::testing::Summary;
using ::dpar::testing::TestPath;
using ::dpar::testing::VectorArray;
using ::dpar::testing::WriteArrays;
using ::dpar::testing::WriteBytes;
using ::dpar::testing::WriteRawZip;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Arrays = std::map<std::string, NpyArray>;

// Four nodes, edges 0-1 and 1-2 in both directions, three features, classes 0 and 1, node 2 without a label.
Arrays Sample() {
  return {{"adj_data", VectorArray(std::vector<float>(4, 1.0F))},
          {"adj_indices", VectorArray(std::vector<int32_t>{1, 0, 2, 1})},
          {"adj_indptr", VectorArray(std::vector<int32_t>{0, 1, 3, 4, 4})},
          {"adj_shape", VectorArray(std::vector<int64_t>{4, 4})},
          {"attr_data", VectorArray(std::vector<float>{1.5F, 2.0F, 3.0F, 4.0F})},
          {"attr_indices", VectorArray(std::vector<int32_t>{0, 2, 1, 2})},
          {"attr_indptr", VectorArray(std::vector<int32_t>{0, 2, 3, 3, 4})},
          {"attr_shape", VectorArray(std::vector<int64_t>{4, 3})},
          {"labels", VectorArray(std::vector<int64_t>{0, 1, -1, 1})}};
}

absl::StatusOr<ImportedGraph> Import(const Arrays& arrays, const std::optional<PublicSizes>& declared = std::nullopt,
                                     const GraphLimits& limits = {}) {
  const std::string path = TestPath("graph.npz");
  EXPECT_TRUE(WriteArrays(path, arrays).ok());
  return ReadGraphFile(path, limits, declared);
}

// The sample with some arrays replaced.
absl::StatusOr<ImportedGraph> ImportWith(const Arrays& changes) {
  Arrays arrays = Sample();
  for (const auto& [name, array] : changes) {
    arrays[name] = array;
  }
  return Import(arrays);
}

std::string Refusal(const Arrays& changes) { return Summary(ImportWith(changes).status()); }

std::string Refused(const std::string& array) { return "INVALID_ARGUMENT INVALID_GRAPH array=" + array; }
std::string RefusedAt(const std::string& array, size_t position) {
  return Refused(array) + " position=" + std::to_string(position);
}

template <typename Entry>
Arrays With(const std::string& name, std::vector<Entry> entries) {
  return {{name, VectorArray(std::move(entries))}};
}

using Ints = std::vector<int32_t>;
using Longs = std::vector<int64_t>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

TEST(ReadGraphFileTest, ReadsAGraph) {
  const auto imported = Import(Sample());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Graph& graph = imported->graph;
  EXPECT_EQ(graph.sizes, (PublicSizes{4, 3, 2}));
  EXPECT_THAT(graph.edge_offsets, ElementsAre(0, 1, 3, 4, 4));
  EXPECT_THAT(graph.neighbours, ElementsAre(1, 0, 2, 1));
  EXPECT_THAT(graph.features.offsets, ElementsAre(0, 2, 3, 3, 4));
  EXPECT_THAT(graph.features.columns, ElementsAre(0, 2, 1, 2));
  EXPECT_THAT(graph.features.values, ElementsAre(1.5F, 2.0F, 3.0F, 4.0F));
  EXPECT_THAT(graph.labels, ElementsAre(0, 1, -1, 1));
  EXPECT_EQ(imported->report.edge_count, 2);
  EXPECT_EQ(imported->report.unlabelled_nodes, 1);
  EXPECT_EQ(imported->report.edges_symmetrised, 0);
}

TEST(ReadGraphFileTest, ReadsTheOtherSpelling) {
  Arrays arrays;
  for (const auto& [name, array] : Sample()) {
    const size_t joint = name.find('_');
    arrays[joint == std::string::npos ? name : name.substr(0, joint) + "_matrix." + name.substr(joint + 1)] = array;
  }
  const auto imported = Import(arrays);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph, Import(Sample())->graph);
}

TEST(ReadGraphFileTest, ReadsDenseFeaturesOfAnyNumberType) {
  const Doubles dense = {1.5, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 4};
  for (const char* name : {"attr_matrix", "attr"}) {
    Arrays arrays = Sample();
    for (const char* part : {"attr_data", "attr_indices", "attr_indptr", "attr_shape"}) {
      arrays.erase(part);
    }
    arrays[name] = NpyArray{{4, 3}, dense};
    const auto imported = Import(arrays);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->graph, Import(Sample())->graph);
    EXPECT_EQ(imported->report.zero_features_dropped, 0);
    arrays[name] = NpyArray{{4, 3}, Floats(dense.begin(), dense.end())};
    EXPECT_EQ(Import(arrays)->graph, Import(Sample())->graph);
  }
}

TEST(ReadGraphFileTest, RefusesBadDenseFeatures) {
  Arrays arrays = Sample();
  for (const char* part : {"attr_data", "attr_indices", "attr_indptr", "attr_shape"}) {
    arrays.erase(part);
  }
  arrays["attr_matrix"] = NpyArray{{3, 3}, Floats(9, 1.0F)};
  EXPECT_EQ(Summary(Import(arrays).status()), RefusedAt("attr_matrix", 0));
  arrays["attr_matrix"] = NpyArray{{12}, Floats(12, 1.0F)};
  EXPECT_EQ(Summary(Import(arrays).status()), Refused("attr_matrix"));
  arrays["attr_matrix"] = NpyArray{{4, 0}, Floats()};
  EXPECT_EQ(Summary(Import(arrays).status()), Refused("attr_matrix"));
  Floats values(12, 1.0F);
  values[7] = std::numeric_limits<float>::infinity();
  arrays["attr_matrix"] = NpyArray{{4, 3}, values};
  EXPECT_EQ(Summary(Import(arrays).status()), RefusedAt("attr_matrix", 7));
  arrays["attr_matrix"] = NpyArray{{4, 3}, Floats(12, 1.0F)};
  GraphLimits limits;
  limits.max_feature_entries = 11;
  EXPECT_EQ(Summary(Import(arrays, std::nullopt, limits).status()),
            "RESOURCE_EXHAUSTED LIMIT_EXCEEDED limit=max_feature_entries maximum=11");
}

TEST(ReadGraphFileTest, RefusesTheSameMatrixInTwoSpellings) {
  EXPECT_EQ(Refusal(With("adj_matrix.data", Floats{1})), Refused("adj_matrix.shape"));
  EXPECT_EQ(Refusal({{"attr_matrix", NpyArray{{4, 3}, Floats(12, 1.0F)}}}), Refused("attr_matrix"));
}

TEST(ReadGraphFileTest, SymmetrisesMergesAndDropsAndSaysSo) {
  const auto imported = ImportWith({{"adj_data", VectorArray(Doubles(6, 2.5))},
                                    {"adj_indices", VectorArray(Longs{1, 1, 0, 3, 0, 2})},
                                    {"adj_indptr", VectorArray(Longs{0, 4, 5, 6, 6})}});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->graph.edge_offsets, ElementsAre(0, 2, 3, 3, 4));
  EXPECT_THAT(imported->graph.neighbours, ElementsAre(1, 3, 0, 0));
  EXPECT_EQ(imported->report.edge_count, 2);
  EXPECT_EQ(imported->report.edges_symmetrised, 1);
  EXPECT_EQ(imported->report.duplicates_merged, 1);
  EXPECT_EQ(imported->report.self_loops_dropped, 2);
}

TEST(ReadGraphFileTest, AcceptsAGraphWithoutEdges) {
  const auto imported = ImportWith({{"adj_data", VectorArray(Floats{})},
                                    {"adj_indices", VectorArray(Ints{})},
                                    {"adj_indptr", VectorArray(Ints(5, 0))}});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph.edge_count(), 0);
}

TEST(ReadGraphFileTest, SortsFeatureColumnsAndDropsZeros) {
  const auto imported = ImportWith(
      {{"attr_data", VectorArray(Floats{2.0F, 1.5F, 0.0F, 4.0F})}, {"attr_indices", VectorArray(Ints{2, 0, 1, 2})}});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->graph.features.offsets, ElementsAre(0, 2, 2, 2, 3));
  EXPECT_THAT(imported->graph.features.columns, ElementsAre(0, 2, 2));
  EXPECT_THAT(imported->graph.features.values, ElementsAre(1.5F, 2.0F, 4.0F));
  EXPECT_EQ(imported->report.zero_features_dropped, 1);
}

TEST(ReadGraphFileTest, IgnoresOtherArraysWithoutReadingThem) {
  std::vector<std::pair<std::string, std::string>> entries = {
      {"class_names.npy", RawNpyOf("|O", "(2,)", "\x80\x03pickle")},
      {"metadata.npy", "no array"},
      {"adj_data.npy", RawNpyOf("<f4", "(0,)", "")},
      {"adj_indices.npy", RawNpyOf("<i4", "(0,)", "")},
      {"adj_indptr.npy", RawNpyOf("<i4", "(2,)", BytesOf(Ints{0, 0}))},
      {"adj_shape.npy", RawNpyOf("<i8", "(2,)", BytesOf(Longs{1, 1}))},
      {"attr_matrix.npy", RawNpyOf("<f4", "(1, 1)", BytesOf(Floats{1}))},
      {"labels.npy", RawNpyOf("|u1", "(1,)", std::string(1, '\0'))}};
  const std::string path = TestPath("extra.npz");
  WriteRawZip(path, entries);
  const auto imported = ReadGraphFile(path, {}, std::nullopt);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph.sizes, (PublicSizes{1, 1, 1}));
  entries.back().second = RawNpyOf("|O", "(1,)", "\x80\x03pickle");
  WriteRawZip(path, entries);
  const absl::Status status = ReadGraphFile(path, {}, std::nullopt).status();
  EXPECT_EQ(Summary(status), Refused("labels"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("object array"));
}

TEST(ReadGraphFileTest, NamesEachMissingArray) {
  for (const auto& [name, array] : Sample()) {
    Arrays arrays = Sample();
    arrays.erase(name);
    EXPECT_EQ(Summary(Import(arrays).status()), Refused(name));
  }
  Arrays arrays = Sample();
  for (const char* part : {"adj_data", "adj_indices", "adj_indptr", "adj_shape"}) {
    arrays.erase(part);
  }
  EXPECT_EQ(Summary(Import(arrays).status()), Refused("adj_data"));
}

TEST(ReadGraphFileTest, RefusesIndicesOutOfRange) {
  EXPECT_EQ(Refusal(With("adj_indices", Ints{1, 0, 4, 1})), RefusedAt("adj_indices", 2));
  EXPECT_EQ(Refusal(With("adj_indices", Ints{1, 0, 2, -1})), RefusedAt("adj_indices", 3));
  EXPECT_EQ(Refusal(With("adj_indices", Longs{(int64_t{1} << 32) + 1, 0, 2, 1})), RefusedAt("adj_indices", 0));
  EXPECT_EQ(Refusal(With("attr_indices", Ints{0, 3, 1, 2})), RefusedAt("attr_indices", 1));
}

TEST(ReadGraphFileTest, RefusesIndptrThatIsNotMonotone) {
  EXPECT_EQ(Refusal(With("adj_indptr", Ints{0, 3, 1, 4, 4})), RefusedAt("adj_indptr", 2));
  EXPECT_EQ(Refusal(With("attr_indptr", Ints{0, 2, 3, 2, 4})), RefusedAt("attr_indptr", 3));
}

TEST(ReadGraphFileTest, RefusesIndptrThatDoesNotStartAtZero) {
  EXPECT_EQ(Refusal(With("adj_indptr", Ints{1, 1, 3, 4, 4})), RefusedAt("adj_indptr", 0));
  EXPECT_EQ(Refusal(With("attr_indptr", Ints{-1, 2, 3, 3, 4})), RefusedAt("attr_indptr", 0));
}

TEST(ReadGraphFileTest, RefusesIndptrThatDoesNotEndAtTheEntryCount) {
  EXPECT_EQ(Refusal(With("adj_indptr", Ints{0, 1, 3, 4, 5})), RefusedAt("adj_indptr", 4));
  EXPECT_EQ(Refusal(With("attr_indptr", Ints{0, 2, 3, 3, 3})), RefusedAt("attr_indptr", 4));
}

TEST(ReadGraphFileTest, RefusesShapesThatDisagree) {
  EXPECT_EQ(Refusal(With("adj_indptr", Ints{0, 1, 3, 4})), Refused("adj_indptr"));
  EXPECT_EQ(Refusal(With("adj_data", Floats{1, 1, 1})), Refused("adj_data"));
  EXPECT_EQ(Refusal({{"adj_indices", NpyArray{{2, 2}, Ints{1, 0, 2, 1}}}}), Refused("adj_indices"));
  EXPECT_EQ(Refusal(With("adj_shape", Longs{4, 5})), Refused("adj_shape"));
  EXPECT_EQ(Refusal(With("adj_shape", Longs{4})), Refused("adj_shape"));
  EXPECT_EQ(Refusal(With("adj_shape", Doubles{4, 4})), Refused("adj_shape"));
  EXPECT_EQ(Refusal(With("attr_shape", Longs{5, 3})), RefusedAt("attr_shape", 0));
  EXPECT_EQ(Refusal(With("attr_shape", Longs{4, -3})), RefusedAt("attr_shape", 1));
  EXPECT_EQ(Refusal(With("labels", Longs{0, 1, 1})), Refused("labels"));
  EXPECT_EQ(Refusal({{"labels", NpyArray{{4, 1}, Longs{0, 1, 1, 0}}}}), Refused("labels"));
}

TEST(ReadGraphFileTest, RefusesAGraphWithoutNodes) {
  EXPECT_EQ(Refusal(With("adj_shape", Longs{0, 0})), RefusedAt("adj_shape", 0));
}

TEST(ReadGraphFileTest, RefusesNumbersOfTheWrongKind) {
  EXPECT_EQ(Refusal(With("adj_indices", Floats{1, 0, 2, 1})), Refused("adj_indices"));
  EXPECT_EQ(Refusal(With("adj_indptr", Doubles{0, 1, 3, 4, 4})), Refused("adj_indptr"));
  EXPECT_EQ(Refusal(With("labels", Floats{0, 1, 1, 0})), Refused("labels"));
  EXPECT_EQ(Refusal({{"labels", NpyArray{{}, std::string("text")}}}), Refused("labels"));
}

TEST(ReadGraphFileTest, RefusesFeaturesThatAreNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Refusal(With("attr_data", Floats{1, nan, 1, 1})), RefusedAt("attr_data", 1));
  EXPECT_EQ(Refusal(With("attr_data", Floats{1, 1, 1, infinity})), RefusedAt("attr_data", 3));
  EXPECT_EQ(Refusal(With("attr_data", Floats{-infinity, 1, 1, 1})), RefusedAt("attr_data", 0));
  EXPECT_EQ(Refusal(With("attr_data", Doubles{1, 1, 1e300, 1})), RefusedAt("attr_data", 2));
}

TEST(ReadGraphFileTest, RefusesAFeatureColumnTwiceInARow) {
  EXPECT_EQ(Refusal(With("attr_indices", Ints{2, 2, 1, 2})), RefusedAt("attr_indices", 0));
}

TEST(ReadGraphFileTest, RefusesWeightsThatDiffer) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Refusal(With("adj_data", Floats{1, 1, 2, 1})), RefusedAt("adj_data", 2));
  EXPECT_EQ(Refusal(With("adj_data", Floats{nan, nan, nan, nan})), RefusedAt("adj_data", 0));
  EXPECT_EQ(Refusal(With("adj_data", Ints{0, 0, 0, 0})), RefusedAt("adj_data", 0));
  EXPECT_TRUE(ImportWith(With("adj_data", Ints{3, 3, 3, 3})).ok());
}

TEST(ReadGraphFileTest, RefusesLabelsOutOfRange) {
  EXPECT_EQ(Refusal(With("labels", Longs{0, -2, 1, 1})), RefusedAt("labels", 1));
  EXPECT_EQ(Refusal(With("labels", Longs{0, int64_t{1} << 40, 1, 1})), RefusedAt("labels", 1));
  Arrays changes = With("labels", Longs{0, 1, 2, 1});
  changes["num_classes"] = NpyArray{{}, Longs{2}};
  EXPECT_EQ(Refusal(changes), RefusedAt("labels", 2));
}

TEST(ReadGraphFileTest, TakesTheClassCountFromNumClasses) {
  EXPECT_EQ(ImportWith({{"num_classes", NpyArray{{}, Longs{7}}}})->graph.sizes.class_count, 7);
  EXPECT_EQ(ImportWith({{"num_classes", NpyArray{{1}, Ints{7}}}})->graph.sizes.class_count, 7);
  EXPECT_EQ(Refusal({{"num_classes", NpyArray{{}, Longs{0}}}}), Refused("num_classes"));
  EXPECT_EQ(Refusal({{"num_classes", NpyArray{{2}, Longs{3, 3}}}}), Refused("num_classes"));
  EXPECT_EQ(Refusal({{"num_classes", NpyArray{{0}, Longs{}}}}), Refused("num_classes"));
  EXPECT_EQ(Refusal({{"num_classes", NpyArray{{}, Doubles{3}}}}), Refused("num_classes"));
  EXPECT_EQ(Refusal({{"num_classes", NpyArray{{}, Longs{10'001}}}}),
            "RESOURCE_EXHAUSTED LIMIT_EXCEEDED limit=max_classes maximum=10000");
}

TEST(ReadGraphFileTest, RefusesAGraphWithoutLabelsUnlessClassesAreStated) {
  const Arrays unlabelled = With("labels", Longs{-1, -1, -1, -1});
  EXPECT_EQ(Refusal(unlabelled), Refused("labels"));
  Arrays arrays = Sample();
  arrays["labels"] = unlabelled.at("labels");
  EXPECT_TRUE(Import(arrays, PublicSizes{4, 3, 2}).ok());
}

TEST(ReadGraphFileTest, RefusesSizesOtherThanDeclared) {
  const auto import = [](const PublicSizes& sizes) { return Summary(Import(Sample(), sizes).status()); };
  EXPECT_EQ(import({4, 3, 2}), "OK");
  EXPECT_EQ(import({4, 3, 9}), "OK");
  EXPECT_EQ(import({5, 3, 2}), RefusedAt("adj_shape", 0));
  EXPECT_EQ(import({4, 4, 2}), RefusedAt("attr_shape", 1));
  EXPECT_EQ(import({4, 3, 1}), RefusedAt("labels", 1));
  EXPECT_EQ(Import(Sample(), PublicSizes{4, 3, 9})->graph.sizes.class_count, 9);
}

TEST(ReadGraphFileTest, AppliesEveryLimitBeforeReadingEntries) {
  const auto import = [](const std::function<void(GraphLimits&)>& lower) {
    GraphLimits limits;
    lower(limits);
    return Summary(Import(Sample(), std::nullopt, limits).status());
  };
  const std::string exceeded = "RESOURCE_EXHAUSTED LIMIT_EXCEEDED limit=";
  EXPECT_EQ(import([](GraphLimits& limits) { limits.max_nodes = 3; }), exceeded + "max_nodes maximum=3");
  EXPECT_EQ(import([](GraphLimits& limits) { limits.max_features = 2; }), exceeded + "max_features maximum=2");
  EXPECT_EQ(import([](GraphLimits& limits) { limits.max_classes = 1; }), exceeded + "max_classes maximum=1");
  EXPECT_EQ(import([](GraphLimits& limits) { limits.max_edges = 3; }), exceeded + "max_edges maximum=3");
  EXPECT_EQ(import([](GraphLimits& limits) { limits.max_feature_entries = 3; }),
            exceeded + "max_feature_entries maximum=3");
  EXPECT_EQ(import([](GraphLimits& limits) { limits = GraphLimits{4, 3, 2, 4, 4, limits.npz}; }), "OK");
}

// A path of 200'000 nodes, which is more than one chunk of every array.
Arrays LongPath() {
  constexpr int32_t kNodes = 200'000;
  Ints indices;
  Longs indptr = {0};
  Longs one_each = {0};
  for (int32_t node = 0; node < kNodes; ++node) {
    if (node + 1 < kNodes) {
      indices.push_back(node + 1);
    }
    indptr.push_back(static_cast<int64_t>(indices.size()));
    one_each.push_back(node + 1);
  }
  return {{"adj_data", VectorArray(Doubles(indices.size(), 3.5))},
          {"adj_indices", VectorArray(Longs(indices.begin(), indices.end()))},
          {"adj_indptr", VectorArray(indptr)},
          {"adj_shape", VectorArray(Longs{kNodes, kNodes})},
          {"attr_data", VectorArray(Doubles(kNodes, 0.5))},
          {"attr_indices", VectorArray(Longs(kNodes, 1))},
          {"attr_indptr", VectorArray(one_each)},
          {"attr_shape", VectorArray(Longs{kNodes, 2})},
          {"labels", VectorArray(Longs(kNodes, 1))}};
}

TEST(ReadGraphFileTest, ReadsArraysOfManyChunks) {
  const auto imported = Import(LongPath());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Graph& graph = imported->graph;
  EXPECT_EQ(graph.sizes, (PublicSizes{200'000, 2, 2}));
  EXPECT_EQ(graph.edge_count(), 199'999);
  EXPECT_EQ(imported->report.edges_symmetrised, 199'999);
  EXPECT_THAT(graph.edges().neighbours_of(150'000), ElementsAre(149'999, 150'001));
  EXPECT_EQ(graph.features.columns, Ints(200'000, 1));
  EXPECT_EQ(graph.features.values, Floats(200'000, 0.5F));
}

TEST(ReadGraphFileTest, CountsPositionsAcrossChunks) {
  constexpr size_t kPosition = 180'000;
  const auto refusal = [](const std::string& name, auto entries, auto bad) {
    entries[kPosition] = bad;
    Arrays arrays = LongPath();
    arrays[name] = VectorArray(std::move(entries));
    return Summary(Import(arrays).status());
  };
  EXPECT_EQ(refusal("adj_indices", Longs(199'999, 5), 200'000), RefusedAt("adj_indices", kPosition));
  EXPECT_EQ(refusal("adj_data", Doubles(199'999, 1), 2), RefusedAt("adj_data", kPosition));
  EXPECT_EQ(refusal("adj_data", Longs(199'999, int64_t{1} << 60), (int64_t{1} << 60) + 1),
            RefusedAt("adj_data", kPosition));
  EXPECT_EQ(refusal("attr_indices", Ints(200'000, 1), -1), RefusedAt("attr_indices", kPosition));
  EXPECT_EQ(refusal("attr_data", Doubles(200'000, 1), 1e39), RefusedAt("attr_data", kPosition));
  EXPECT_EQ(refusal("labels", Longs(200'000, 1), -2), RefusedAt("labels", kPosition));
}

TEST(ReadGraphFileTest, KeepsValuesOfTheFileOutOfMessages) {
  const absl::Status index = ImportWith(With("adj_indices", Ints{1, 0, 987654, 1})).status();
  EXPECT_THAT(std::string(index.message()), Not(HasSubstr("987654")));
  EXPECT_EQ(index.message(), "adj_indices[2] is out of range");
  const absl::Status label = ImportWith(With("labels", Longs{0, -987654, 1, 1})).status();
  EXPECT_EQ(label.message(), "labels[1] is out of range");
}

TEST(ReadGraphSizesTest, ReadsTheSizesAlone) {
  const std::string path = TestPath("sizes.npz");
  Arrays arrays = Sample();
  arrays["adj_indices"] = VectorArray(Ints{99, 99, 99, 99});  // not looked at
  ASSERT_TRUE(WriteArrays(path, arrays).ok());
  EXPECT_EQ(Summary(ReadGraphSizes(path, {}, std::nullopt).status()), Refused("num_classes"))
      << "classes are stated, not counted";
  EXPECT_EQ(Summary(ReadGraphSizes(path, {}, 0).status()), "INVALID_ARGUMENT INVALID_FIELD field=classes");
  EXPECT_EQ(*ReadGraphSizes(path, {}, 2), (PublicSizes{4, 3, 2}));
  arrays["num_classes"] = NpyArray{{}, Longs{5}};
  arrays.erase("labels");
  ASSERT_TRUE(WriteArrays(path, arrays).ok());
  EXPECT_EQ(*ReadGraphSizes(path, {}, std::nullopt), (PublicSizes{4, 3, 5}));
  EXPECT_EQ(*ReadGraphSizes(path, {}, 7), (PublicSizes{4, 3, 7})) << "what the caller states counts";
}

TEST(WriteGraphFileTest, GivesBackTheSameGraphAndTheSameBytes) {
  Graph graph = Import(Sample())->graph;
  graph.sizes.class_count = 6;
  const std::string path = TestPath("written.npz");
  ASSERT_TRUE(WriteGraphFile(path, graph).ok());
  const auto read = ReadGraphFile(path, {}, std::nullopt);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->graph, graph);
  ASSERT_TRUE(WriteGraphFile(TestPath("again.npz"), read->graph).ok());
  EXPECT_EQ(ReadBytes(TestPath("again.npz")), ReadBytes(path));
}

// Whatever a damaged file does, it is refused or gives the graph that was written: zip checksums cover the content.
void ExpectRefusedOrSame(const std::string& bytes, const std::string& content, const std::string& path) {
  WriteBytes(path, bytes);
  const auto read = ReadGraphFile(path, {}, std::nullopt);
  if (read.ok()) {
    ASSERT_EQ(CanonicalContent(read->graph), content);
  } else {
    ASSERT_TRUE(absl::IsInvalidArgument(read.status()) || absl::IsResourceExhausted(read.status())) << read.status();
  }
}

TEST(DamagedGraphFileTest, IsRefusedWhereverItIsCutOff) {
  const Graph graph = Import(Sample())->graph;
  const std::string path = TestPath("cut.npz");
  ASSERT_TRUE(WriteGraphFile(path, graph).ok());
  const std::string whole = ReadBytes(path);
  for (size_t length = 0; length < whole.size(); ++length) {
    WriteBytes(path, whole.substr(0, length));
    ASSERT_EQ(Summary(ReadGraphFile(path, {}, std::nullopt).status()), Refused("file")) << length;
  }
}

TEST(DamagedGraphFileTest, NeverCrashesWhicheverByteChanges) {
  const Graph graph = Import(Sample())->graph;
  const std::string path = TestPath("flipped.npz");
  ASSERT_TRUE(WriteGraphFile(path, graph).ok());
  const std::string whole = ReadBytes(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ mask);
      ExpectRefusedOrSame(bytes, CanonicalContent(graph), path);
    }
  }
}

struct PublicGraph {
  std::string name;
  int64_t edges;
  PublicSizes sizes;
};

TEST(PublicGraphsTest, HaveTheirPublishedSizes) {
  const char* source = std::getenv("DPAR_SOURCE_DIR");
  const std::string directory = (source == nullptr ? "." : std::string(source)) + "/../shared/data/";
  const PublicGraph graphs[] = {
      {"cora_ml", 8158, {2995, 2879, 7}},           {"coauthor_cs", 81894, {18333, 6805, 15}},
      {"coauthor_phy", 247962, {34493, 8415, 5}},   {"citeseer_planetoid", 4536, {3312, 3703, 6}},
      {"musae_facebook", 170823, {22470, 4714, 4}}, {"fb100_Amherst41_year", 73892, {1786, 100, 5}}};
  for (const PublicGraph& graph : graphs) {
    const std::string path = directory + graph.name + ".npz";
    if (!std::filesystem::exists(path)) {
      std::cout << path << " is not here; the other tests of this file cover the reader with graphs of their own\n";
      continue;
    }
    const auto imported = ReadGraphFile(path, {}, std::nullopt);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->graph.sizes, graph.sizes) << graph.name;
    EXPECT_EQ(imported->report.edge_count, graph.edges) << graph.name;
    EXPECT_TRUE(CheckSizeBounds(imported->graph, DefaultSizeBounds(graph.sizes, {400'000'000, 2'000'000'000})).ok());
    EXPECT_EQ(imported->report.edges_symmetrised, 0) << graph.name;
    EXPECT_EQ(imported->report.self_loops_dropped, 0) << graph.name;
    EXPECT_EQ(*ReadGraphSizes(path, {}, graph.sizes.class_count), graph.sizes) << graph.name;
    const std::string copy = TestPath("copy.npz");
    ASSERT_TRUE(WriteGraphFile(copy, imported->graph).ok());
    EXPECT_EQ(ReadGraphFile(copy, {}, std::nullopt)->graph, imported->graph) << graph.name;
  }
}

}  // namespace
}  // namespace dpar
