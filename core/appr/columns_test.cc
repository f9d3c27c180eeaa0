#include "core/appr/columns.h"

#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/graph/testing/npz_fixture.h"
#include "core/random/subsets.h"
#include "core/random/testing/fixed_random.h"
#include "core/random/testing/plain_noise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::dpar::testing::FillGaussian;
using ::dpar::testing::FixedRandom;
using ::dpar::testing::Summary;
using ::testing::IsEmpty;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kNoCap = std::numeric_limits<int64_t>::max();

// Rows over ten slots, each a list of columns and values.
ApprRows RowsOf(const std::vector<std::vector<std::pair<int32_t, double>>>& entries) {
  ApprRows rows;
  rows.node_count = 10;
  for (const auto& row : entries) {
    rows.seeds.push_back(static_cast<int32_t>(rows.seeds.size()));
    for (const auto& [column, value] : row) {
      rows.columns.push_back(column);
      rows.values.push_back(value);
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.columns.size()));
  }
  return rows;
}

ApprRows Bounded(int64_t max_occurrence, double tau, ApprRows rows) {
  const absl::Status status = BoundColumns(max_occurrence, tau, rows);
  EXPECT_TRUE(status.ok()) << status;
  return rows;
}

void ExpectSame(const ApprRows& actual, const ApprRows& expected) {
  EXPECT_EQ(actual.node_count, expected.node_count);
  EXPECT_EQ(actual.seeds, expected.seeds);
  EXPECT_EQ(actual.offsets, expected.offsets);
  EXPECT_EQ(actual.columns, expected.columns);
  EXPECT_EQ(actual.values, expected.values);
}

TEST(BoundColumnsTest, KeepsTheLargestEntriesOfAColumn) {
  const ApprRows rows = RowsOf({{{1, 0.1}, {3, 0.5}}, {{3, 0.7}}, {{3, 0.6}, {4, 0.2}}, {{3, 0.1}}});
  ExpectSame(Bounded(2, kInfinity, rows), RowsOf({{{1, 0.1}}, {{3, 0.7}}, {{3, 0.6}, {4, 0.2}}, {}}));
  ExpectSame(Bounded(1, kInfinity, rows), RowsOf({{{1, 0.1}}, {{3, 0.7}}, {{4, 0.2}}, {}}));
}

TEST(BoundColumnsTest, CountsEveryColumnOnItsOwn) {
  const ApprRows rows = RowsOf({{{0, 0.3}, {9, 0.3}}, {{0, 0.2}, {9, 0.4}}, {{0, 0.1}, {9, 0.2}}});
  ExpectSame(Bounded(1, kInfinity, rows), RowsOf({{{0, 0.3}}, {{9, 0.4}}, {}}));
}

TEST(BoundColumnsTest, OfEqualEntriesKeepsThoseOfTheEarlierRows) {
  const ApprRows rows = RowsOf({{{2, 0.25}}, {{2, 0.25}}, {{2, 0.5}}, {{2, 0.25}}});
  ExpectSame(Bounded(2, kInfinity, rows), RowsOf({{{2, 0.25}}, {}, {{2, 0.5}}, {}}));
  ExpectSame(Bounded(3, kInfinity, rows), RowsOf({{{2, 0.25}}, {{2, 0.25}}, {{2, 0.5}}, {}}));
}

TEST(BoundColumnsTest, NegativeEntriesCountByTheirSize) {
  const ApprRows rows = RowsOf({{{2, -0.5}}, {{2, 0.4}}, {{2, -0.4}}, {{2, 0.6}}});
  ExpectSame(Bounded(2, kInfinity, rows), RowsOf({{{2, -0.5}}, {}, {}, {{2, 0.6}}}));
  ExpectSame(Bounded(3, kInfinity, rows), RowsOf({{{2, -0.5}}, {{2, 0.4}}, {}, {{2, 0.6}}}));
}

TEST(BoundColumnsTest, ScalesAColumnDownToTau) {
  const ApprRows rows = RowsOf({{{2, 0.5}, {3, 0.25}}, {{2, -1.5}}});
  ExpectSame(Bounded(kNoCap, 1, rows), RowsOf({{{2, 0.25}, {3, 0.25}}, {{2, -0.75}}}));
}

TEST(BoundColumnsTest, ScalesWhatTheCapHasLeft) {
  const ApprRows rows = RowsOf({{{2, 1.0}}, {{2, 3.0}}, {{2, 2.0}}});
  ExpectSame(Bounded(2, 2.5, rows), RowsOf({{}, {{2, 1.5}}, {{2, 1.0}}}));
  ExpectSame(Bounded(1, 3, rows), RowsOf({{}, {{2, 3.0}}, {}}));
}

TEST(BoundColumnsTest, LeavesWhatIsWithinTheBoundsAsItWas) {
  const ApprRows rows = RowsOf({{{0, 0.1}, {1, -0.3}}, {}, {{0, 0.2}, {9, 1.0}}, {{1, 0.7}}});
  ExpectSame(Bounded(2, 1, rows), rows);
  ExpectSame(Bounded(kNoCap, kInfinity, rows), rows);
}

