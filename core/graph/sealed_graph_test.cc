#include "core/graph/sealed_graph.h"

#include <sys/stat.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/sealed_format.h"
#include "core/graph/testing/npz_fixture.h"
#include "core/graph/testing/questions.h"
#include "core/graph/testing/sealed_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::ChangeHeader;
using ::dpar::testing::Copy;
using ::dpar::testing::Cycle;
using ::dpar::testing::DamagedIn;
using ::dpar::testing::Fault;
using ::dpar::testing::HeaderOf;
using ::dpar::testing::kTail;
using ::dpar::testing::OpenBytes;
using ::dpar::testing::ReadBytes;
using ::dpar::testing::SealedBytes;
using ::dpar::testing::SetEntry;
using ::dpar::testing::SmallGraph;
using ::dpar::testing::StartOf;
using ::dpar::testing::TestPath;
using ::dpar::testing::Verdict;
using ::dpar::testing::WriteBytes;
using ::testing::HasSubstr;

TEST(SealedGraphTest, AGraphComesBackExactly) {
  const std::string path = TestPath("graph.sealed");
  ASSERT_EQ(WriteSealedGraph(path, SmallGraph()), absl::OkStatus());
  const absl::StatusOr<SealedGraph> sealed = SealedGraph::Open(path);
  ASSERT_EQ(sealed.status(), absl::OkStatus());
  EXPECT_EQ(sealed->sizes(), SmallGraph().sizes);
  EXPECT_EQ(sealed->Check(), absl::OkStatus());
  EXPECT_EQ(Copy(sealed->View().value()), SmallGraph());
  const EdgesView edges = sealed->Edges().value();
  EXPECT_EQ(Copy(edges.offsets), SmallGraph().edge_offsets);
  EXPECT_EQ(Copy(edges.neighbours), SmallGraph().neighbours);
  EXPECT_EQ(edges.edge_count(), 4);
}

