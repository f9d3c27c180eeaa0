#include "server/auth/failure_brake.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/mutex.h"

namespace dpar {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

absl::Status Failure() { return MakeError(absl::StatusCode::kUnauthenticated, v1::TOKEN_INVALID, "not valid"); }

// A brake that counts how often it slept.
class FailureBrakeTest : public ::testing::Test {
 protected:
  void Fail(FailureBrake& brake, const std::string& address, absl::Time now = kNow) {
    EXPECT_EQ(brake.Slow(address, Failure(), now), Failure());
  }
  FailureBrakeOptions Options() {
    return {.free_failures = 3, .sleep = [this](absl::Duration duration) {
              EXPECT_EQ(duration, absl::Seconds(1));
              ++sleeps_;
            }};
  }
  int sleeps_ = 0;
};

TEST_F(FailureBrakeTest, TheFirstFailuresAreAnsweredAtOnceAndLaterOnesWait) {
  FailureBrake brake(Options());
  for (const int expected : {0, 0, 0, 1, 2}) {
    Fail(brake, "ipv4:10.0.0.1");
    EXPECT_EQ(sleeps_, expected);
  }
  EXPECT_EQ(brake.failures(), 5);
}

TEST_F(FailureBrakeTest, AddressesAreCountedApart) {
  FailureBrake brake(Options());
  for (int i = 0; i < 4; ++i) {
    Fail(brake, "ipv4:10.0.0.1");
  }
  EXPECT_EQ(sleeps_, 1);
  Fail(brake, "ipv4:10.0.0.2");
  EXPECT_EQ(sleeps_, 1);
}

TEST_F(FailureBrakeTest, AMinuteLaterAllIsForgiven) {
  FailureBrake brake(Options());
  for (int i = 0; i < 4; ++i) {
    Fail(brake, "ipv4:10.0.0.1");
  }
  Fail(brake, "ipv4:10.0.0.1", kNow + absl::Seconds(59));
  EXPECT_EQ(sleeps_, 2);
  Fail(brake, "ipv4:10.0.0.1", kNow + absl::Seconds(60));
  EXPECT_EQ(sleeps_, 2);
}

TEST_F(FailureBrakeTest, FurtherAddressesThanItCountsShareOneCountUntilOthersAreForgotten) {
  FailureBrakeOptions options = Options();
  options.max_addresses = 5;
  FailureBrake brake(options);
  for (int i = 0; i < 5; ++i) {
    Fail(brake, absl::StrCat("ipv4:10.0.0.", i));
  }
  for (int i = 0; i < 3; ++i) {
    Fail(brake, absl::StrCat("ipv4:10.0.1.", i));
  }
  EXPECT_EQ(sleeps_, 0);
  Fail(brake, "ipv4:10.0.2.1");
  EXPECT_EQ(sleeps_, 1);
  EXPECT_EQ(brake.addresses(), 6U);
  Fail(brake, "ipv4:10.0.2.1", kNow + absl::Minutes(1));
  EXPECT_EQ(sleeps_, 1);
  EXPECT_EQ(brake.addresses(), 1U);
}

TEST_F(FailureBrakeTest, MemoryStaysBoundedWhateverComes) {
  FailureBrakeOptions options = Options();
  options.max_addresses = 5;
  FailureBrake brake(options);
  for (int i = 0; i < 1'000; ++i) {
    brake.Slow(absl::StrCat("ipv6:", i), Failure(), kNow + absl::Seconds(i)).IgnoreError();
    ASSERT_LE(brake.addresses(), 6U);
  }
  EXPECT_EQ(brake.failures(), 1'000);
}

TEST_F(FailureBrakeTest, OnlySoManyWaitAndTheOthersAreToldToComeBack) {
  Notification go;
  std::atomic<int> asleep = 0;
  FailureBrake brake({.free_failures = 1, .max_delayed = 2, .sleep = [&](absl::Duration) {
                        ++asleep;
                        go.WaitForNotification();
                      }});
  EXPECT_EQ(brake.Slow("ipv4:10.0.0.1", Failure(), kNow), Failure());
  std::vector<std::thread> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.emplace_back([&] { EXPECT_EQ(brake.Slow("ipv4:10.0.0.1", Failure(), kNow), Failure()); });
  }
  while (asleep < 2) {
    std::this_thread::yield();
  }
  const absl::Status refused = brake.Slow("ipv4:10.0.0.1", Failure(), kNow);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetErrorInfo(refused)->reason(), "SERVER_UNAVAILABLE");
  EXPECT_EQ(brake.Slow("ipv4:10.0.0.2", Failure(), kNow), Failure()) << "another address does not wait";
  go.Notify();
  for (std::thread& thread : waiting) {
    thread.join();
  }
  EXPECT_EQ(brake.Slow("ipv4:10.0.0.1", Failure(), kNow), Failure()) << "there is room again";
  EXPECT_EQ(brake.failures(), 6);
}

TEST_F(FailureBrakeTest, OneThatMayNotWaitIsToldToComeBack) {
  FailureBrake brake(Options());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(brake.Slow("ipv4:10.0.0.1", Failure(), kNow, /*may_wait=*/false), Failure());
  }
  const absl::Status told = brake.Slow("ipv4:10.0.0.1", Failure(), kNow, /*may_wait=*/false);
  EXPECT_EQ(told.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetErrorInfo(told)->metadata().at(kInsteadOf), GetErrorInfo(Failure())->reason())
      << "so that it is counted";
  EXPECT_EQ(sleeps_, 0);
  EXPECT_EQ(brake.failures(), 4);
}

TEST(PeerAddressTest, ThePortIsLeftOut) {
  EXPECT_EQ(PeerAddress("ipv4:10.0.0.1:50000"), "ipv4:10.0.0.1");
  EXPECT_EQ(PeerAddress("ipv4:10.0.0.1:50001"), "ipv4:10.0.0.1");
  EXPECT_EQ(PeerAddress("unix:/run/dpar.sock"), "local:");
  EXPECT_EQ(PeerAddress("unknown"), "local:");
  EXPECT_EQ(PeerAddress(""), "local:");
}

TEST(PeerAddressTest, OfIpv6TheNetworkCounts) {
  EXPECT_EQ(PeerAddress("ipv6:[2001:db8:1:2:3:4:5:6]:443"), "ipv6:20010db800010002");
  EXPECT_EQ(PeerAddress("ipv6:%5B2001:db8:1:2::9%5D:443"), "ipv6:20010db800010002");
  EXPECT_EQ(PeerAddress("ipv6:%5Bfe80::1%25eth0%5D:443"), "ipv6:fe80000000000000");
  EXPECT_EQ(PeerAddress("ipv6:%5B2001:db8:1:3::9%5D:443"), "ipv6:20010db800010003");
  EXPECT_EQ(PeerAddress("ipv6:[::ffff:10.0.0.1]:443"), "ipv4:10.0.0.1");
  EXPECT_EQ(PeerAddress("ipv6:nonsense:1"), "ipv6:");
}

}  // namespace
}  // namespace dpar
