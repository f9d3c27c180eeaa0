#include "server/services/stream_watchdog.h"

#include <gtest/gtest.h>

#include <atomic>

#include "core/error.h"
#include "core/mutex.h"

namespace dpar {
namespace {

// Looks are asked for by the test; those of the watchdog's own thread see the same clock and change nothing.
class StreamWatchdogTest : public ::testing::Test {
 protected:
  void Pass(absl::Duration duration) {
    now_ += absl::ToInt64Microseconds(duration);
    watchdog_.CancelIdle();
  }
  std::unique_ptr<StreamWatchdog::Handle> Enter(std::atomic<int>& cancels) {
    return watchdog_.Enter([&cancels] { ++cancels; });
  }

  std::atomic<int64_t> now_ = 1'000'000;
  StreamWatchdog watchdog_{absl::Seconds(60), [this] { return absl::FromUnixMicros(now_); }};
  std::atomic<int> cancels_ = 0;
  std::atomic<int> others_ = 0;
};

TEST_F(StreamWatchdogTest, ASilentStreamIsCancelledOnceWhenItsPatienceIsOver) {
  const auto handle = Enter(cancels_);
  Pass(absl::Seconds(59));
  EXPECT_EQ(cancels_, 0);
  EXPECT_TRUE(handle->status().ok());
  Pass(absl::Seconds(1));
  EXPECT_EQ(cancels_, 1);
  Pass(absl::Seconds(100));
  EXPECT_EQ(cancels_, 1);
}

TEST_F(StreamWatchdogTest, TheErrorNamesTheLimit) {
  const auto handle = Enter(cancels_);
  Pass(absl::Seconds(60));
  const absl::Status status = handle->status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_TRUE(GetErrorInfo(status).has_value());
  EXPECT_EQ(GetErrorInfo(status)->reason(), "LIMIT_EXCEEDED");
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("limit"), "max_idle_seconds");
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("maximum"), "60");
}

TEST_F(StreamWatchdogTest, WhoeverDoesSomethingIsLeftAlone) {
  const auto busy = Enter(cancels_);
  const auto silent = Enter(others_);
  for (int i = 0; i < 10; ++i) {
    Pass(absl::Seconds(59));
    busy->Touch();
  }
  EXPECT_EQ(cancels_, 0);
  EXPECT_TRUE(busy->status().ok());
  EXPECT_EQ(others_, 1);
  EXPECT_FALSE(silent->status().ok());
}

TEST_F(StreamWatchdogTest, AStreamThatEndedIsNotTouched) {
  Enter(cancels_).reset();
  Pass(absl::Seconds(100));
  EXPECT_EQ(cancels_, 0);
}

TEST(StreamWatchdogThreadTest, TheThreadLooksByItself) {
  StreamWatchdog watchdog(absl::Milliseconds(20));
  Notification cancelled;
  const auto handle = watchdog.Enter([&cancelled] { cancelled.Notify(); });
  EXPECT_TRUE(cancelled.WaitForNotificationWithTimeout(absl::Minutes(1)));
}

}  // namespace
}  // namespace dpar
