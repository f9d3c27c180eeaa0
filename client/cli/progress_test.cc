#include "client/cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/cli/format.h"
#include "client/cli/watching.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ProgressState Training(int64_t completed) {
  ProgressState state;
  state.stage = "training";
  state.completed = completed;
  state.total = 100;
  state.amount = absl::StrCat(completed, "/100 steps");
  state.rate = "41.2/s";
  state.eta = absl::Seconds(75);
  state.note = "epsilon 0.780";
  return state;
}

TEST(RenderProgressTest, EverythingFitsEightyColumns) {
  const std::string line = RenderProgress(Training(50), 80, false);
  EXPECT_EQ(line, "training [########---------]  50%  ETA 1:15  50/100 steps  epsilon 0.780  41.2/s");
  EXPECT_LE(DisplayWidth(line), 80);
}

TEST(RenderProgressTest, NarrowLinesGiveUpFiguresFirst) {
  for (int width = 1; width <= 200; ++width) {
    EXPECT_LE(DisplayWidth(RenderProgress(Training(50), width, true)), width);
  }
  const std::string line = RenderProgress(Training(50), 60, false);
  EXPECT_THAT(line, HasSubstr("ETA 1:15"));
  EXPECT_THAT(line, Not(HasSubstr("41.2/s")));
}

TEST(RenderProgressTest, AStageWithoutAMeasureHasNoBar) {
  ProgressState state;
  state.stage = "loading";
  EXPECT_EQ(RenderProgress(state, 80, true), "loading");
}

class ProgressLineTest : public ::testing::Test {
 protected:
  ProgressLine::Clock clock() {
    return [this] { return now_; };
  }
  std::ostringstream err_;
  Terminal terminal_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(ProgressLineTest, ElsewhereItWritesStagesAndQuartersOnly) {
  {
    ProgressLine line(err_, terminal_, clock());
    ProgressState queued;
    queued.stage = "queued";
    line.Update(queued);
    line.Update(queued);
    for (int64_t step = 0; step <= 100; ++step) {
      line.Update(Training(step));
      now_ += absl::Seconds(1);
    }
  }
  EXPECT_EQ(err_.str(),
            "queued\n"
            "training 0%, 0/100 steps, epsilon 0.780\n"
            "training 25%, 25/100 steps, epsilon 0.780\n"
            "training 50%, 50/100 steps, epsilon 0.780\n"
            "training 75%, 75/100 steps, epsilon 0.780\n"
            "training 100%, 100/100 steps, epsilon 0.780\n");
}

TEST_F(ProgressLineTest, WhatTakesNoTimeIsOneLine) {
  {
    ProgressLine line(err_, terminal_, clock());
    for (int64_t step = 0; step <= 100; ++step) {
      line.Update(Training(step));
    }
  }
  EXPECT_EQ(err_.str(), "training 0%, 0/100 steps, epsilon 0.780\n");
}

TEST_F(ProgressLineTest, OnATerminalOneLineIsRedrawnAndTheLastStateStays) {
  terminal_.err_is_terminal = true;
  {
    ProgressLine line(err_, terminal_, clock());
    for (int64_t step = 0; step <= 100; ++step) {
      line.Update(Training(step));
      now_ += absl::Milliseconds(10);
    }
  }
  const std::string text = err_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 12);
  EXPECT_THAT(text, ::testing::EndsWith("100/100 steps  epsilon 0.780  41.2/s\n"));
}

TEST_F(ProgressLineTest, ProseDoesNotTearTheBar) {
  terminal_.err_is_terminal = true;
  ProgressLine line(err_, terminal_, clock());
  line.Update(Training(1));
  line.Say("lost the server");
  EXPECT_THAT(err_.str(), HasSubstr("\r\x1b[Jlost the server\n\r\x1b[Jtraining"));
}

TEST_F(ProgressLineTest, ALineThatANarrowerWindowHasBrokenIsTakenOffAsAWhole) {
  terminal_.err_is_terminal = true;
  int width = 80;
  terminal_.width = [&width] { return width; };
  ProgressLine line(err_, terminal_, clock());
  line.Update(Training(1));
  width = 30;
  now_ += absl::Seconds(1);
  err_.str("");
  line.Update(Training(2));
  // 77 columns are three rows of 30; the cursor is in the last.
  EXPECT_THAT(err_.str(), ::testing::StartsWith("\x1b[2A\r\x1b[Jtraining"));
}

TEST(ProgressOfTest, ShowsPublicCountersOfTheJob) {
  v1::WatchJobResponse event;
  event.set_stage("training");
  event.set_completed(30);
  event.set_total(90);
  event.set_rate(12.34);
  event.mutable_eta()->set_seconds(5);
  event.set_epsilon_so_far(0.5);
  const ProgressState state = ProgressOf(event);
  EXPECT_EQ(state.amount, "30/90 steps");
  EXPECT_EQ(state.rate, "12.3/s");
  EXPECT_EQ(state.eta, absl::Seconds(5));
  EXPECT_EQ(state.note, "epsilon 0.500");
}

}  // namespace
}  // namespace dpar
