#include "server/services/task_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/mutex.h"

namespace dpar {
namespace {

TEST(TaskLineTest, TasksAreDoneInTheirOrderAndTheLastBeforeTheEnd) {
  std::vector<int> done;
  {
    TaskLine line(100);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(line.Add([&done, i] { done.push_back(i); }));
    }
  }
  ASSERT_EQ(done.size(), 100U);
  EXPECT_EQ(done.front(), 0);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(TaskLineTest, WhatDoesNotFitIsRefusedUntilSomethingWasDone) {
  Notification started;
  Notification go_on;
  Notification done;
  int refused = 0;
  TaskLine line(2);
  ASSERT_TRUE(line.Add([&] {
    started.Notify();
    go_on.WaitForNotification();
  }));
  started.WaitForNotification();
  EXPECT_TRUE(line.Add([] {}));
  EXPECT_TRUE(line.Add([&] { done.Notify(); }));
  EXPECT_FALSE(line.Add([&] { ++refused; }));
  go_on.Notify();
  done.WaitForNotification();
  EXPECT_TRUE(line.Add([] {}));
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace dpar