TEST(SealedGraphTest, AGraphOfManyBlocksComesBackExactly) {
  const Graph graph = Cycle(100'003);
  const std::string path = TestPath("graph.sealed");
  ASSERT_EQ(WriteSealedGraph(path, graph), absl::OkStatus());
  EXPECT_EQ(Copy(SealedGraph::Open(path).value().View().value()), graph);
}

TEST(SealedGraphTest, NodesWithoutEdgesFeaturesAndLabelsComeBack) {
  Graph graph;
  graph.sizes = {3, 0, 0};
  graph.edge_offsets = {0, 0, 0, 0};
  graph.features.offsets = {0, 0, 0, 0};
  graph.labels = {kUnlabelled, kUnlabelled, kUnlabelled};
  EXPECT_EQ(Copy(OpenBytes(SealedBytes(graph)).value().View().value()), graph);
  EXPECT_EQ(Copy(OpenBytes(SealedBytes(Graph())).value().View().value()), Graph());
}

TEST(SealedGraphTest, TheBytesAreAsTheFormatSays) {
  const std::string bytes = SealedBytes(SmallGraph());
  EXPECT_EQ(bytes.size(), 7U * 4096U);
  EXPECT_EQ(bytes.substr(0, 16), std::string("\x89"
                                             "DPAR\r\n\x1a\x01\0\0\0\0\0\0\0",
                                             16));
  const SealedHeader header = HeaderOf(bytes);
  EXPECT_EQ(header.node_count, 5);
  EXPECT_EQ(header.feature_count, 4);
  EXPECT_EQ(header.class_count, 3);
  const std::array<uint64_t, kSectionCount> lengths = {48, 32, 48, 24, 24, 20};
  for (size_t i = 0; i < kSectionCount; ++i) {
    EXPECT_EQ(header.sections[i].offset, 4096 * (i + 1)) << kSectionNames[i];
    EXPECT_EQ(header.sections[i].bytes, lengths[i]) << kSectionNames[i];
  }
  EXPECT_EQ(bytes.substr(4096, 9), std::string("\0\0\0\0\0\0\0\0\x02", 9));
  EXPECT_EQ(bytes.substr(232, 3848), std::string(3848, '\0'));
  EXPECT_EQ(bytes.substr(4096 + 48, 4096 - 48), std::string(4096 - 48, '\0'));
}

TEST(SealedGraphTest, TheSameGraphGivesTheSameBytes) {
  const std::string path = TestPath("again.sealed");
  const std::string bytes = SealedBytes(SmallGraph());
  ASSERT_EQ(WriteSealedGraph(path, SmallGraph()), absl::OkStatus());
  EXPECT_EQ(ReadBytes(path), bytes);
  // A view of the file is as good as the graph it was made from.
  const SealedGraph sealed = OpenBytes(bytes).value();
  ASSERT_EQ(WriteSealedGraph(path, sealed.View().value()), absl::OkStatus());
  EXPECT_EQ(ReadBytes(path), bytes);
}

TEST(SealedGraphTest, OpeningLooksAtTheHeaderAndEachSectionIsVerifiedWhenItIsAskedFor) {
  std::string bytes = SealedBytes(SmallGraph());
  bytes[StartOf(bytes, Section::kLabels)] ^= 1;
  const absl::StatusOr<SealedGraph> sealed = OpenBytes(bytes);
  ASSERT_EQ(sealed.status(), absl::OkStatus());
  EXPECT_EQ(sealed->sizes(), SmallGraph().sizes);
  EXPECT_EQ(sealed->Edges().status(), absl::OkStatus());
  for (int time = 0; time < 2; ++time) {
    const absl::Status status = sealed->View().status();
    EXPECT_EQ(Verdict(status), DamagedIn("labels"));
    EXPECT_EQ(status.message(), absl::StrCat("labels: the checksum does not match", kTail));
    EXPECT_EQ(sealed->Check(), status);
  }
  EXPECT_EQ(Copy(sealed->Edges().value().neighbours), SmallGraph().neighbours);
}

TEST(SealedGraphTest, AByteOfASectionThatChangedGivesItsName) {
  for (size_t i = 0; i < kSectionCount; ++i) {
    std::string bytes = SealedBytes(SmallGraph());
    const SealedSection place = HeaderOf(bytes).sections[i];
    bytes[place.offset + place.bytes - 1] ^= '\x40';
    const absl::StatusOr<SealedGraph> sealed = OpenBytes(bytes);
    ASSERT_EQ(sealed.status(), absl::OkStatus()) << kSectionNames[i];
    EXPECT_EQ(Verdict(sealed->Check()), DamagedIn(kSectionNames[i]));
    EXPECT_EQ(Verdict(sealed->View().status()), DamagedIn(kSectionNames[i]));
    const bool of_edges = kSectionNames[i] == "edge_offsets" || kSectionNames[i] == "neighbours";
    EXPECT_EQ(Verdict(sealed->Edges().status()), of_edges ? DamagedIn(kSectionNames[i]) : "OK");
  }
}

// Opens, and reads everything, after one byte in the file changed.
TEST(SealedGraphTest, NoByteOfTheFileCanChangeUnseen) {
  const std::string bytes = SealedBytes(SmallGraph());
  const std::string path = TestPath("flipped.sealed");
  WriteBytes(path, bytes);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (size_t at = 0; at < bytes.size(); ++at) {
    const auto put = [&](char byte) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put(byte).flush();
    };
    put(static_cast<char>(bytes[at] ^ 0x10));
    const absl::StatusOr<SealedGraph> sealed = SealedGraph::Open(path);
    const bool in_header = at < kSealedPageBytes;
    ASSERT_EQ(sealed.ok(), !in_header) << at;
    const absl::string_view part = in_header ? "header" : kSectionNames[at / kSealedPageBytes - 1];
    ASSERT_EQ(Verdict(in_header ? sealed.status() : sealed->Check()), DamagedIn(part)) << at;
    put(bytes[at]);
  }
  EXPECT_EQ(SealedGraph::Open(path).value().Check(), absl::OkStatus());
}

