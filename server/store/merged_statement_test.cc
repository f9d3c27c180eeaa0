#include "server/store/merged_statement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace dpar {
namespace {

using ::testing::ElementsAre;

const std::vector<Value> kOne = {std::string("a\"b\\"), int64_t{1}, std::monostate{}};
const std::vector<Value> kTwo = {std::string("NULL"), std::numeric_limits<int64_t>::min(), std::monostate{}};

TEST(MergedStatement, AQueryIsAskedOnceForEachRow) {
  const auto merged = MergeQueries("SELECT x FROM t WHERE y = $1 AND z > $2 FOR UPDATE", {&kOne, &kTwo});
  ASSERT_TRUE(merged.has_value());
  EXPECT_EQ(merged->sql,
            "SELECT given.n, found.* FROM unnest((SELECT $1::text[]), (SELECT $2::bigint[]), (SELECT $3::text[])) "
            "WITH ORDINALITY AS given (p1, p2, p3, n), LATERAL (SELECT * FROM (SELECT x FROM t WHERE y = given.p1 AND "
            "z > given.p2 FOR UPDATE) AS one OFFSET 0) AS found");
  EXPECT_THAT(merged->parameters,
              ElementsAre(Value("{\"a\\\"b\\\\\",\"NULL\"}"), Value("{1,-9223372036854775808}"), Value("{NULL,NULL}")));
}

TEST(MergedStatement, AnInsertNeedsNoCheckAndAnUpdateHasOne) {
  const auto insert = MergeChanges("INSERT INTO t (a, b, c) VALUES ($1, COALESCE($2, 0), '')", {&kOne, &kTwo});
  ASSERT_TRUE(insert.has_value());
  EXPECT_EQ(insert->sql,
            "INSERT INTO t (a, b, c) SELECT given.p1, COALESCE(given.p2, 0), '' FROM unnest($1::text[], $2::bigint[], "
            "$3::text[]) WITH ORDINALITY AS given (p1, p2, p3, n)");
  const auto update = MergeChanges("UPDATE t SET b = $2 WHERE a = $1", {&kOne, &kTwo});
  ASSERT_TRUE(update.has_value());
  EXPECT_EQ(update->sql,
            "WITH changed AS (UPDATE t SET b = given.p2 FROM unnest($1::text[], $2::bigint[], $3::text[]) WITH "
            "ORDINALITY AS given (p1, p2, p3, n) WHERE a = given.p1 RETURNING 1) SELECT 1 / (CASE COUNT(*) WHEN "
            "cardinality($1) THEN 1 ELSE 0 END) FROM changed");
}

TEST(MergedStatement, OtherFormsStayAsTheyAreWithTheirCheck) {
  for (const char* const sql :
       {"INSERT INTO t (a) VALUES ($1), ($2)", "INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET b = ($2)",
        "INSERT INTO t (a) SELECT $1 WHERE $2 > 0", "DELETE FROM t WHERE a = $1",
        "UPDATE t SET b = (SELECT 1 FROM u WHERE c = $2) WHERE a = $1"}) {
    EXPECT_FALSE(MergeChanges(sql, {&kOne, &kTwo}).has_value()) << sql;
    EXPECT_THAT(ChangeOne(sql), ::testing::StartsWith("WITH changed AS (")) << sql;
  }
  EXPECT_EQ(ChangeOne("INSERT INTO t (a) VALUES ($1)"), "INSERT INTO t (a) VALUES ($1)");
}

TEST(MergedStatement, RowsWithoutTypesInCommonAreNotMerged) {
  const std::vector<Value> other = {std::string("a"), 0.5, std::monostate{}};
  EXPECT_FALSE(MergeQueries("SELECT $1, $2, $3", {&kOne, &other}).has_value());
  const std::vector<Value> none;
  EXPECT_FALSE(MergeQueries("SELECT 1", {&none, &none}).has_value());
}

TEST(MergedStatement, RowsFindTheirQuestionAndNoneIsMadeUp) {
  const std::vector<Row> rows = {{int64_t{3}, "c"}, {int64_t{1}, "a"}, {int64_t{3}, "d"}};
  const auto split = SplitRows(rows, 3);
  ASSERT_TRUE(split.has_value());
  EXPECT_THAT(*split, ElementsAre(ElementsAre(Row{"a"}), ElementsAre(), ElementsAre(Row{"c"}, Row{"d"})));
  EXPECT_FALSE(SplitRows(rows, 2).has_value()) << "there is no third question";
  EXPECT_FALSE(SplitRows({{int64_t{0}}}, 2).has_value());
  EXPECT_FALSE(SplitRows({{"1"}}, 2).has_value());
  EXPECT_FALSE(SplitRows({{}}, 2).has_value());
}

}  // namespace
}  // namespace dpar
