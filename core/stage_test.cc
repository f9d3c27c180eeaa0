#include "core/stage.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/parallel.h"

namespace dpar {
namespace {

TEST(StageMeter, ReportsOnceForSoManyEntriesWhatIsDoneOfAll) {
  std::vector<double> told;
  const StageReport report = [&told](double fraction) {
    told.push_back(fraction);
    return true;
  };
  StageMeter meter(4 * kEntriesPerQuestion, report);
  StageMeter::Counter counter(meter);
  EXPECT_TRUE(counter.GoOn(kEntriesPerQuestion - 2));
  EXPECT_TRUE(told.empty());
  EXPECT_TRUE(counter.GoOn(0)) << "a piece without entries counts";
  EXPECT_TRUE(counter.GoOn(2 * kEntriesPerQuestion - 1));
  EXPECT_EQ(told, (std::vector<double>{0.25, 0.75}));
}

TEST(StageMeter, NeverTellsMoreThanAll) {
  double told = 0;
  const StageReport report = [&told](double fraction) {
    told = fraction;
    return true;
  };
  StageMeter meter(10, report);
  StageMeter::Counter counter(meter);
  EXPECT_TRUE(counter.GoOn(5 * kEntriesPerQuestion));
  EXPECT_EQ(told, 1.0);
}

TEST(StageMeter, WorkWithoutEntriesHasAFractionToo) {
  const StageReport report = [](double fraction) { return fraction == 1.0; };
  StageMeter meter(0, report);
  StageMeter::Counter counter(meter);
  EXPECT_TRUE(counter.GoOn(kEntriesPerQuestion));
}

TEST(StageMeter, ANoIsFinalForEveryThread) {
  std::atomic<int> asked = 0;
  const StageReport second_is_no = [&asked](double /*fraction*/) { return ++asked != 2; };
  StageMeter meter(1'000'000'000, second_is_no);
  EXPECT_FALSE(meter.stopped());
  StageMeter::Counter first(meter);
  StageMeter::Counter second(meter);
  EXPECT_TRUE(first.GoOn(kEntriesPerQuestion));
  EXPECT_FALSE(second.GoOn(kEntriesPerQuestion));
  EXPECT_FALSE(first.GoOn(kEntriesPerQuestion));
  EXPECT_TRUE(meter.stopped());
  EXPECT_EQ(asked, 2);
}

TEST(StageMeter, AddsUpWhatThreadsDidBetweenReports) {
  std::atomic<int> reports = 0;
  double last = 0;
  const StageReport report = [&](double fraction) {
    ++reports;
    last = fraction;
    return true;
  };
  constexpr int64_t kPieces = 64;
  StageMeter meter((kPieces + 1) * kEntriesPerQuestion, report);
  ParallelFor(kPieces, 4, [&](int /*worker*/, int64_t /*piece*/) {
    StageMeter::Counter counter(meter);
    counter.GoOn(kEntriesPerQuestion - 2);
  });
  EXPECT_EQ(reports, 0);
  StageMeter::Counter counter(meter);
  counter.GoOn(kEntriesPerQuestion + kPieces - 1);
  EXPECT_EQ(last, 1.0);
}

TEST(PartOf, IsAStretchOfTheWhole) {
  std::vector<double> told;
  const StageReport whole = [&told](double fraction) {
    told.push_back(fraction);
    return fraction < 0.75;
  };
  const StageReport part = PartOf(whole, 0.5, 1.0);
  EXPECT_TRUE(part(0));
  EXPECT_FALSE(part(0.5));
  EXPECT_FALSE(part(1));
  EXPECT_EQ(told, (std::vector<double>{0.5, 0.75, 1.0}));
}

}  // namespace
}  // namespace dpar
