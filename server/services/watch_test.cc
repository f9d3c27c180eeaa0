#include "server/services/watch.h"

#include <gtest/gtest.h>

#include <functional>

#include "absl/time/clock.h"

namespace dpar {
namespace {

v1::Job JobIn(v1::Job::State state) {
  v1::Job job;
  job.set_state(state);
  job.mutable_plan()->set_steps(40);
  job.mutable_plan()->set_epsilon(1.5);
  return job;
}

TEST(DescribeProgressTest, AQueuedJobHasNoCounters) {
  const v1::WatchJobResponse message = DescribeProgress(JobIn(v1::Job::QUEUED), std::nullopt, absl::Now());
  EXPECT_EQ(message.stage(), "queued");
  EXPECT_EQ(message.total(), 0);
  EXPECT_FALSE(message.has_rate());
  EXPECT_FALSE(message.terminal());
}

TEST(DescribeProgressTest, ARunningJobShowsItsStageRateAndTimeLeft) {
  const absl::Time start = absl::FromUnixSeconds(1'000);
  const Progress progress{"training", 10, 40, start, 0.25};
  const v1::WatchJobResponse message = DescribeProgress(JobIn(v1::Job::RUNNING), progress, start + absl::Seconds(5));
  EXPECT_EQ(message.stage(), "training");
  EXPECT_EQ(message.completed(), 10);
  EXPECT_EQ(message.total(), 40);
  EXPECT_DOUBLE_EQ(message.rate(), 2);
  EXPECT_EQ(message.eta().seconds(), 15);
  EXPECT_DOUBLE_EQ(message.epsilon_so_far(), 0.25);
  EXPECT_FALSE(message.terminal());
}

TEST(DescribeProgressTest, AStageWithoutATotalHasNoRate) {
  const absl::Time start = absl::FromUnixSeconds(1'000);
  const v1::WatchJobResponse message =
      DescribeProgress(JobIn(v1::Job::RUNNING), Progress{"loading", 0, 0, start, 0}, start + absl::Seconds(5));
  EXPECT_EQ(message.stage(), "loading");
  EXPECT_FALSE(message.has_rate());
  EXPECT_FALSE(message.has_eta());
}

TEST(DescribeProgressTest, ARunningJobThatSaidNothingYetIsLoading) {
  EXPECT_EQ(DescribeProgress(JobIn(v1::Job::RUNNING), std::nullopt, absl::Now()).stage(), "loading");
}

TEST(DescribeProgressTest, AJobThatEndedIsTerminalWhateverTheBoardStillSays) {
  const Progress stale{"training", 10, 40, absl::FromUnixSeconds(0), 0.25};
  const v1::WatchJobResponse succeeded = DescribeProgress(JobIn(v1::Job::SUCCEEDED), stale, absl::Now());
  EXPECT_TRUE(succeeded.terminal());
  EXPECT_EQ(succeeded.stage(), "succeeded");
  EXPECT_EQ(succeeded.completed(), 40);
  EXPECT_DOUBLE_EQ(succeeded.epsilon_so_far(), 1.5);
  for (const v1::Job::State state : {v1::Job::FAILED, v1::Job::CANCELLED}) {
    const v1::WatchJobResponse message = DescribeProgress(JobIn(state), stale, absl::Now());
    EXPECT_TRUE(message.terminal());
    EXPECT_EQ(message.completed(), 0);
    EXPECT_EQ(message.epsilon_so_far(), 0);
  }
}

TEST(SaysTheSameTest, TimesAndRatesAreNoNews) {
  const v1::WatchJobResponse a = DescribeProgress(
      JobIn(v1::Job::RUNNING), Progress{"training", 10, 40, absl::FromUnixSeconds(0), 0.25}, absl::FromUnixSeconds(5));
  v1::WatchJobResponse b = a;
  b.set_sequence(7);
  b.mutable_time()->set_seconds(9);
  b.set_rate(1);
  b.mutable_eta()->set_seconds(3);
  EXPECT_TRUE(SaysTheSame(a, b));
  const std::function<void(v1::WatchJobResponse&)> changes[] = {[](v1::WatchJobResponse& m) { m.set_state(v1::Job::QUEUED); },
                                                                [](v1::WatchJobResponse& m) { m.set_stage("saving"); },
                                                                [](v1::WatchJobResponse& m) { m.set_completed(11); },
                                                                [](v1::WatchJobResponse& m) { m.set_total(41); },
                                                                [](v1::WatchJobResponse& m) { m.set_epsilon_so_far(0.5); },
                                                                [](v1::WatchJobResponse& m) { m.set_terminal(true); }};
  for (const auto& change : changes) {
    v1::WatchJobResponse other = a;
    change(other);
    EXPECT_FALSE(SaysTheSame(a, other)) << other.ShortDebugString();
  }
}

}  // namespace
}  // namespace dpar