TEST(SealedGraphTest, AShorterFileIsRefusedWithTheSectionThatItEndsIn) {
  const std::string bytes = SealedBytes(SmallGraph());
  std::vector<size_t> lengths = {0, 1, 7, 8, 231, 232, 4095};
  for (size_t page = 1; page < 7; ++page) {
    for (const size_t within : {0U, 1U, 20U, 47U, 2048U, 4095U}) {
      lengths.push_back(page * kSealedPageBytes + within);
    }
  }
  for (const size_t length : lengths) {
    const absl::string_view part = length < kSealedPageBytes ? "header" : kSectionNames[length / kSealedPageBytes - 1];
    const absl::Status status = OpenBytes(bytes.substr(0, length)).status();
    EXPECT_EQ(Verdict(status), DamagedIn(part)) << length;
    const absl::string_view fault = length < 8 ? "it is not that of a sealed graph" : "the file ends within it";
    EXPECT_EQ(status.message(), absl::StrCat(part, ": ", fault, kTail)) << length;
  }
}

TEST(SealedGraphTest, ALongerFileIsRefused) {
  const std::string bytes = SealedBytes(SmallGraph());
  for (const size_t more : {1U, 4096U}) {
    const absl::Status status = OpenBytes(bytes + std::string(more, '\0')).status();
    EXPECT_EQ(Verdict(status), DamagedIn("file"));
    EXPECT_EQ(status.message(), absl::StrCat("file: there are bytes after its last section", kTail));
  }
}

