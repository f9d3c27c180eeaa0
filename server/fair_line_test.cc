#include "server/fair_line.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace dpar {
namespace {

bool Always() { return true; }

bool Runs(FairLine::Turn& turn) {
  int asked = 0;
  return turn.Await([&asked] { return ++asked < 3; }).ok();
}

TEST(FairLineTest, TenantsTakeTurnsHoweverManyOneHasWaiting) {
  FairLine line(1, 100);
  std::vector<std::unique_ptr<FairLine::Turn>> many;
  for (int i = 0; i < 10; ++i) many.push_back(std::make_unique<FairLine::Turn>(line, "many"));
  ASSERT_TRUE(Runs(*many[0]));
  auto one = std::make_unique<FairLine::Turn>(line, "one");
  EXPECT_FALSE(Runs(*one));
  EXPECT_FALSE(Runs(*many[1]));
  many[0].reset();
  EXPECT_FALSE(Runs(*many[1]));
  EXPECT_TRUE(Runs(*one));
  auto another = std::make_unique<FairLine::Turn>(line, "one");
  one.reset();
  EXPECT_FALSE(Runs(*another));
  EXPECT_FALSE(Runs(*many[2]));
  EXPECT_TRUE(Runs(*many[1]));
}

TEST(FairLineTest, ATenantLeavesHalfOfThePlacesToOthers) {
  FairLine line(2, 100);
  FairLine::Turn first(line, "a");
  ASSERT_TRUE(Runs(first));
  FairLine::Turn second(line, "a");
  EXPECT_FALSE(Runs(second));
  FairLine::Turn other(line, "b");
  EXPECT_TRUE(Runs(other));
  EXPECT_FALSE(Runs(second));
}

TEST(FairLineTest, ATurnThatNobodyWantsLeavesTheLine) {
  FairLine line(1, 100);
  auto first = std::make_unique<FairLine::Turn>(line, "a");
  ASSERT_TRUE(first->Await(Always).ok());
  {
    FairLine::Turn second(line, "b");
    EXPECT_EQ(second.Await([] { return false; }).code(), absl::StatusCode::kCancelled);
  }
  FairLine::Turn third(line, "c");
  first.reset();
  EXPECT_TRUE(third.Await(Always).ok());
}

TEST(FairLineTest, ALineThatIsTooLongIsWorthARetry) {
  FairLine line(1, 2);
  FairLine::Turn running(line, "a");
  ASSERT_TRUE(running.Await(Always).ok());
  FairLine::Turn second(line, "b");
  FairLine::Turn third(line, "c");
  FairLine::Turn fourth(line, "d");
  EXPECT_EQ(fourth.Await(Always).code(), absl::StatusCode::kUnavailable);
}

TEST(FairLineTest, AWaitingThreadRunsWhenItsTurnComes) {
  FairLine line(1, 100);
  auto first = std::make_unique<FairLine::Turn>(line, "a");
  ASSERT_TRUE(first->Await(Always).ok());
  FairLine::Turn second(line, "a");
  absl::Status status = absl::UnknownError("");
  std::thread waiting([&] { status = second.Await(Always); });
  absl::SleepFor(absl::Milliseconds(30));
  first.reset();
  waiting.join();
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace dpar