TEST(BoundColumnsTest, LeavesColumnsOfZerosAsTheyWere) {
  const ApprRows rows = RowsOf({{{0, 0.0}}, {{0, -0.0}}});
  ExpectSame(Bounded(2, 1e-300, rows), rows);
}

TEST(BoundColumnsTest, HasNothingToDoWithoutRowsOrEntries) {
  ExpectSame(Bounded(1, 1, RowsOf({})), RowsOf({}));
  ExpectSame(Bounded(1, 1, RowsOf({{}, {}})), RowsOf({{}, {}}));
}

TEST(BoundColumnsTest, RefusesBoundsThatAreNone) {
  for (const int64_t max_occurrence : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    ApprRows rows = RowsOf({{{0, 1.0}}});
    EXPECT_EQ(Summary(BoundColumns(max_occurrence, 1, rows)), "INVALID_ARGUMENT INVALID_FIELD field=max_occurrence");
    ExpectSame(rows, RowsOf({{{0, 1.0}}}));
  }
  for (const double tau : {0.0, -1.0, kNan, -kInfinity}) {
    ApprRows rows = RowsOf({{{0, 1.0}}});
    EXPECT_EQ(Summary(BoundColumns(1, tau, rows)), "INVALID_ARGUMENT INVALID_FIELD field=tau") << tau;
    ExpectSame(rows, RowsOf({{{0, 1.0}}}));
  }
}

ApprRows RandomRows(int64_t row_count, int64_t k, RandomSource& random) {
  constexpr int64_t kColumns = 30;
  std::vector<std::vector<std::pair<int32_t, double>>> entries(static_cast<size_t>(row_count));
  for (auto& row : entries) {
    std::map<int32_t, double> ascending;
    std::vector<double> noise(static_cast<size_t>(k));
    FillGaussian(random, noise);
    const std::vector<int64_t> columns = SampleWithoutReplacement(random, kColumns, k);
    for (size_t i = 0; i < noise.size(); ++i) {
      // Coarse values, so that some are equal.
      ascending[static_cast<int32_t>(columns[i])] = std::round(8 * noise[i]) / 8;
    }
    row.assign(ascending.begin(), ascending.end());
  }
  ApprRows rows = RowsOf(entries);
  rows.node_count = kColumns;
  return rows;
}

struct Column {
  int64_t count = 0;
  double norm = 0;
};

std::map<int32_t, Column> ColumnsOf(const ApprRows& rows) {
  std::map<int32_t, Column> columns;
  for (size_t i = 0; i < rows.columns.size(); ++i) {
    ++columns[rows.columns[i]].count;
    columns[rows.columns[i]].norm += std::abs(rows.values[i]);
  }
  return columns;
}

TEST(BoundColumnsTest, BoundsEveryColumnOfRandomRows) {
  FixedRandom random(1);
  for (int round = 0; round < 50; ++round) {
    const ApprRows rows = RandomRows(200, 1 + round % 20, random);
    for (const int64_t max_occurrence : {1, 2, 7, 1000}) {
      for (const double tau : {1e-3, 1.0, 5.0, kInfinity}) {
        const ApprRows bounded = Bounded(max_occurrence, tau, rows);
        ASSERT_EQ(bounded.offsets.size(), rows.offsets.size());
        ASSERT_EQ(bounded.offsets.back(), static_cast<int64_t>(bounded.columns.size()));
        ASSERT_EQ(bounded.columns.size(), bounded.values.size());
        std::map<int32_t, Column> before = ColumnsOf(rows);
        for (const auto& [column, after] : ColumnsOf(bounded)) {
          EXPECT_EQ(after.count, std::min(before[column].count, max_occurrence));
          EXPECT_LE(after.norm, tau * (1 + 1e-12));
          before.erase(column);
        }
        EXPECT_THAT(before, IsEmpty()) << "a column vanished";
      }
    }
  }
}

TEST(BoundColumnsTest, ASecondTimeChangesNothing) {
  FixedRandom random(2);
  const ApprRows once = Bounded(5, kInfinity, RandomRows(300, 6, random));
  ExpectSame(Bounded(5, kInfinity, once), once);
}

TEST(BoundColumnsTest, KeepsColumnsOfARowAscending) {
  FixedRandom random(3);
  const ApprRows bounded = Bounded(3, 0.5, RandomRows(100, 15, random));
  for (size_t row = 0; row + 1 < bounded.offsets.size(); ++row) {
    for (auto i = static_cast<size_t>(bounded.offsets[row]) + 1; i < static_cast<size_t>(bounded.offsets[row + 1]);
         ++i) {
      EXPECT_LT(bounded.columns[i - 1], bounded.columns[i]);
    }
  }
}

}  // namespace
}  // namespace dpar
