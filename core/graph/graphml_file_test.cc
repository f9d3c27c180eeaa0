#include "core/graph/graphml_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/error.h"
#include "core/graph/generate.h"
#include "core/random/testing/fixed_random.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSmall = R"(<?xml version='1.0' encoding='utf-8'?>
<!-- made by hand -->
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="age" attr.type="double"/>
  <key id="d1" for="node" attr.name="name" attr.type="string"/>
  <key id="d2" for="node" attr.name="label" attr.type="int"/>
  <key id="d3" for="node" attr.name="member" attr.type="boolean"><default>false</default></key>
  <key id="w" for="edge" attr.name="weight" attr.type="double"/>
  <graph edgedefault="directed">
    <node id="a &amp; b"><data key="d0">1.5</data><data key="d1">Ann &lt;x&gt; &#65;</data><data key="d2">0</data></node>
    <node id="c"><data key="d3">true</data><data key="d2">2</data></node>
    <node id="d"/>
    <edge source="a &amp; b" target="c"><data key="w">1.0</data></edge>
    <edge source="c" target="a &amp; b"><data key="w">1</data></edge>
    <edge source="c" target="d"/>
    <edge source="d" target="d"/>
  </graph>
</graphml>
)";

class GraphMlFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = absl::StrCat(::testing::TempDir(), "/graphml_file_test.", ::getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  [[nodiscard]] absl::StatusOr<ImportedGraph> Read(const std::string& text, const GraphLimits& limits = {},
                                                   std::optional<int64_t> classes = 3) const {
    std::ofstream(Path("x.graphml")) << text;
    return ReadGraphMlFile(Path("x.graphml"), limits, classes);
  }

  // The small graph with one piece of it replaced.
  void ExpectRefused(const std::string& from, const std::string& to, const std::string& fault) const {
    const std::string text = absl::StrReplaceAll(kSmall, {{from, to}});
    ASSERT_NE(text, kSmall) << from;
    const auto graph = Read(text);
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << to;
    const auto info = GetErrorInfo(graph.status());
    ASSERT_TRUE(info.has_value()) << to;
    EXPECT_EQ(info->reason(), "INVALID_GRAPH");
    EXPECT_EQ(info->metadata().at("array"), "graphml");
    EXPECT_THAT(std::string(graph.status().message()), HasSubstr(fault)) << to;
  }

  std::string directory_;
};

