#include "core/table/draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "core/graph/testing/npz_fixture.h"
#include "core/table/schema.h"

namespace dpar {
namespace {

using ::dpar::testing::TestPath;
using ::dpar::testing::WriteBytes;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kRows = 100;

bool GoOn(absl::string_view /*stage*/, double /*fraction*/) { return true; }

absl::StatusOr<SchemaDraft> DraftOf(const std::string& nodes, const DraftOptions& options = {},
                                    const std::string& edges = "s,t\nn1,n2\nn2,n3\n") {
  const std::string directory = TestPath("draft");
  std::filesystem::create_directories(directory);
  const TableFiles files = {absl::StrCat(directory, "/n.csv"), absl::StrCat(directory, "/e.csv")};
  WriteBytes(files.nodes, nodes);
  WriteBytes(files.edges, edges);
  return DraftSchema(files, options, GoOn);
}

// A table with an id, a label, a flag and these columns.
std::string Table(const std::string& names, const std::function<std::string(int)>& cells) {
  std::string text = absl::StrCat("id,label,f,", names, "\n");
  for (int i = 0; i < kRows; ++i) {
    absl::StrAppend(&text, "n", i, ",", i % 2 == 0 ? "a" : "b", ",", i % 3 == 0 ? "yes" : "no", ",", cells(i), "\n");
  }
  return text;
}

// The draft, which is a schema.
std::string Yaml(const std::string& nodes, const DraftOptions& options = {}) {
  const auto draft = DraftOf(nodes, options);
  EXPECT_TRUE(draft.ok()) << draft.status();
  if (!draft.ok()) {
    return "";
  }
  EXPECT_TRUE(ParseSchema(draft->yaml).ok()) << ParseSchema(draft->yaml).status() << "\n" << draft->yaml;
  return draft->yaml;
}

std::string Fault(const std::string& nodes, const DraftOptions& options = {}) {
  const auto draft = DraftOf(nodes, options);
  return draft.ok() ? draft->yaml : std::string(draft.status().message());
}

TEST(DraftTest, ARangeIsRoundedOutwardAndItsQuestionShowsTheSame) {
  const std::string text = Yaml(Table("age,pay,day", [](int i) {
    return absl::StrCat(18 + i % 80, ",", 1234.56 + 43.21 * (i % 50), ",20", i % 20 < 10 ? "0" : "", i % 20, "-07-13");
  }));
  EXPECT_THAT(text, HasSubstr("\"age\": {type: number, range: [10, 110], question: \"10 to 110 holds what was seen"));
  EXPECT_THAT(text, HasSubstr("\"pay\": {type: number, range: [1000, 4000], question: \"1000 to 4000 holds"));
  EXPECT_THAT(text, HasSubstr("\"day\": {type: date, range: [2000-01-01, 2019-12-31], question: \"2000-01-01 to 2019"));
  EXPECT_THAT(text, Not(HasSubstr("1234.56"))) << "the least is a person's";
  EXPECT_THAT(text, Not(HasSubstr("07-13")));
}

TEST(DraftTest, RangesOfOneValueAndBelowZeroAreRanges) {
  const std::string text = Yaml(
      Table("one,zero,cold,tiny", [](int i) { return absl::StrCat("7,0.0,-", 1 + i % 7, ".5,", 0.001 * (i % 9)); }));
  EXPECT_THAT(text, HasSubstr("\"one\": {type: number, range: [7, "));
  EXPECT_THAT(text, HasSubstr("\"zero\": {type: number, range: [0, 1]"));
  EXPECT_THAT(text, HasSubstr("\"cold\": {type: number, range: [-9, 0]"));
  EXPECT_THAT(text, HasSubstr("\"tiny\": {type: number, range: [0, 0.009]"));
}

TEST(DraftTest, NumbersThatLookLikeIdentifiersAreLeftOutWithAQuestion) {
  const std::string text = Yaml(Table("phone,row,amount", [](int i) {
    return absl::StrCat("+43", 100007390 + 7919999 * i, ",", i + 1, ",", 0.25 + 1.5 * i);
  }));
  EXPECT_THAT(text, HasSubstr("\"phone\": {type: ignore, question: \"nearly every row has a number of its own"));
  EXPECT_THAT(text, HasSubstr("\"row\": {type: ignore, question: "));
  EXPECT_THAT(text, HasSubstr("\"amount\": {type: number, "));
  EXPECT_THAT(text, Not(HasSubstr("7390")));
  const TableSchema accepted = AcceptObserved(*ParseSchema(text));
  EXPECT_THAT(accepted.accepted_observed, ::testing::ElementsAre("label", "amount"));
}

TEST(DraftTest, WhatCannotBeDeclaredIsLeftOut) {
  const std::string text = Yaml(Table("lines,long,huge,open", [](int i) {
    return absl::StrCat("\"a\n", i % 3, "\",", std::string(130, i % 2 == 0 ? 'x' : 'y'), ",", i % 7, "e300,\"[", i,
                        " x]\"");
  }));
  EXPECT_THAT(text, HasSubstr("\"lines\": {type: ignore}"));
  EXPECT_THAT(text, HasSubstr("\"long\": {type: ignore}"));
  EXPECT_THAT(text, HasSubstr("\"huge\": {type: ignore}"));
  EXPECT_THAT(text, Not(HasSubstr("\"open\": {type: vector")));
}

TEST(DraftTest, VectorsAreReadAsTheyAreEncodedAndHaveNamesOfTheirOwn) {
  const std::string text = Yaml(Table("v,w,e,e0,e1,e2,e3,my 0,my 1,my 2,my 3", [](int i) {
    return absl::StrCat("[1 2 ", i, "],[1],p", i % 3, ",1,2,3,4,1,2,3,", i % 5);
  }));
  EXPECT_THAT(text, HasSubstr("\"v\": {type: vector, width: 3"));
  EXPECT_THAT(text, HasSubstr("\"w\": {type: vector, width: 1"));
  EXPECT_THAT(text, HasSubstr("\"e\": {type: category"));
  EXPECT_THAT(text, HasSubstr("\"e_\": {type: vector, columns: [\"e0\", \"e1\", \"e2\", \"e3\"]}"));
  EXPECT_THAT(text, HasSubstr("\"my\": {type: vector, columns: [\"my 0\""));
}

TEST(DraftTest, ATableWithNothingToLearnFromIsRefused) {
  EXPECT_THAT(Fault("id,label\nn1,a\nn2,b\nn3,a\nn4,b\n"), HasSubstr("no schema can be drafted"));
  EXPECT_THAT(Fault("id,label\n"), HasSubstr("a header and no row"));
}

TEST(DraftTest, TheLabelIsNamedOrGuessedAmongColumnsWhoseValuesRepeat) {
  const std::string table =
      "id,name,plan,churned\nn1,Ann,x,yes\nn2,Bob,y,no\nn3,Cid,z,no\nn4,Dan,x,yes\nn5,Eve,y,no\nn6,Flo,z,no\n";
  EXPECT_THAT(Yaml(table), HasSubstr("label: {column: \"plan\""));
  EXPECT_THAT(Yaml(table, {.id = "", .label = "churned"}),
              HasSubstr("label: {column: \"churned\", classes: [\"no\", \"yes\"]"));
  EXPECT_THAT(Yaml("id,name,bad\nn1,Ann,1\nn2,Bob,0\nn3,Cid,0\nn4,Dan,1\n"), HasSubstr("label: {column: \"bad\""))
      << "a flag may be the label, and names never are";
  EXPECT_THAT(Fault("id,name\nn1,Ann\nn2,Bob\nn3,Cid\n"), HasSubstr("--label COLUMN names it"));
  EXPECT_THAT(Fault(table, {.id = "", .label = "nobody"}), HasSubstr("no column is named 'nobody'"));
  EXPECT_THAT(Fault(table, {.id = "plan", .label = ""}), HasSubstr("column plan cannot be the id"));
  EXPECT_THAT(Fault(table, {.id = "id", .label = "id"}), HasSubstr("column id cannot be the label"));
}

TEST(DraftTest, AMeasureIsNotTheIdAndALaterColumnMayBe) {
  std::string table = "score,maybe,id,label,f\n";
  for (int i = 0; i < 2000; ++i) {
    absl::StrAppend(&table, 0.5 + i, ",", i == 1999 ? 7 : i, ",n", i, ",", i % 2 == 0 ? "a" : "b", ",yes\n");
  }
  EXPECT_THAT(Yaml(table), HasSubstr("id: \"id\"")) << "`maybe` repeats only at its end";
}

TEST(DraftTest, ReadingCanBeStopped) {
  const std::string directory = TestPath("stopped");
  std::filesystem::create_directories(directory);
  WriteBytes(directory + "/n.csv", "id,label,f\nn1,a,yes\n");
  WriteBytes(directory + "/e.csv", "s,t\n");
  const auto stopped = DraftSchema({directory + "/n.csv", directory + "/e.csv"}, {},
                                   [](absl::string_view /*stage*/, double /*fraction*/) { return false; });
  EXPECT_TRUE(absl::IsCancelled(stopped.status())) << stopped.status();
}

}  // namespace
}  // namespace dpar
