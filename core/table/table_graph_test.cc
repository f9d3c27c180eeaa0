#include "core/table/table_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/error.h"
#include "core/graph/testing/child_memory.h"
#include "core/graph/testing/npz_fixture.h"
#include "core/random/testing/fixed_random.h"
#include "core/table/bank.h"

namespace dpar {
namespace {

using ::dpar::testing::FixedRandom;
using ::dpar::testing::InChild;
using ::dpar::testing::PeakBytes;
using ::dpar::testing::ReadBytes;
using ::dpar::testing::TestPath;
using ::dpar::testing::WriteBytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSchema =
    "nodes:\n  id: id\n  label: {column: y, classes: [a, b]}\n  columns:\n    x: {type: category, values: [p, q]}\n"
    "edges: {source: s, target: t}\n";

// A directory of this test's own.
std::string Directory() {
  const std::string path = TestPath("tables");
  std::filesystem::create_directories(path);
  return path;
}

std::string PathOf(const std::string& name) { return absl::StrCat(Directory(), "/", name); }

bool GoOn(absl::string_view /*stage*/, double /*fraction*/) { return true; }

absl::StatusOr<TableGraph> Read(const std::string& schema, const std::string& nodes, const std::string& edges,
                                const GraphLimits& limits = {}) {
  const TableFiles files = {PathOf("n.csv"), PathOf("e.csv")};
  WriteBytes(files.nodes, nodes);
  WriteBytes(files.edges, edges);
  const auto parsed = ParseSchema(schema);
  return parsed.ok() ? ReadTableGraph(*parsed, files, limits, GoOn) : parsed.status();
}

std::string Fault(const std::string& nodes, const std::string& edges) {
  const auto graph = Read(kSchema, nodes, edges);
  return graph.ok() ? "accepted" : std::string(graph.status().message());
}

TEST(TableGraphTest, SlotsFollowRowsAndEdgesFollowIds) {
  const auto tables = Read(kSchema, "y,id,x\na,n1,p\n,\"n 2\",zz\nb,n3,\n,n4,\n",
                           "t,amount,s\nn1,5,n3\nn3,6,n1\nn9,7,n1\n\"n 2\",8,n1\nn1,9,n1\n");
  ASSERT_TRUE(tables.ok()) << tables.status();
  const Graph& graph = tables->imported.graph;
  EXPECT_EQ(graph.sizes, (PublicSizes{4, 4, 2}));
  EXPECT_THAT(graph.labels, ElementsAre(0, -1, 1, -1));
  EXPECT_THAT(graph.edge_offsets, ElementsAre(0, 2, 3, 4, 4));
  EXPECT_THAT(graph.neighbours, ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(graph.features.offsets, ElementsAre(0, 1, 2, 2, 2));
  EXPECT_THAT(graph.features.columns, ElementsAre(0, 2));
  EXPECT_EQ(tables->names.ids[1], "n 2");
  EXPECT_THAT(tables->names.classes, ElementsAre("a", "b"));
  EXPECT_EQ(tables->report.unknown_edges, 1);
  EXPECT_EQ(tables->report.first_unknown, "e.csv line 4, column t: no node has the id 'n9'; the edge is left out");
  ASSERT_EQ(tables->report.others.size(), 1u);
  EXPECT_EQ(tables->report.others[0].first,
            "n.csv line 3, column x: 'zz' is not among its 2 categories; it becomes 'other'");
  EXPECT_EQ(tables->report.null_rows, 1);
  EXPECT_EQ(tables->imported.report.self_loops_dropped, 1);
}

TEST(TableGraphTest, NamesFileLineAndColumnOfWhatIsWrong) {
  EXPECT_EQ(Fault("id,y,x\nn1,a,p\n\nn2,a,p\nn1,b,q\n", "s,t\n"),
            "n.csv line 5, column id: the id 'n1' stands in line 2 already; a node is one row, and its id is its own");
  EXPECT_THAT(Fault("id,y,x\n,a,p\n", "s,t\n"), HasSubstr("n.csv line 2, column id: expected an id"));
  EXPECT_THAT(Fault("id,y,x\n", "s,t\n"), HasSubstr("no row"));
  EXPECT_THAT(Fault("id,y,x\nn1,c,p\n", "s,t\n"), HasSubstr("line 2, column y: 'c' is not among its 2 classes"));
  EXPECT_THAT(Fault("id,y\nn1,a\n", "s,t\n"), HasSubstr("column x: the schema declares it"));
  EXPECT_THAT(Fault("id,y,x\nn1,a,p\n", "s,u\n"), HasSubstr("e.csv line 1, column t: the schema names it"));
  EXPECT_THAT(Fault("id,y,x\nn1,a,p\n", "s,t\nn1\n"), HasSubstr("e.csv line 2: 1 fields"));
  GraphLimits one_node;
  one_node.max_nodes = 1;
  const auto limited = Read(kSchema, "id,y,x\nn1,a,p\nn2,a,p\n", "s,t\n", one_node);
  EXPECT_EQ(limited.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(TableGraphTest, StopsWhenItIsTold) {
  const auto schema = ParseSchema(kSchema);
  const TableFiles files = {PathOf("n.csv"), PathOf("e.csv")};
  WriteBytes(files.nodes, "id,y,x\nn1,a,p\n");
  WriteBytes(files.edges, "s,t\nn1,n1\n");
  for (const absl::string_view last : {"nodes", "edges", "features"}) {
    const auto stopped =
        ReadTableGraph(*schema, files, {}, [&](absl::string_view stage, double) { return stage != last; });
    EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled) << last;
  }
}

// The features and the label of each id, and the ids of its neighbours.
struct Person {
  std::vector<int32_t> columns;
  std::vector<float> values;
  int32_t label = 0;
  std::vector<std::string> neighbours;

  bool operator==(const Person&) const = default;
};

std::map<std::string, Person> ById(const TableGraph& tables) {
  std::map<std::string, Person> people;
  const GraphView graph = tables.imported.graph;
  for (int64_t slot = 0; slot < graph.sizes.node_count; ++slot) {
    Person& person = people[std::string(tables.names.ids[slot])];
    const auto columns = graph.features.row_columns(slot);
    const auto values = graph.features.row_values(slot);
    person.columns.assign(columns.begin(), columns.end());
    person.values.assign(values.begin(), values.end());
    person.label = graph.labels[static_cast<size_t>(slot)];
    for (const int32_t neighbour : graph.edges.neighbours_of(slot)) {
      person.neighbours.emplace_back(tables.names.ids[neighbour]);
    }
  }
  return people;
}

// Neighbouring tables: one row and its edges gone, or the row blanked but for its id.
TEST(TableGraphTest, ARowAndItsEdgesGoneLeavesEveryOtherRowAsItIs) {
  FixedRandom random(11);
  const auto bank = WriteBankTables(Directory(), 60, random);
  ASSERT_TRUE(bank.ok()) << bank.status();
  const std::string schema = ReadBytes(bank->schema);
  const std::vector<std::string> rows = absl::StrSplit(ReadBytes(bank->files.nodes), '\n', absl::SkipEmpty());
  const std::vector<std::string> transfers = absl::StrSplit(ReadBytes(bank->files.edges), '\n', absl::SkipEmpty());
  const auto whole = Read(schema, absl::StrJoin(rows, "\n"), absl::StrJoin(transfers, "\n"));
  ASSERT_TRUE(whole.ok()) << whole.status();
  const std::map<std::string, Person> all = ById(*whole);
  for (size_t gone = 1; gone < rows.size(); ++gone) {
    const std::string id = rows[gone].substr(0, rows[gone].find(','));
    std::vector<std::string> left = rows;
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(gone));
    std::vector<std::string> blanked = rows;
    blanked[gone] = absl::StrCat(id, ",,,,,,,,,,");
    std::vector<std::string> edges;
    for (const std::string& transfer : transfers) {
      if (transfer.find(id) == std::string::npos) {
        edges.push_back(transfer);
      }
    }
    std::map<std::string, Person> expected = all;
    expected.erase(id);
    for (auto& [name, person] : expected) {
      std::erase(person.neighbours, id);
    }
    const auto without = Read(schema, absl::StrJoin(left, "\n"), absl::StrJoin(edges, "\n"));
    ASSERT_TRUE(without.ok()) << without.status();
    EXPECT_EQ(ById(*without), expected) << id;
    EXPECT_EQ(without->names.schema, whole->names.schema);
    const auto with_null = Read(schema, absl::StrJoin(blanked, "\n"), absl::StrJoin(edges, "\n"));
    ASSERT_TRUE(with_null.ok()) << with_null.status();
    EXPECT_TRUE(GraphView(with_null->imported.graph).IsNull(static_cast<int64_t>(gone) - 1)) << id;
    EXPECT_EQ(with_null->imported.graph.sizes, whole->imported.graph.sizes);
    expected[id] = Person{{}, {}, kUnlabelled, {}};
    EXPECT_EQ(ById(*with_null), expected) << id;
  }
}

std::string Mutated(std::string text, FixedRandom& random) {
  constexpr absl::string_view kNasty("\"\"\n\r,;\t\0\xff\xc3\x28[]-e9 ", 20);
  const uint64_t changes = 1 + UniformBelow(random, 6);
  for (uint64_t i = 0; i < changes; ++i) {
    const size_t at = UniformBelow(random, text.size());
    switch (UniformBelow(random, 6)) {
      case 0:
        text[at] = kNasty[UniformBelow(random, kNasty.size())];
        break;
      case 1:
        text.insert(at, 1, kNasty[UniformBelow(random, kNasty.size())]);
        break;
      case 2:
        text.erase(at, 1 + UniformBelow(random, 9));
        break;
      case 3:
        text.insert(at, std::string(UniformBelow(random, 3000), text[at]));
        break;
      case 4:
        text.resize(at + 1);
        break;
      default:
        text.insert(at, absl::StrCat("99999999999999999999", text.substr(at, 12)));
    }
  }
  return text;
}

// Whether the views' promises hold (graph.h).
void ExpectCanonical(const Graph& graph) {
  const GraphView view = graph;
  ASSERT_EQ(view.labels.size(), static_cast<size_t>(graph.sizes.node_count));
  for (int64_t slot = 0; slot < graph.sizes.node_count; ++slot) {
    const auto columns = view.features.row_columns(slot);
    for (size_t i = 0; i < columns.size(); ++i) {
      ASSERT_TRUE(columns[i] >= (i == 0 ? 0 : columns[i - 1] + 1) && columns[i] < graph.sizes.feature_count);
      const float value = view.features.row_values(slot)[i];
      ASSERT_TRUE(std::isfinite(value) && value != 0);
    }
    for (const int32_t neighbour : view.edges.neighbours_of(slot)) {
      ASSERT_TRUE(neighbour >= 0 && neighbour < graph.sizes.node_count && neighbour != slot);
    }
  }
}

TEST(TableGraphTest, AThousandMalformedFilesGiveAClearErrorOrACorrectGraph) {
  FixedRandom random(28);
  const auto bank = WriteBankTables(Directory(), 30, random);
  ASSERT_TRUE(bank.ok());
  const std::string schema = ReadBytes(bank->schema);
  const std::string nodes = ReadBytes(bank->files.nodes);
  const std::string edges = ReadBytes(bank->files.edges);
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    const int part = i % 5;
    const auto tables =
        Read(part == 0 ? Mutated(schema, random) : schema, part == 1 || part == 2 ? Mutated(nodes, random) : nodes,
             part > 2 ? Mutated(edges, random) : edges);
    if (tables.ok()) {
      ExpectCanonical(tables->imported.graph);
      continue;
    }
    ++refused;
    const std::string message(tables.status().message());
    const std::string expected = part == 0 ? "schema" : part < 3 ? "n.csv" : "e.csv";
    EXPECT_EQ(tables.status().code(), absl::StatusCode::kInvalidArgument) << message;
    // A schema that was changed but still holds may no longer fit the table.
    EXPECT_TRUE(message.find(expected) != std::string::npos ||
                (part == 0 && message.find(".csv line") != std::string::npos))
        << message;
  }
  EXPECT_GT(refused, 300);
  EXPECT_LT(refused, 1000) << "nothing was read at all";
}

struct Measured {
  int64_t result_bytes = 0;
  int64_t peak_bytes = 0;
};

TEST(TableGraphTest, ReadingTakesAtMostOneAndAHalfTimesTheResult) {
  if (testing::kMemoryMeansNothing) {
    GTEST_SKIP() << "a sanitizer keeps memory of its own; the build without one measures";
  }
  const TableFiles files = {PathOf("accounts.csv"), PathOf("transfers.csv")};
  ASSERT_EQ(InChild<int>([] {
              FixedRandom random(3);
              return WriteBankTables(Directory(), 300'000, random).ok() ? 1 : 0;
            }),
            1);
  const auto measured = InChild<Measured>([&files] {
    const auto schema = ParseSchema(ReadBytes(PathOf("accounts.schema.yaml")));
    const int64_t before = PeakBytes();
    const auto tables = ReadTableGraph(*schema, files, {}, GoOn);
    if (!tables.ok()) {
      return Measured();
    }
    const Graph& graph = tables->imported.graph;
    const auto bytes = static_cast<int64_t>(8 * (graph.edge_offsets.size() + graph.features.offsets.size() +
                                                 static_cast<size_t>(tables->names.ids.size())) +
                                            4 * (graph.neighbours.size() + graph.features.columns.size() +
                                                 graph.features.values.size() + graph.labels.size()) +
                                            10 * static_cast<size_t>(tables->names.ids.size()));
    return Measured{bytes, PeakBytes() - before};
  });
  ASSERT_GT(measured.result_bytes, int64_t{20} << 20);
  const double share = static_cast<double>(measured.peak_bytes) / static_cast<double>(measured.result_bytes);
  RecordProperty("peak_share", std::to_string(share));
  EXPECT_LE(share, 1.5);
  EXPECT_GE(share, 1.0);
}

TEST(TableGraphTest, CellsInMessagesAreShownSafely) {
  const std::string cell = absl::StrCat("\x1b[2J", std::string(500, 'z'));
  const auto is_safe = [](const std::string& message) {
    return message.find('\x1b') == std::string::npos && message.size() < 300 &&
           message.find("\\x1b[2J") != std::string::npos;
  };
  const auto graph = Read(kSchema, absl::StrCat("id,y,x\n1,a,", cell, "\n"), absl::StrCat("s,t\n1,", cell, "\n"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->report.others.size(), 1U);
  EXPECT_TRUE(is_safe(graph->report.others[0].first)) << graph->report.others[0].first;
  EXPECT_TRUE(is_safe(graph->report.first_unknown)) << graph->report.first_unknown;
  EXPECT_TRUE(is_safe(Fault(absl::StrCat("id,y,x\n1,", cell, ",p\n"), "s,t\n")));
  EXPECT_TRUE(is_safe(Fault("id,y,x\n\x1b[2J,a,p\n\x1b[2J,a,p\n", "s,t\n")));
}

}  // namespace
}  // namespace dpar