TEST_F(GraphMlFileTest, NumbersAreFeaturesTheLabelIsTheClassAndTextsArePassedOver) {
  const auto imported = Read(kSmall);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Graph& graph = imported->graph;
  EXPECT_EQ(graph.sizes, (PublicSizes{3, 2, 3}));
  EXPECT_THAT(graph.labels, ElementsAre(0, 2, -1));
  EXPECT_THAT(graph.features.offsets, ElementsAre(0, 1, 2, 2));
  EXPECT_THAT(graph.features.columns, ElementsAre(0, 1));
  EXPECT_THAT(graph.features.values, ElementsAre(1.5F, 1.0F));
  EXPECT_THAT(graph.edge_offsets, ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(graph.neighbours, ElementsAre(1, 0, 2, 1));
  EXPECT_EQ(imported->report.self_loops_dropped, 1);
  EXPECT_EQ(imported->report.unlabelled_nodes, 1);
}

TEST_F(GraphMlFileTest, AGraphThatIsWrittenIsReadBackExactly) {
  testing::FixedRandom random(7);
  const auto graph = GenerateGraph({.nodes = 60, .classes = 4, .features = 25}, random);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(WriteGraphMlFile(Path("g.graphml"), *graph), absl::OkStatus());
  const auto from_xml = ReadGraphMlFile(Path("g.graphml"), GraphLimits(), std::nullopt);
  ASSERT_TRUE(from_xml.ok()) << from_xml.status();
  EXPECT_EQ(from_xml->graph, *graph);
}

TEST_F(GraphMlFileTest, ClassesAreStatedByTheCallerOrTheFileAndNotCounted) {
  const auto refusal = [](const absl::StatusOr<ImportedGraph>& read) { return std::string(read.status().message()); };
  EXPECT_THAT(refusal(Read(kSmall, {}, std::nullopt)), HasSubstr("num_classes is missing"));
  EXPECT_THAT(refusal(Read(kSmall, {}, 0)), HasSubstr("above 0"));
  EXPECT_THAT(refusal(Read(kSmall, {}, 2)), HasSubstr("not below its number of classes"));
  EXPECT_EQ(Read(kSmall, {}, 7)->graph.sizes.class_count, 7);
  const std::string stating = absl::StrReplaceAll(
      kSmall, {{"<graph edgedefault=\"directed\">",
                "<key id=\"n\" for=\"graph\" attr.name=\"num_classes\"/><graph><data key=\"n\">4</data>"}});
  EXPECT_EQ(Read(stating, {}, std::nullopt)->graph.sizes.class_count, 4);
  EXPECT_EQ(Read(stating, {}, 7)->graph.sizes.class_count, 7);
  const std::string unlabelled = absl::StrReplaceAll(kSmall, {{"attr.name=\"label\" attr.type=\"int\"",  //
                                                               "attr.name=\"label\" attr.type=\"string\""}});
  EXPECT_THAT(Read(unlabelled)->graph.labels, ElementsAre(-1, -1, -1));
}

TEST_F(GraphMlFileTest, WhatIsNoGraphIsRefusedAtItsLine) {
  ExpectRefused("source=\"c\" target=\"d\"", "source=\"c\" target=\"e\"", "graphml[15] names a node");
  ExpectRefused("<node id=\"d\"/>", "<node id=\"c\"/>", "graphml[12] declares a node for the second time");
  ExpectRefused("<data key=\"d0\">1.5", "<data key=\"d0\">old", "no finite number");
  ExpectRefused("<data key=\"d0\">1.5", "<data key=\"d0\">inf", "no finite number");
  ExpectRefused("<data key=\"d2\">2", "<data key=\"d2\">-2", "neither -1 nor");
  ExpectRefused("<data key=\"d2\">2", "<data key=\"d9\">2", "was not declared");
  ExpectRefused("<data key=\"d2\">2", "<data key=\"d2\">1.5", "neither -1 nor");
  ExpectRefused("<data key=\"d2\">2", "<data key=\"d2\">nan", "neither -1 nor");
  ExpectRefused("<data key=\"d2\">2", "<data key=\"d2\">1</data><data key=\"d2\">2", "second label");
  ExpectRefused("attr.name=\"label\" attr.type=\"int\"", "attr.name=\"label\" attr.type=\"boolean\"", "no integer");
  ExpectRefused("attr.type=\"int\"/>", "attr.type=\"int\"><default>0</default></key>", "gives the label a default");
  ExpectRefused("<default>false</default>", "<default>true</default>", "default other than 0");
  ExpectRefused("<data key=\"w\">1<", "<data key=\"w\">2<", "weight");
  ExpectRefused("<edge source=\"d\" target=\"d\"/>", "<hyperedge/>", "hyperedge");
  ExpectRefused("<node id=\"d\"/>", "<node id=\"d\"><graph/></node>", "nested");
  ExpectRefused("id=\"d1\"", "id=\"d0\"", "declares a key for the second time");
  ExpectRefused("<data key=\"d0\">1.5</data>", "<data key=\"d0\">1</data><data key=\"d0\">2</data>", "twice");
}

TEST_F(GraphMlFileTest, NodesAndEdgesStandDirectlyWithinTheGraph) {
  const std::string fault = "not directly within the graph";
  ExpectRefused("<graph edgedefault=\"directed\">", "<node id=\"z\"><data key=\"d2\">1</data></node><graph>", fault);
  ExpectRefused("<graph edgedefault=\"directed\">", "<desc><node/></desc><graph>", fault);
  ExpectRefused("<node id=\"d\"/>", "<node id=\"d\"><node id=\"e\"><data key=\"d2\">1</data></node></node>", fault);
  ExpectRefused("<node id=\"d\"/>", "<node id=\"d\"><edge source=\"c\" target=\"c\"/></node>", fault);
}

TEST_F(GraphMlFileTest, LabelsAreWholeNumbersOfAnyTypeAndATextOfThatNameIsNone) {
  // Gephi writes a text to display, and other tools write whole numbers as 2.0 or leave out what a key is for.
  const std::string label = "<key id=\"d2\" for=\"node\" attr.name=\"label\" attr.type=\"int\"/>";
  for (const char* other : {"<key id=\"d2\" for=\"node\" attr.name=\"label\" attr.type=\"double\"/>",
                            "<key id=\"d2\" for=\"all\" attr.name=\"label\" attr.type=\"float\"/>",
                            "<key id=\"d2\" attr.name=\"label\" attr.type=\"long\"/>",
                            "<key id=\"t\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>"
                            "<key id=\"d2\" attr.name=\"label\" attr.type=\"double\"/>"}) {
    const auto imported = Read(absl::StrReplaceAll(kSmall, {{label, other},
                                                            {"<data key=\"d2\">2<", "<data key=\"d2\">2.0<"},
                                                            {"for=\"node\" attr.name=\"age\"", "attr.name=\"age\""}}));
    ASSERT_TRUE(imported.ok()) << other << imported.status();
    EXPECT_EQ(imported->graph.sizes, (PublicSizes{3, 2, 3})) << other;
    EXPECT_THAT(imported->graph.labels, ElementsAre(0, 2, -1)) << other;
    EXPECT_THAT(imported->graph.features.values, ElementsAre(1.5F, 1.0F)) << other;
  }
}

TEST_F(GraphMlFileTest, WhatIsNoXmlOfThisKindIsRefused) {
  ExpectRefused("<!-- made by hand -->", "<!DOCTYPE graphml [<!ENTITY a \"b\">]>", "document type");
  ExpectRefused("&#65;", "&lol;", "entity");
  ExpectRefused("&#65;", "&#xD800;", "invalid character number");
  ExpectRefused("<edge source=\"c\" target=\"d\"/>", "<edge source=\"c\" target=d/>", "not well-formed");
  ExpectRefused("</graph>", "</grap>", "mismatched tag");
  ExpectRefused("</graphml>", "", "no element found");
  ExpectRefused("</graphml>", "</graphml><graphml/>", "junk after document element");
  ExpectRefused("<edge source=\"c\" target=\"d\"/>", "<edge source=\"c\" source=\"d\"/>", "duplicate attribute");
  EXPECT_EQ(Read("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read("no xml at all").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read("<html></html>").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read("<graphml><graph/></graphml>").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read(std::string(100000, '<')).status().code(), absl::StatusCode::kInvalidArgument);
  std::string deep = "<graphml>";
  for (int i = 0; i < 100; ++i) {
    deep += "<a>";
  }
  EXPECT_THAT(std::string(Read(deep).status().message()), HasSubstr("too deeply"));
  const std::string long_text(100'000, 'x');
  EXPECT_THAT(std::string(Read("<graphml>" + long_text + "</graphml>").status().message()), HasSubstr("text"));
  const std::string long_comment(3'000'000, 'x');
  EXPECT_THAT(std::string(Read("<graphml><!--" + long_comment + "--></graphml>").status().message()),
              HasSubstr("too long"));
  EXPECT_EQ(ReadGraphMlFile(Path("none"), GraphLimits(), 3).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(GraphMlFileTest, LimitsHold) {
  struct Limit {
    int64_t GraphLimits::*field;
    int64_t value;
    std::string name;
  };
  for (const Limit& limit : std::vector<Limit>{{&GraphLimits::max_nodes, 2, "max_nodes"},
                                               {&GraphLimits::max_features, 1, "max_features"},
                                               {&GraphLimits::max_classes, 2, "max_classes"},
                                               {&GraphLimits::max_edges, 3, "max_edges"},
                                               {&GraphLimits::max_feature_entries, 1, "max_feature_entries"}}) {
    GraphLimits limits;
    limits.*(limit.field) = limit.value;
    const auto graph = Read(kSmall, limits);
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kResourceExhausted) << limit.name;
    EXPECT_EQ(GetErrorInfo(graph.status())->metadata().at("limit"), limit.name);
  }
}

}  // namespace
}  // namespace dpar
