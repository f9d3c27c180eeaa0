#include "core/graph/csv_file.h"

#include <zlib.h>

#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/graph/testing/npz_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::ReadBytes;
using ::dpar::testing::Summary;
using ::dpar::testing::TestPath;
using ::dpar::testing::WriteBytes;
using ::testing::ElementsAre;

using Form = CsvGraphFiles::FeatureForm;

// The content of the three files.
struct Texts {
  std::string edges;
  std::string features;
  std::string labels;
  Form form = Form::kSparse;
};

// Four nodes, edges 0-1, 1-2 and 1-3, three features, classes 0 and 1, node 2 without a label.
Texts Sample() {
  return {"source,target\n0,1\n1,2\n3,1\n", "0,2,2\n0,0,1.5\n1,1,3\n3,2,4\n", "node,label\n0,0\n1,1\n3,1\n"};
}

Texts DenseSample() {
  Texts texts = Sample();
  texts.features = "1.5,0,2\n0,3,0\n0,0,0\n0,0,4\n";
  texts.form = Form::kDense;
  return texts;
}

// Of the sample with a class that does not occur.
constexpr PublicSizes kSizes = {4, 3, 3};

absl::StatusOr<ImportedGraph> Import(const Texts& texts, const PublicSizes& declared = kSizes,
                                     const GraphLimits& limits = {}) {
  const CsvGraphFiles files = {TestPath("edges"), TestPath("features"), TestPath("labels"), texts.form};
  WriteBytes(files.edges, texts.edges);
  WriteBytes(files.features, texts.features);
  WriteBytes(files.labels, texts.labels);
  return ReadCsvGraph(files, limits, declared);
}

Texts WithEdges(const std::string& edges, Texts texts = Sample()) {
  texts.edges = edges;
  return texts;
}
Texts WithFeatures(const std::string& features, Texts texts = Sample()) {
  texts.features = features;
  return texts;
}
Texts WithLabels(const std::string& labels, Texts texts = Sample()) {
  texts.labels = labels;
  return texts;
}

std::string Refusal(const Texts& texts) { return Summary(Import(texts).status()); }

std::string Refused(const std::string& array) { return "INVALID_ARGUMENT INVALID_GRAPH array=" + array; }
std::string RefusedAt(const std::string& array, int line) {
  return Refused(array) + " position=" + std::to_string(line);
}
std::string Exceeded(const std::string& limit, int64_t maximum) {
  return absl::StrCat("RESOURCE_EXHAUSTED LIMIT_EXCEEDED limit=", limit, " maximum=", maximum);
}

std::vector<int32_t> LabelsOf(const Texts& texts) {
  const auto imported = Import(texts);
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? imported->graph.labels : std::vector<int32_t>();
}

std::string Gzip(const std::string& text) {
  const std::string path = TestPath("compressed.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return ReadBytes(path);
}

TEST(ReadCsvGraphTest, ReadsAGraphWithSparseFeatures) {
  const auto imported = Import(Sample());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Graph& graph = imported->graph;
  EXPECT_EQ(graph.sizes, kSizes);
  EXPECT_THAT(graph.edge_offsets, ElementsAre(0, 1, 4, 5, 6));
  EXPECT_THAT(graph.neighbours, ElementsAre(1, 0, 2, 3, 1, 1));
  EXPECT_THAT(graph.features.offsets, ElementsAre(0, 2, 3, 3, 4));
  EXPECT_THAT(graph.features.columns, ElementsAre(0, 2, 1, 2));
  EXPECT_THAT(graph.features.values, ElementsAre(1.5F, 2.0F, 3.0F, 4.0F));
  EXPECT_THAT(graph.labels, ElementsAre(0, 1, -1, 1));
  EXPECT_EQ(imported->report.edge_count, 3);
  EXPECT_EQ(imported->report.edges_symmetrised, 3);
  EXPECT_EQ(imported->report.unlabelled_nodes, 1);
  EXPECT_EQ(imported->report.zero_features_dropped, 0);
}

TEST(ReadCsvGraphTest, ReadsTheSameGraphWithDenseFeatures) {
  const auto imported = Import(DenseSample());
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph, Import(Sample())->graph);
  EXPECT_EQ(imported->report.zero_features_dropped, 0);
  EXPECT_EQ(Import(WithFeatures("1.5;0;2\r\n0;3;0\r\n0;0;0\r\n0;0;4\r\n\r\n", DenseSample()))->graph, imported->graph);
}

