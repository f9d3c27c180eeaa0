#include "core/table/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kBank = R"(
nodes:
  id: account
  label: {column: segment, classes: [retail, business, NO]}
  columns:
    age: {type: number, range: [0, 120]}
    balance: {type: number, range: [0, 1e6], scale: log}
    country: {type: category, values: [AT, NO, "NA"]}
    active: {type: flag}
    opened: {type: date, range: [1990-01-01, 2030-12-31]}
    purpose: {type: text, width: 32}
    taste: {type: vector, columns: [t0, t1, t2]}
    face: {type: vector, width: 4}
    phone: {type: ignore}
edges: {source: from, target: to}
)";

std::string Fault(const std::string& text) {
  const auto schema = ParseSchema(text);
  return schema.ok() ? "accepted" : std::string(schema.status().message());
}

std::string Changed(const std::string& from, const std::string& to) { return absl::StrReplaceAll(kBank, {{from, to}}); }

TEST(SchemaTest, ReadsEveryType) {
  const auto schema = ParseSchema(kBank);
  ASSERT_TRUE(schema.ok()) << schema.status();
  EXPECT_EQ(schema->id, "account");
  EXPECT_EQ(schema->label, "segment");
  EXPECT_THAT(schema->classes, ElementsAre("retail", "business", "NO"));
  ASSERT_EQ(schema->columns.size(), 9u);
  EXPECT_EQ(schema->columns[1].high, 1e6);
  EXPECT_TRUE(schema->columns[1].log_scale);
  EXPECT_THAT(schema->columns[2].values, ElementsAre("AT", "NO", "NA"));
  EXPECT_EQ(schema->columns[4].low, 7305);
  EXPECT_THAT(schema->columns[6].parts, ElementsAre("t0", "t1", "t2"));
  EXPECT_EQ(schema->source, "from");
  const int64_t number = kNumberKnots + 2;
  EXPECT_EQ(schema->feature_count(), number + number + 5 + 4 + number + 34 + 4 + 5);
  EXPECT_EQ(schema->max_entries(), 2 + 2 + 1 + 1 + 2 + 32 + 3 + 4);
}

TEST(SchemaTest, TheCanonicalFormIsJsonThatReadsAsItself) {
  const auto schema = ParseSchema(kBank);
  ASSERT_TRUE(schema.ok());
  const std::string canonical = CanonicalSchema(*schema);
  EXPECT_THAT(canonical, HasSubstr(R"("opened":{"type":"date","range":["1990-01-01","2030-12-31"]})"));
  const auto again = ParseSchema(canonical);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(CanonicalSchema(*again), canonical);
  EXPECT_TRUE(CheckDeclaredSchema(canonical, schema->feature_count(), 3).ok());
  EXPECT_THAT(std::string(CheckDeclaredSchema(canonical, schema->feature_count() + 1, 3).message()),
              HasSubstr("feature_count"));
  EXPECT_THAT(std::string(CheckDeclaredSchema(canonical, schema->feature_count(), 2).message()),
              HasSubstr("class_count"));
  EXPECT_THAT(std::string(CheckDeclaredSchema(kBank, schema->feature_count(), 3).message()), HasSubstr("canonical"));
}

TEST(SchemaTest, SaysWhereItIsWrongAndWhatIsExpected) {
  EXPECT_THAT(Fault(Changed("range: [0, 120]", "range: [120, 0]")),
              HasSubstr("column age, range: expected two numbers"));
  EXPECT_THAT(Fault(Changed("range: [0, 120]", "range: [0, many]")), HasSubstr("column age, range"));
  EXPECT_THAT(Fault(Changed("range: [0, 120]", "range: [0, .inf]")), HasSubstr("column age, range"));
  EXPECT_THAT(Fault(Changed("range: [0, 120]", "range: [0, nan]")), HasSubstr("column age, range"));
  EXPECT_THAT(Fault(Changed("range: [0, 1e6]", "range: [-1, 1e6]")), HasSubstr("log scale"));
  EXPECT_THAT(Fault(Changed("1990-01-01", "1990-02-30")), HasSubstr("column opened, range: expected two dates"));
  EXPECT_THAT(Fault(Changed("type: flag", "type: flagg")), HasSubstr("column active, type: expected number, category"));
  EXPECT_THAT(Fault(Changed("type: flag", "type: flag, knots: 4")), HasSubstr("`knots` is not known here"));
  EXPECT_THAT(Fault(Changed("width: 32", "width: 0")), HasSubstr("column purpose, width"));
  EXPECT_THAT(Fault(Changed("[AT, NO, \"NA\"]", "[AT, AT]")), HasSubstr("twice"));
  EXPECT_THAT(Fault(Changed("[AT, NO, \"NA\"]", "[]")), HasSubstr("column country, values"));
  EXPECT_THAT(Fault(Changed("[retail, business, NO]", "[retail]")), HasSubstr("nodes, label, classes"));
  EXPECT_THAT(Fault(Changed("phone:", "age:")), HasSubstr("stands twice"));
  EXPECT_THAT(Fault(Changed("phone:", "t1:")), HasSubstr("column t1: the column stands twice"));
  EXPECT_THAT(Fault(Changed("phone:", "segment:")), HasSubstr("column segment: the column stands twice"));
  EXPECT_THAT(Fault(Changed("target: to", "target: from")), HasSubstr("source and target"));
  EXPECT_THAT(Fault(Changed("edges:", "links:")), HasSubstr("`edges` is missing"));
  EXPECT_THAT(Fault(absl::StrCat(kBank, "accepted_observed: [nobody]\n")), HasSubstr("'nobody' is not a column"));
  EXPECT_THAT(Fault(""), HasSubstr("empty"));
  EXPECT_THAT(Fault("nodes"), HasSubstr("expected `key: value` lines"));
  EXPECT_THAT(Fault("nodes: ["), HasSubstr("line "));
}