TEST(SealedGraphTest, AFileOfAnotherKindIsRefused) {
  const std::string path = TestPath("other");
  WriteBytes(path, "PK\x03\x04" + std::string(10'000, 'x'));
  const absl::Status status = SealedGraph::Open(path).status();
  EXPECT_EQ(Verdict(status), DamagedIn("header"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("it is not that of a sealed graph"));
  EXPECT_FALSE(IsSealedGraph(path));
  WriteBytes(path, "");
  EXPECT_EQ(Verdict(SealedGraph::Open(path).status()), DamagedIn("header"));
  EXPECT_FALSE(IsSealedGraph(path));
  std::filesystem::create_directory(path + ".d");
  EXPECT_EQ(Verdict(SealedGraph::Open(path + ".d").status()), DamagedIn("file"));
  EXPECT_FALSE(IsSealedGraph(path + ".d"));
}

TEST(SealedGraphTest, AFileThatIsNotThereIsNotFound) {
  const std::string path = TestPath("absent");
  const absl::Status status = SealedGraph::Open(path).status();
  EXPECT_EQ(dpar::testing::Summary(status), absl::StrCat("NOT_FOUND RESOURCE_NOT_FOUND resource=", path));
  EXPECT_EQ(status.message(), absl::StrCat("cannot open ", path, ": No such file or directory"));
  EXPECT_FALSE(IsSealedGraph(path));
}

TEST(SealedGraphTest, APipeDoesNotHang) {
  const std::string path = TestPath("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(Verdict(SealedGraph::Open(path).status()), DamagedIn("file"));
  EXPECT_FALSE(IsSealedGraph(path));
}

TEST(SealedGraphTest, ASealedGraphIsKnownByItsFirstBytes) {
  std::string bytes = SealedBytes(SmallGraph());
  const std::string path = TestPath("graph");
  WriteBytes(path, bytes);
  EXPECT_TRUE(IsSealedGraph(path));
  WriteBytes(path, bytes.substr(0, 8));
  EXPECT_TRUE(IsSealedGraph(path));
  WriteBytes(path, bytes.substr(0, 7));
  EXPECT_FALSE(IsSealedGraph(path));
}

TEST(SealedGraphTest, ANewerFormatIsToldFromDamage) {
  std::string bytes = SealedBytes(SmallGraph());
  ChangeHeader(bytes, [](SealedHeader& header) { header.version = 2; });
  const absl::Status status = OpenBytes(bytes).status();
  EXPECT_EQ(Verdict(status), "FAILED_PRECONDITION STORE_CORRUPT header");
  EXPECT_EQ(status.message(),
            "the file has version 2 of the sealed format, and this program knows up to 1; use a newer program");
}

// A header with a right checksum that cannot be, and the part that the error names.
struct BadHeader {
  std::string what;
  std::function<void(SealedHeader&)> change;
  std::string part;
};

TEST(SealedGraphTest, AHeaderThatDisagreesWithItselfIsRefused) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  constexpr int64_t kMostNodes = std::numeric_limits<int32_t>::max();
  const auto section = [](Section which, auto change) {
    return [=](SealedHeader& header) { change(header.sections[static_cast<size_t>(which)]); };
  };
  const std::vector<BadHeader> cases = {
      {"version 0", [](SealedHeader& h) { h.version = 0; }, "header"},
      {"negative N", [](SealedHeader& h) { h.node_count = -1; }, "header"},
      {"N above 32 bits", [](SealedHeader& h) { h.node_count = kMostNodes + 1; }, "header"},
      {"the largest N", [](SealedHeader& h) { h.node_count = std::numeric_limits<int64_t>::max(); }, "header"},
      {"negative d", [](SealedHeader& h) { h.feature_count = -1; }, "header"},
      {"d above 32 bits", [](SealedHeader& h) { h.feature_count = kMostNodes + 1; }, "header"},
      {"negative c", [](SealedHeader& h) { h.class_count = -1; }, "header"},
      {"more nodes", [](SealedHeader& h) { h.node_count = 6; }, "edge_offsets"},
      {"the most nodes", [](SealedHeader& h) { h.node_count = kMostNodes; }, "edge_offsets"},
      {"shorter edge offsets", section(Section::kEdgeOffsets, [](auto& s) { s.bytes = 40; }), "edge_offsets"},
      {"offset into the header", section(Section::kEdgeOffsets, [](auto& s) { s.offset = 0; }), "edge_offsets"},
      {"overlapping sections", section(Section::kNeighbours, [](auto& s) { s.offset = 4096; }), "neighbours"},
      {"offset far away", section(Section::kNeighbours, [](auto& s) { s.offset = kMost - 4095; }), "neighbours"},
      {"length that wraps", section(Section::kNeighbours, [](auto& s) { s.bytes = kMost; }), "neighbours"},
      {"length that wraps the end", section(Section::kNeighbours, [](auto& s) { s.bytes = kMost - 8191; }),
       "neighbours"},
      {"half a neighbour", section(Section::kNeighbours, [](auto& s) { s.bytes = 30; }), "neighbours"},
      {"a page more", section(Section::kNeighbours, [](auto& s) { s.bytes = 4097; }), "feature_offsets"},
      {"longer feature offsets", section(Section::kFeatureOffsets, [](auto& s) { s.bytes = 56; }), "feature_offsets"},
      {"half a column", section(Section::kFeatureColumns, [](auto& s) { s.bytes = 22; }), "feature_columns"},
      {"a value without column", section(Section::kFeatureValues, [](auto& s) { s.bytes = 28; }), "feature_values"},
      {"a column without value", section(Section::kFeatureColumns, [](auto& s) { s.bytes = 28; }), "feature_values"},
      {"a label more", section(Section::kLabels, [](auto& s) { s.bytes = 24; }), "labels"},
      {"labels past the end", section(Section::kLabels, [](auto& s) { s.bytes = 4097; }), "labels"},
  };
  for (const BadHeader& bad : cases) {
    std::string bytes = SealedBytes(SmallGraph());
    ChangeHeader(bytes, bad.change);
    EXPECT_EQ(Verdict(OpenBytes(bytes).status()), DamagedIn(bad.part)) << bad.what;
  }
}

// One entry that no canonical graph has, under right checksums.
struct BadEntry {
  std::string what;
  std::function<void(std::string&)> change;
  std::string part;
  std::string fault;
};

TEST(SealedGraphTest, AFileMadeToLeadReadersAstrayIsRefusedInSpiteOfItsChecksums) {
  const auto set = [](Section section, size_t position, auto value) {
    return [=](std::string& bytes) { SetEntry(bytes, section, position, value); };
  };
  const std::string offsets = "its entries are not the offsets of rows";
  const std::string row = "a row is out of order, names a node that there is not, or names its own";
  const std::string columns = "a row is out of order or names a column that there is not";
  const std::string value = "a value is zero or not finite";
  const std::string label = "a label names a class that there is not";
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  constexpr int32_t kFarNode = std::numeric_limits<int32_t>::max();
  const std::vector<BadEntry> cases = {
      {"first offset not 0", set(Section::kEdgeOffsets, 0, int64_t{1}), "edge_offsets", offsets},
      {"negative offset", set(Section::kEdgeOffsets, 1, int64_t{-1}), "edge_offsets", offsets},
      {"offset out of bounds", set(Section::kEdgeOffsets, 2, kFar), "edge_offsets", offsets},
      {"decreasing offset", set(Section::kEdgeOffsets, 2, int64_t{1}), "edge_offsets", offsets},
      {"last offset too small", set(Section::kEdgeOffsets, 5, int64_t{7}), "edge_offsets", offsets},
      {"last offset too large", set(Section::kEdgeOffsets, 5, int64_t{9}), "edge_offsets", offsets},
      {"neighbour out of range", set(Section::kNeighbours, 1, int32_t{5}), "neighbours", row},
      {"neighbour far away", set(Section::kNeighbours, 7, kFarNode), "neighbours", row},
      {"negative neighbour", set(Section::kNeighbours, 0, int32_t{-1}), "neighbours", row},
      {"neighbour twice", set(Section::kNeighbours, 3, int32_t{0}), "neighbours", row},
      {"neighbours out of order", set(Section::kNeighbours, 0, int32_t{3}), "neighbours", row},
      {"self loop", set(Section::kNeighbours, 7, int32_t{3}), "neighbours", row},
      {"first feature offset not 0", set(Section::kFeatureOffsets, 0, int64_t{1}), "feature_offsets", offsets},
      {"feature offset out of bounds", set(Section::kFeatureOffsets, 3, kFar), "feature_offsets", offsets},
      {"last feature offset too large", set(Section::kFeatureOffsets, 5, int64_t{7}), "feature_offsets", offsets},
      {"column out of range", set(Section::kFeatureColumns, 1, int32_t{4}), "feature_columns", columns},
      {"negative column", set(Section::kFeatureColumns, 2, int32_t{-1}), "feature_columns", columns},
      {"column twice", set(Section::kFeatureColumns, 4, int32_t{0}), "feature_columns", columns},
      {"zero", set(Section::kFeatureValues, 0, 0.0F), "feature_values", value},
      {"negative zero", set(Section::kFeatureValues, 0, -0.0F), "feature_values", value},
      {"infinity", set(Section::kFeatureValues, 5, std::numeric_limits<float>::infinity()), "feature_values", value},
      {"not a number", set(Section::kFeatureValues, 3, std::nanf("")), "feature_values", value},
      {"label out of range", set(Section::kLabels, 4, int32_t{3}), "labels", label},
      {"negative label", set(Section::kLabels, 0, int32_t{-2}), "labels", label},
  };
  for (const BadEntry& bad : cases) {
    std::string bytes = SealedBytes(SmallGraph());
    bad.change(bytes);
    const absl::StatusOr<SealedGraph> sealed = OpenBytes(bytes);
    ASSERT_EQ(sealed.status(), absl::OkStatus()) << bad.what;
    EXPECT_EQ(Verdict(sealed->Check()), DamagedIn(bad.part)) << bad.what;
    EXPECT_EQ(sealed->View().status().message(), absl::StrCat(bad.part, ": ", bad.fault, kTail)) << bad.what;
  }
}

TEST(SealedGraphTest, AFaultIsFoundInTheLastBlockToo) {
  constexpr int32_t kNodes = 100'003;
  const std::string bytes = SealedBytes(Cycle(kNodes));
  std::string changed = bytes;
  SetEntry(changed, Section::kNeighbours, 2 * kNodes - 1, kNodes);
  EXPECT_EQ(Verdict(Fault(changed)), DamagedIn("neighbours"));
  changed = bytes;
  SetEntry(changed, Section::kEdgeOffsets, kNodes - 1, int64_t{2} * kNodes + 1);
  EXPECT_EQ(Verdict(Fault(changed)), DamagedIn("edge_offsets"));
  changed = bytes;
  SetEntry(changed, Section::kFeatureValues, kNodes - 1, 0.0F);
  EXPECT_EQ(Verdict(Fault(changed)), DamagedIn("feature_values"));
  changed = bytes;
  SetEntry(changed, Section::kLabels, kNodes - 1, int32_t{2});
  EXPECT_EQ(Verdict(Fault(changed)), DamagedIn("labels"));
}

TEST(SealedGraphTest, AnEdgeThatIsThereFromOneEndOnlyIsNotLookedFor) {
  std::string bytes = SealedBytes(SmallGraph());
  SetEntry(bytes, Section::kNeighbours, 7, int32_t{4});
  EXPECT_EQ(Fault(bytes), absl::OkStatus());
}

TEST(SealedGraphTest, ManyThreadsMayBeTheFirst) {
  const Graph graph = Cycle(100'003);
  std::string damaged = SealedBytes(graph);
  const SealedGraph good = OpenBytes(damaged).value();
  damaged[StartOf(damaged, Section::kFeatureColumns)] ^= 1;
  const SealedGraph bad = OpenBytes(damaged).value();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        EXPECT_EQ(good.View().value().labels.size(), graph.labels.size());
        EXPECT_EQ(Verdict(bad.View().status()), DamagedIn("feature_columns"));
      });
      threads.emplace_back([&] {
        EXPECT_EQ(good.Edges().value().edge_count(), graph.edge_count());
        EXPECT_EQ(bad.Edges().value().edge_count(), graph.edge_count());
      });
    }
  }
  EXPECT_EQ(Copy(good.View().value()), graph);
}

