#include "client/cli/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "client/cli/errors.h"

namespace dpar {
namespace {

TEST(InterruptTest, TheFirstCallsBackAndAfterItsLifeSignalsAreAsBefore) {
  std::atomic<int> calls = 0;
  {
    const Interrupt interrupt([&calls] { ++calls; });
    ::kill(::getpid(), SIGINT);
    for (int i = 0; i < 6000 && calls == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EXIT(::kill(::getpid(), SIGINT), ::testing::KilledBySignal(SIGINT), "");
}

// Whatever the first set in motion may take its time; the second does not wait for it.
TEST(InterruptTest, TheSecondEndsTheProcess) {
  const auto interrupt_twice = [] {
    std::atomic<bool> called = false;
    const Interrupt interrupt([&called] { called = true; });
    ::kill(::getpid(), SIGINT);
    while (!called) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(::getpid(), SIGINT);
    std::this_thread::sleep_for(std::chrono::minutes(2));
  };
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(interrupt_twice(), ::testing::ExitedWithCode(kInterrupted), "");
}

}  // namespace
}  // namespace dpar
