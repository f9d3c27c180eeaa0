#include "server/worker/training_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kJob[] = "tenants/acme/jobs/j";

class TrainingProgressTest : public ::testing::Test {
 protected:
  TrainingProgressTest() {
    board_.Listen([this](const std::string&) { ++updates_; });
  }

  Progress Shown() { return board_.Get(kJob).value_or(Progress()); }
  [[nodiscard]] int64_t Updates() const { return updates_; }
  void RunSteps(int64_t first, int64_t last, int64_t total, absl::Duration step) {
    for (int64_t i = first; i <= last; ++i) {
      now_ += step;
      progress_.Report(TrainingStage::kTraining, i, total);
    }
  }

  ProgressBoard board_;
  int64_t updates_ = 0;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  absl::Duration epsilon_takes_;
  std::vector<int64_t> asked_;
  EpsilonSource epsilon_ = {[this](int64_t steps) {
                              asked_.push_back(steps);
                              now_ += epsilon_takes_;
                              return 0.001 * static_cast<double>(steps);
                            },
                            std::nullopt};
  // Computes epsilon at once, on the fake clock.
  TrainingProgress progress_{board_, kJob, epsilon_, [this] { return now_; }, std::launch::deferred};
};

TEST_F(TrainingProgressTest, AStageIsShownWhenItBeginsWithoutCountersWhereItHasNone) {
  progress_.Report(TrainingStage::kStructure, 0, 0);
  EXPECT_EQ(Shown().stage, "structure");
  EXPECT_EQ(Shown().total, 0);
  EXPECT_EQ(Shown().stage_start, now_);
  now_ += absl::Seconds(5);
  progress_.Report(TrainingStage::kTraining, 0, 40);
  EXPECT_EQ(Shown().stage, "training");
  EXPECT_EQ(Shown().total, 40);
  EXPECT_EQ(Shown().stage_start, now_);
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(TrainingProgressTest, StepsAreShownAtMostTwentyTimesASecondAndTheLastOneAlways) {
  progress_.Report(TrainingStage::kTraining, 0, 100'000);
  RunSteps(1, 99'999, 100'000, absl::Microseconds(20));
  // Two seconds, and the beginning.
  EXPECT_GE(Updates(), 39);
  EXPECT_LE(Updates(), 41);
  RunSteps(100'000, 100'000, 100'000, absl::Microseconds(20));
  EXPECT_EQ(Shown().completed, 100'000);
}

TEST_F(TrainingProgressTest, ACheapEpsilonIsAskedForFiveTimesASecondAtMost) {
  progress_.Report(TrainingStage::kTraining, 0, 1000);
  RunSteps(1, 500, 1000, absl::Milliseconds(10));
  EXPECT_GE(asked_.size(), 20U);
  EXPECT_LE(asked_.size(), 25U);
  EXPECT_GE(asked_.front(), 20);
  EXPECT_DOUBLE_EQ(Shown().epsilon_so_far, 0.001 * static_cast<double>(asked_.back()));
}

TEST_F(TrainingProgressTest, ADearEpsilonTakesATenthOfTheTime) {
  epsilon_takes_ = absl::Seconds(2);
  progress_.Report(TrainingStage::kTraining, 0, 100'000);
  const absl::Time start = now_;
  RunSteps(1, 10'000, 100'000, absl::Milliseconds(10));
  const absl::Duration spent = epsilon_takes_ * static_cast<int64_t>(asked_.size());
  // The first comes before its price is known.
  EXPECT_LE(spent - epsilon_takes_, 0.1 * (now_ - start));
  EXPECT_GE(asked_.size(), 5U);
}

TEST_F(TrainingProgressTest, AShortRunAsksForTheLastStepOnly) {
  progress_.Report(TrainingStage::kTraining, 0, 90);
  RunSteps(1, 90, 90, absl::Milliseconds(10));
  EXPECT_THAT(asked_, ElementsAre(90));
  EXPECT_DOUBLE_EQ(Shown().epsilon_so_far, 0.09);
}

TEST_F(TrainingProgressTest, TheCostOfAllStepsIsNotComputedWhenItIsKnown) {
  epsilon_.of_all = 0.5;
  TrainingProgress progress(
      board_, kJob, epsilon_, [this] { return now_; }, std::launch::deferred);
  progress.Report(TrainingStage::kTraining, 0, 2);
  progress.Report(TrainingStage::kTraining, 1, 2);
  progress.Report(TrainingStage::kTraining, 2, 2);
  EXPECT_DOUBLE_EQ(Shown().epsilon_so_far, 0.5);
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(TrainingProgressTest, NobodyWaitsForAnEpsilonThatTakesLong) {
  Notification released;
  const EpsilonSource slow = {[&](int64_t /*steps*/) {
                                released.WaitForNotification();
                                return 0.25;
                              },
                              std::nullopt};
  std::future<TrainingProgress::Epsilon> unfinished;
  {
    TrainingProgress progress(board_, kJob, slow);
    progress.Report(TrainingStage::kTraining, 0, 2);
    progress.Report(TrainingStage::kTraining, 2, 2);
    EXPECT_EQ(Shown().completed, 2);
    EXPECT_EQ(Shown().epsilon_so_far, 0);
    progress.Report(TrainingStage::kEvaluating, 0, 0);
    EXPECT_EQ(Shown().stage, "evaluating");
    unfinished = progress.TakeUnfinished();
  }
  released.Notify();
  EXPECT_EQ(unfinished.get().value, 0.25);
}

TEST_F(TrainingProgressTest, WhatTrainingCostStandsWhileTheModelIsEvaluated) {
  progress_.Report(TrainingStage::kTraining, 0, 3);
  RunSteps(1, 3, 3, absl::Milliseconds(10));
  progress_.Report(TrainingStage::kEvaluating, 0, 0);
  EXPECT_EQ(Shown().stage, "evaluating");
  EXPECT_EQ(Shown().total, 0);
  EXPECT_DOUBLE_EQ(Shown().epsilon_so_far, 0.003);
}

TEST(ProgressBoardTest, AStageIsToldOfOnceWhenTheNextBeginsAndTheLastWhenTheJobGoes) {
  std::vector<std::pair<std::string, absl::Duration>> told;
  ProgressBoard board([&](const Progress& left, absl::Duration took) { told.emplace_back(left.stage, took); });
  const absl::Time start = absl::Now() - absl::Hours(2);
  board.Update("job", {"loading", 0, 0, start, 0});
  board.Update("other", {"loading", 0, 0, start, 0});
  board.Update("job", {"training", 0, 9, start + absl::Seconds(3), 0});
  board.Update("job", {"training", 5, 9, start + absl::Seconds(3), 0.5});
  EXPECT_THAT(told, ElementsAre(std::pair<std::string, absl::Duration>("loading", absl::Seconds(3))));
  board.Remove("job");
  board.Remove("job");
  board.Remove("unknown");
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[1].first, "training");
  EXPECT_GE(told[1].second, absl::Hours(2) - absl::Seconds(3));
}

}  // namespace
}  // namespace dpar