// Every section asks for each of its chunks, when it is read, and for each of its blocks, when it is looked through.
TEST(SealedGraphTest, VerifyingIsCancelledWheneverItAsksWhichIsOftenEnough) {
  int64_t before = 0;
  for (const int32_t nodes : {30'000, 120'000}) {
    const std::string path = TestPath("graph.sealed");
    ASSERT_EQ(WriteSealedGraph(path, Cycle(nodes)), absl::OkStatus());
    const int64_t questions = testing::CancelAtEveryQuestion([&](const std::function<bool()>& keep_going) {
      return SealedGraph::Open(path).value().View(keep_going).status();
    });
    // Two sections of offsets, 8 bytes a node; two of one entry and 4 bytes a node, labels as well; two entries and
    // 8 bytes a node of neighbours.
    EXPECT_GE(questions, (3 * 8 + 3 * 4) * int64_t{nodes} / (1 << 18) + 6 * int64_t{nodes} / (1 << 16));
    EXPECT_GE(questions, 3 * before);
    before = questions;
  }
}

TEST(SealedGraphTest, ABlockOfLongRowsAsksMoreOftenThanOnce) {
  constexpr int32_t kNodes = 1 << 14;  // one block
  constexpr int32_t kFeatures = 32;
  Graph graph;
  graph.sizes = {kNodes, kFeatures, 2};
  graph.edge_offsets.assign(kNodes + 1, 0);
  graph.labels.assign(kNodes, 0);
  for (int32_t node = 0; node < kNodes; ++node) {
    for (int32_t column = 0; column < kFeatures; ++column) {
      graph.features.columns.push_back(column);
      graph.features.values.push_back(1);
    }
    graph.features.offsets.push_back(static_cast<int64_t>(graph.features.columns.size()));
  }
  std::atomic<int64_t> asked = 0;
  EXPECT_TRUE(OpenBytes(SealedBytes(graph)).value().View([&] { return ++asked > 0; }).ok());
  // 18 chunks of 256 KB and one of labels; 36 blocks of entries, and 2 of rows, in one of which there are 8 questions.
  EXPECT_GE(asked, 19 + 36 + 1 + 8);
}