TEST(ReadCsvGraphTest, ReadsTheSameGraphFromGzip) {
  for (Texts texts : {Sample(), DenseSample()}) {
    texts.edges = Gzip(texts.edges);
    texts.features = Gzip(texts.features);
    texts.labels = Gzip(texts.labels);
    const auto imported = Import(texts);
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(imported->graph, Import(Sample())->graph);
  }
}

TEST(ReadCsvGraphTest, SymmetrisesMergesAndDropsAndSaysSo) {
  const auto imported = Import(WithEdges("0 1\n1 0\n0 1\n2 2\n3 1\n0 1\n"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(imported->graph.edge_offsets, ElementsAre(0, 1, 3, 3, 4));
  EXPECT_THAT(imported->graph.neighbours, ElementsAre(1, 0, 3, 1));
  EXPECT_EQ(imported->report.edge_count, 2);
  EXPECT_EQ(imported->report.edges_symmetrised, 1);
  EXPECT_EQ(imported->report.duplicates_merged, 2);
  EXPECT_EQ(imported->report.self_loops_dropped, 1);
}

TEST(ReadCsvGraphTest, DropsZerosOfSparseFeaturesAndSaysSo) {
  const auto imported = Import(WithFeatures("0,0,0\n0,1,1\n3,2,-0.0\n"));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph.sizes.feature_count, 3);
  EXPECT_THAT(imported->graph.features.columns, ElementsAre(1));
  EXPECT_EQ(imported->report.zero_features_dropped, 2);
}

TEST(ReadCsvGraphTest, TakesTheNodesFromTheLinesOfDenseFeatures) {
  const PublicSizes unstated = {0, 0, 2};
  EXPECT_EQ(Import(WithFeatures("1\n0\n0\n2\n0\n", DenseSample()), unstated)->graph.sizes, (PublicSizes{5, 1, 2}));
  EXPECT_EQ(Summary(Import(WithFeatures("\n\n", DenseSample()), unstated).status()), Refused("features"));
  EXPECT_EQ(Summary(Import(Sample(), unstated).status()), "INVALID_ARGUMENT INVALID_FIELD field=node_count");
  EXPECT_EQ(Summary(Import(DenseSample(), {0, 0, 0}).status()), "INVALID_ARGUMENT INVALID_FIELD field=class_count");
  EXPECT_EQ(Refusal(WithEdges("0,1\n0,4\n", DenseSample())), RefusedAt("edges", 2));
  EXPECT_EQ(Refusal(WithLabels("0,1\n4,1\n", DenseSample())), RefusedAt("labels", 2));
  EXPECT_EQ(Refusal(WithLabels("0\n0\n0\n0\n0\n", DenseSample())), RefusedAt("labels", 5));
}

TEST(ReadCsvGraphTest, ReadsLabelsWithAndWithoutNodes) {
  EXPECT_THAT(LabelsOf(WithLabels("3,1\n0,0\n2,-1\n1,\n")), ElementsAre(0, -1, -1, 1));
  EXPECT_THAT(LabelsOf(WithLabels("1\n0\n-1\n2\n")), ElementsAre(1, 0, -1, 2));
  EXPECT_THAT(LabelsOf(WithLabels("1\n0\n")), ElementsAre(1, 0, -1, -1));
  EXPECT_THAT(LabelsOf(WithLabels("1\n\n0\n\n\n\n\n\n\n")), ElementsAre(1, -1, 0, -1)) << "an empty line is a node";
  EXPECT_THAT(LabelsOf(WithLabels("\n1\n")), ElementsAre(-1, 1, -1, -1));
  EXPECT_THAT(LabelsOf(WithLabels("0 1\n\n3 0\n")), ElementsAre(1, -1, -1, 0));
}

// As a graph is without the only node that had any.
TEST(ReadCsvGraphTest, TakesFilesWithoutALineOfDataButDenseFeatures) {
  for (const std::string& text : {std::string(), std::string("\n\n"), std::string("# a\n"), std::string("a,b,c\n")}) {
    EXPECT_EQ(Import(WithEdges(text))->report.edge_count, 0) << text;
    EXPECT_TRUE(Import(WithFeatures(text))->graph.features.values.empty()) << text;
    EXPECT_EQ(Import(WithLabels(text))->report.unlabelled_nodes, 4) << text;
  }
  EXPECT_EQ(Refusal(WithFeatures("\n\n", DenseSample())), Refused("features"));
}

TEST(ReadCsvGraphTest, SaysWhichFileIsMissing) {
  const CsvGraphFiles files = {"/nonexistent/edges", "/nonexistent/features", "/nonexistent/labels", Form::kDense};
  EXPECT_EQ(Summary(ReadCsvGraph(files, {}, kSizes).status()),
            "NOT_FOUND RESOURCE_NOT_FOUND resource=/nonexistent/edges");
}

TEST(ReadCsvGraphTest, RefusesBadEdges) {
  EXPECT_EQ(Refusal(WithEdges("0,1\n-1,2\n")), RefusedAt("edges", 2));
  EXPECT_EQ(Refusal(WithEdges("a,b\n0,1\n\n# \n2,-3\n")), RefusedAt("edges", 5));
  EXPECT_EQ(Refusal(WithEdges("0,1\n1,x\n")), RefusedAt("edges", 2));
  EXPECT_EQ(Refusal(WithEdges("0,x\n")), RefusedAt("edges", 1));
  EXPECT_EQ(Refusal(WithEdges("a,b\nc,d\n0,1\n")), RefusedAt("edges", 2));
  EXPECT_EQ(Refusal(WithEdges("0,1\n1,2.0\n")), RefusedAt("edges", 2));
  EXPECT_EQ(Refusal(WithEdges("0,1\n1\n")), RefusedAt("edges", 2));
  EXPECT_EQ(Refusal(WithEdges("0,1\n1,\n")), RefusedAt("edges", 2));
  EXPECT_EQ(Refusal(WithEdges("0,1\n1,2,3\n")), RefusedAt("edges", 2));
  EXPECT_EQ(Refusal(WithEdges("0,1\n1;2\n")), RefusedAt("edges", 2));
  EXPECT_EQ(Refusal(WithEdges("0,1\n1," + std::string(5000, '1') + "\n")), RefusedAt("edges", 2));
  EXPECT_EQ(Refusal(WithEdges(std::string("0,1\n1,\0002\n", 9))), RefusedAt("edges", 2));
  EXPECT_EQ(Refusal(WithEdges(ReadBytes("/proc/self/exe").substr(0, 100'000))), RefusedAt("edges", 1));
  const std::string gzip = Gzip("0,1\n1,2\n");
  EXPECT_EQ(Refusal(WithEdges(gzip.substr(0, gzip.size() - 3))), Refused("edges"));
}

TEST(ReadCsvGraphTest, RefusesNumbersThatNoSizeHolds) {
  EXPECT_EQ(Refusal(WithEdges("0,20000000\n")), RefusedAt("edges", 1));
  EXPECT_EQ(Refusal(WithEdges("0,99999999999999999999\n")), RefusedAt("edges", 1));
  EXPECT_EQ(Refusal(WithFeatures("2147483648,0,1\n")), RefusedAt("features", 1));
  EXPECT_EQ(Refusal(WithLabels("4294967296,0\n")), RefusedAt("labels", 1));
}

TEST(ReadCsvGraphTest, RefusesBadSparseFeatures) {
  EXPECT_EQ(Refusal(WithFeatures("0,0,1\n0,1\n")), RefusedAt("features", 2));
  EXPECT_EQ(Refusal(WithFeatures("0,0,1\n0,1,2,3\n")), RefusedAt("features", 2));
  EXPECT_EQ(Refusal(WithFeatures("0,0,1\n0,-1,2\n")), RefusedAt("features", 2));
  EXPECT_EQ(Refusal(WithFeatures("0,0,1\n-1,0,2\n")), RefusedAt("features", 2));
  EXPECT_EQ(Refusal(WithFeatures("0,0,1\n1,1,nan\n")), RefusedAt("features", 2));
  EXPECT_EQ(Refusal(WithFeatures("0,0,1\n1,1,-inf\n")), RefusedAt("features", 2));
  EXPECT_EQ(Refusal(WithFeatures("0,0,1\n1,1,1e39\n")), RefusedAt("features", 2));
  EXPECT_EQ(Refusal(WithFeatures("0,0,1\n1,1,\n")), RefusedAt("features", 2));
  EXPECT_EQ(Refusal(WithFeatures("0,0,1\n1,1.5,1\n")), RefusedAt("features", 2));
  EXPECT_EQ(Refusal(WithFeatures("0,3,1\n")), RefusedAt("features", 1));
}

TEST(ReadCsvGraphTest, NamesTheLineThatRepeatsAFeature) {
  EXPECT_EQ(Refusal(WithFeatures("n,c,v\n0,1,1\n1,1,1\n0,2,1\n0,1,0\n0,1,1\n")), RefusedAt("features", 5));
}

TEST(ReadCsvGraphTest, RefusesBadDenseFeatures) {
  const auto refusal = [](const std::string& features) {
    return Summary(Import(WithFeatures(features, DenseSample()), {0, 0, 3}).status());
  };
  EXPECT_EQ(refusal("1,2\n1,2\n1\n1,2\n"), RefusedAt("features", 3));
  EXPECT_EQ(refusal("1,2\n1,2\n1,2,3\n1,2\n"), RefusedAt("features", 3));
  EXPECT_EQ(refusal("1,2\n1,\n1,2\n1,2\n"), RefusedAt("features", 2));
  EXPECT_EQ(refusal("1,2\n1,x\n1,2\n1,2\n"), RefusedAt("features", 2));
  EXPECT_EQ(refusal("1,2\n1,NaN\n1,2\n1,2\n"), RefusedAt("features", 2));
  EXPECT_EQ(refusal("1,2\ninf,2\n1,2\n1,2\n"), RefusedAt("features", 2));
  EXPECT_EQ(refusal("1,2\n\n1,2\n1,2\n1,2\n"), RefusedAt("features", 3)) << "an empty line is no node";
}

TEST(ReadCsvGraphTest, RefusesBadLabels) {
  EXPECT_EQ(Refusal(WithLabels("0,-2\n")), RefusedAt("labels", 1));
  EXPECT_EQ(Refusal(WithLabels("0,1\n1,x\n")), RefusedAt("labels", 2));
  EXPECT_EQ(Refusal(WithLabels("0,1\n1,0.5\n")), RefusedAt("labels", 2));
  EXPECT_EQ(Refusal(WithLabels("0,1\n1\n")), RefusedAt("labels", 2));
  EXPECT_EQ(Refusal(WithLabels("0,1\n1,1,1\n")), RefusedAt("labels", 2));
  EXPECT_EQ(Refusal(WithLabels("0,1,1\n")), RefusedAt("labels", 1));
  EXPECT_EQ(Refusal(WithLabels("0\n1,1\n")), RefusedAt("labels", 2));
  EXPECT_EQ(Refusal(WithLabels("-1,1\n")), RefusedAt("labels", 1));
  EXPECT_EQ(Refusal(WithLabels("0,1\n1,1\n0,1\n")), RefusedAt("labels", 3)) << "a node has one label";
  EXPECT_EQ(Refusal(WithLabels("0,3\n")), RefusedAt("labels", 1));
  EXPECT_THAT(LabelsOf(WithLabels("0,-1\n1,\n")), ElementsAre(-1, -1, -1, -1));
}

TEST(ReadCsvGraphTest, TakesDeclaredSizes) {
  const auto imported = Import(Sample(), PublicSizes{6, 5, 4});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph.sizes, (PublicSizes{6, 5, 4}));
  EXPECT_THAT(imported->graph.edge_offsets, ElementsAre(0, 1, 4, 5, 6, 6, 6));
  EXPECT_THAT(imported->graph.features.offsets, ElementsAre(0, 2, 3, 3, 4, 4, 4));
  EXPECT_THAT(imported->graph.labels, ElementsAre(0, 1, -1, 1, -1, -1));
  EXPECT_EQ(Import(DenseSample(), PublicSizes{0, 0, 3})->graph, Import(Sample())->graph);
}

TEST(ReadCsvGraphTest, RefusesWhatLiesBeyondDeclaredSizes) {
  const auto refusal = [](const Texts& texts, const PublicSizes& declared) {
    return Summary(Import(texts, declared).status());
  };
  EXPECT_EQ(refusal(Sample(), {3, 3, 2}), RefusedAt("features", 4));
  EXPECT_EQ(refusal(WithFeatures("0,0,1\n"), {3, 3, 2}), RefusedAt("edges", 4));
  EXPECT_EQ(refusal(Sample(), {4, 2, 2}), RefusedAt("features", 1));
  EXPECT_EQ(refusal(Sample(), {4, 3, 1}), RefusedAt("labels", 3));
  EXPECT_EQ(refusal(DenseSample(), {3, 3, 2}), RefusedAt("features", 4));
  EXPECT_EQ(refusal(DenseSample(), {5, 3, 2}), Refused("features"));
  EXPECT_EQ(refusal(DenseSample(), {4, 2, 2}), RefusedAt("features", 1));
  EXPECT_EQ(refusal(DenseSample(), {4, 4, 2}), RefusedAt("features", 1));
  EXPECT_EQ(refusal(Sample(), {0, 3, 2}), "INVALID_ARGUMENT INVALID_FIELD field=node_count");
  EXPECT_EQ(refusal(Sample(), {4, -1, 2}), "INVALID_ARGUMENT INVALID_FIELD field=feature_count");
  EXPECT_EQ(refusal(Sample(), {20'000'001, 3, 2}), Exceeded("max_nodes", 20'000'000));
}

TEST(ReadCsvGraphTest, AppliesEveryLimit) {
  const auto import = [](const Texts& texts, const std::function<void(GraphLimits&)>& lower) {
    GraphLimits limits;
    lower(limits);
    return Summary(Import(texts, kSizes, limits).status());
  };
  EXPECT_EQ(import(Sample(), [](GraphLimits& limits) { limits.max_nodes = 3; }), Exceeded("max_nodes", 3));
  EXPECT_EQ(import(DenseSample(), [](GraphLimits& limits) { limits.max_nodes = 3; }), Exceeded("max_nodes", 3));
  EXPECT_EQ(import(Sample(), [](GraphLimits& limits) { limits.max_features = 2; }), Exceeded("max_features", 2));
  EXPECT_EQ(import(DenseSample(), [](GraphLimits& limits) { limits.max_features = 2; }), Exceeded("max_features", 2));
  EXPECT_EQ(import(Sample(), [](GraphLimits& limits) { limits.max_classes = 1; }), Exceeded("max_classes", 1));
  EXPECT_EQ(import(Sample(), [](GraphLimits& limits) { limits.max_edges = 2; }), Exceeded("max_edges", 2));
  EXPECT_EQ(import(Sample(), [](GraphLimits& limits) { limits.max_feature_entries = 3; }),
            Exceeded("max_feature_entries", 3));
  EXPECT_EQ(import(DenseSample(), [](GraphLimits& limits) { limits.max_feature_entries = 11; }),
            Exceeded("max_feature_entries", 11));
  EXPECT_EQ(import(Sample(), [](GraphLimits& limits) { limits = GraphLimits{4, 3, 3, 3, 4, limits.npz}; }), "OK");
  EXPECT_EQ(import(DenseSample(), [](GraphLimits& limits) { limits = GraphLimits{4, 3, 3, 3, 12, limits.npz}; }), "OK");
}

TEST(ReadCsvGraphTest, KeepsValuesOfTheFilesOutOfMessages) {
  const absl::Status edge = Import(WithEdges("0,1\n98765x,1\n")).status();
  EXPECT_EQ(edge.message(), "edges[2] holds something else than an integer");
  const absl::Status label = Import(WithLabels("0,1\n1,-98765\n")).status();
  EXPECT_EQ(label.message(), "labels[2] is out of range");
}

TEST(ReadCsvGraphTest, PassesOverAByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  Texts texts = DenseSample();
  texts.edges = mark + texts.edges;
  texts.features = mark + texts.features;
  texts.labels = mark + "0\n1\n\n1\n";
  const auto imported = Import(texts);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->graph, Import(DenseSample())->graph);
}

// A line that was taken for a header would move every node by one.
TEST(ReadCsvGraphTest, TakesNothingForAHeaderWhereLinesGoByPosition) {
  for (const std::string first : {"label", "NA", "?"}) {
    EXPECT_EQ(Summary(Import(WithLabels(first + "\n0\n1\n1\n", DenseSample())).status()),
              "INVALID_ARGUMENT INVALID_GRAPH array=labels position=1")
        << first;
  }
  for (const std::string first : {"a,b,c", "NA,NA,NA", ",,"}) {
    EXPECT_EQ(Summary(Import(WithFeatures(first + "\n1.5,0,2\n0,3,0\n0,0,4\n", DenseSample())).status()),
              "INVALID_ARGUMENT INVALID_GRAPH array=features position=1")
        << first;
  }
}

TEST(ReadCsvGraphTest, GivesWhatTheNpzReaderGives) {
  const auto imported = Import(Sample());
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::string path = TestPath("same.npz");
  ASSERT_TRUE(WriteGraphFile(path, imported->graph).ok());
  EXPECT_EQ(ReadGraphFile(path, {}, std::nullopt)->graph, imported->graph);
}

// Whatever a damaged file does, it is refused or gives a graph; with gzip the checksum covers the content.
TEST(DamagedCsvGraphTest, IsRefusedOrReadWhicheverByteChanges) {
  for (const bool compressed : {false, true}) {
    const Texts good = Sample();
    const Graph graph = Import(good)->graph;
    const std::string whole = compressed ? Gzip(good.edges) : good.edges;
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const int mask : {0x01, 0x10, 0x80, 0xff}) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ mask);
        const auto read = Import(WithEdges(bytes));
        if (read.ok() && compressed) {
          ASSERT_EQ(read->graph, graph) << at;
        }
        ASSERT_TRUE(read.ok() || absl::IsInvalidArgument(read.status())) << read.status();
      }
    }
  }
}

}  // namespace
}  // namespace dpar