TEST(SchemaTest, RefusesWhatAStrangerCouldHurtWith) {
  EXPECT_THAT(Fault("a: &x [1]\nb: *x\n"), HasSubstr("anchors are not read"));
  EXPECT_THAT(Fault("a: !!binary aGk=\n"), HasSubstr("tags are not read"));
  EXPECT_THAT(Fault(std::string(100'000, '[')), HasSubstr("not read"));
  EXPECT_THAT(Fault(std::string(100'000, '{')), HasSubstr("not read"));
  EXPECT_THAT(Fault(std::string(300'000, 'a')), HasSubstr("more than"));
  EXPECT_THAT(Fault(std::string("nodes: \0", 8)), HasSubstr("UTF-8"));
  EXPECT_THAT(Fault("nodes: \xff"), HasSubstr("UTF-8"));
  EXPECT_THAT(Fault("a: 1\n---\nb: 2\n"), HasSubstr("more than one document"));
  EXPECT_THAT(Fault("? [a, b]\n: 1\n"), HasSubstr("key must be a text"));
  std::string long_list = "[retail, business";
  for (int i = 0; i < 9000; ++i) {
    absl::StrAppend(&long_list, ", class", i);
  }
  EXPECT_THAT(Fault(Changed("[retail, business, NO]", long_list + "]")), HasSubstr("longer than"));
}

TEST(SchemaTest, ADraftIsRefusedUntilItsQuestionsAreAnsweredOrAccepted) {
  const auto draft = ParseSchema(Changed("range: [0, 120]", "range: [18, 97], question: '18 to 97 seen.'"));
  ASSERT_TRUE(draft.ok()) << draft.status();
  EXPECT_THAT(std::string(CheckAnswered(*draft).message()), HasSubstr("age: 18 to 97 seen."));
  EXPECT_EQ(CheckAnswered(*draft).code(), absl::StatusCode::kFailedPrecondition);
  const TableSchema accepted = AcceptObserved(*draft);
  EXPECT_TRUE(CheckAnswered(accepted).ok());
  EXPECT_THAT(CanonicalSchema(accepted), HasSubstr(R"("accepted_observed":["age"])"));
  EXPECT_TRUE(CheckAnswered(*ParseSchema(kBank)).ok());
}

TEST(SchemaTest, DatesAreThoseOfTheCalendar) {
  double days = 0;
  EXPECT_TRUE(ParseDate("1970-01-02", days));
  EXPECT_EQ(days, 1);
  EXPECT_TRUE(ParseDate("2024-02-29T23:59:59Z", days));
  EXPECT_EQ(FormatDate(days), "2024-02-29");
  for (const char* wrong : {"2023-02-29", "2024-13-01", "24-01-01", "2024/01/01", "2024-01-0x", "2024-01-011", ""}) {
    EXPECT_FALSE(ParseDate(wrong, days)) << wrong;
  }
}

TEST(SchemaTest, TheFirstDifferenceIsNamed) {
  const TableSchema bank = *ParseSchema(kBank);
  TableSchema other = bank;
  other.accepted_observed = {"age"};
  other.id = "number";
  other.columns.emplace(other.columns.begin())->name = "note";
  EXPECT_EQ(SchemaDifference(bank, other), "") << "rows are encoded alike";
  other.columns[1].high += 1;
  EXPECT_EQ(SchemaDifference(bank, other), absl::StrCat("column ", bank.columns[0].name, " differs"));
  other = bank;
  other.columns.emplace_back().name = "more";
  other.columns.back().type = ColumnType::kFlag;
  EXPECT_EQ(SchemaDifference(bank, other), "column more differs");
  EXPECT_EQ(SchemaDifference(other, bank), "column more differs");
  other.classes.pop_back();
  EXPECT_EQ(SchemaDifference(bank, other), "the classes differ");
}

}  // namespace
}  // namespace dpar