TEST(SealedGraphTest, WhatWasCancelledIsVerifiedAnew) {
  std::string bytes = SealedBytes(Cycle(100'003));
  const SealedGraph good = OpenBytes(bytes).value();
  bytes[StartOf(bytes, Section::kLabels) + 400'000] ^= 1;
  const SealedGraph bad = OpenBytes(bytes).value();
  for (int64_t stop_at = 1; stop_at < 60; ++stop_at) {
    std::atomic<int64_t> asked = 0;
    const auto stop = [&] { return ++asked != stop_at; };
    // Each time a little further, since sections that were verified to their end are not verified again.
    EXPECT_TRUE(absl::IsCancelled(good.View(stop).status()) || asked < stop_at);
    asked = 0;
    EXPECT_TRUE(absl::IsCancelled(bad.View(stop).status()) || asked < stop_at);
  }
  EXPECT_EQ(Copy(good.View().value()), Cycle(100'003));
  EXPECT_EQ(Verdict(bad.View().status()), DamagedIn("labels"));
}

TEST(SealedGraphTest, ViewsOutliveAMoveAndTheNameOfTheFile) {
  const std::string path = TestPath("graph.sealed");
  ASSERT_EQ(WriteSealedGraph(path, SmallGraph()), absl::OkStatus());
  SealedGraph first = SealedGraph::Open(path).value();
  const GraphView view = first.View().value();
  ASSERT_EQ(WriteSealedGraph(path, Cycle(7)), absl::OkStatus());
  const SealedGraph second = std::move(first);
  EXPECT_EQ(Copy(view), SmallGraph());
  EXPECT_EQ(second.sizes(), SmallGraph().sizes);
  EXPECT_EQ(Copy(SealedGraph::Open(path).value().View().value()), Cycle(7));
}

TEST(SealedGraphTest, ArraysThatDoNotFitTheSizesAreNotWritten) {
  const std::string path = TestPath("graph.sealed");
  const auto refused = [&](const std::function<void(Graph&)>& change) {
    Graph graph = SmallGraph();
    change(graph);
    return dpar::testing::Summary(WriteSealedGraph(path, graph));
  };
  const std::string start = "INVALID_ARGUMENT INVALID_GRAPH array=";
  EXPECT_EQ(refused([](Graph& g) { g.sizes.node_count = -1; }), start + "file");
  EXPECT_EQ(refused([](Graph& g) { g.sizes.feature_count = int64_t{1} << 31; }), start + "file");
  EXPECT_EQ(refused([](Graph& g) { g.sizes.node_count = 6; }), start + "edge_offsets");
  EXPECT_EQ(refused([](Graph& g) { g.features.offsets.pop_back(); }), start + "feature_offsets");
  EXPECT_EQ(refused([](Graph& g) { g.features.values.pop_back(); }), start + "feature_values");
  EXPECT_EQ(refused([](Graph& g) { g.labels.pop_back(); }), start + "labels");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SealedGraphTest, AWriteThatFailsLeavesTheOldFileAndNothingElse) {
  const std::string directory = TestPath("directory");
  const std::string path = directory + "/graph.sealed";
  EXPECT_EQ(dpar::testing::Summary(WriteSealedGraph(path, SmallGraph())),
            "INVALID_ARGUMENT INVALID_FIELD field=output");
  // A directory is not written over.
  ASSERT_TRUE(std::filesystem::create_directories(path + "/old"));
  EXPECT_EQ(dpar::testing::Summary(WriteSealedGraph(path, SmallGraph())),
            "INVALID_ARGUMENT INVALID_FIELD field=output");
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    left.push_back(entry.path().string());
  }
  EXPECT_THAT(left, ::testing::ElementsAre(path));
  EXPECT_TRUE(std::filesystem::exists(path + "/old"));
}

}  // namespace
}  // namespace dpar
