// Wall clocks that jump under running jobs, and servers of a fleet whose clocks are minutes apart. DPAR_CRASH_JUMPS
// says how many jumps; DPAR_CRASH_SEED repeats what a run drew.
#include "absl/time/clock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "server/store/message_text.h"
#include "tests/crash/crash_site.h"
#include "tests/crash/faulty_clock.h"
#include "tests/crash/load.h"
#include "tests/crash/preload.h"

namespace dpar::crash {
namespace {

constexpr int64_t kShortJumps = 4;
// Within the week for which requests and uploads are remembered.
constexpr absl::Duration kJumps[] = {absl::Hours(24),    absl::Hours(-24),  absl::Hours(48),   absl::Hours(1),
                                     absl::Minutes(-10), absl::Seconds(30), absl::Seconds(-30)};

absl::Time TimeOf(const google::protobuf::Timestamp& time) { return absl::FromUnixMicros(ToMicroseconds(time)); }

class ClockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCanPreload) {
      GTEST_SKIP() << kCannotPreload;
    }
  }
};

// The fault that was found first: a day ahead and back again, under one running job, and nothing renewed its lease.
TEST_F(ClockTest, AJobOutlivesADayAheadAndBackInItsFirstAttempt) {
  FaultyClock clock;
  CrashSite site(nullptr, {"--lease-seconds", "2"});
  ASSERT_TRUE(site.Start("dpard", clock.EnvironmentFor()));
  const CrashSite::Tenant tenant = site.NewTenant(/*seed=*/5);
  const std::string slow = site.Submit(tenant, LongJob(tenant.dataset));
  absl::SleepFor(absl::Seconds(1));
  clock.Set(absl::Hours(24));
  absl::SleepFor(absl::Seconds(3));
  const std::string ahead = site.Submit(tenant, QuickJob(tenant.dataset));
  clock.Set(absl::ZeroDuration());
  absl::SleepFor(absl::Seconds(3));
  const std::string after = site.Submit(tenant, QuickJob(tenant.dataset));
  site.Settle("after a day ahead and back");
  for (const std::string& job : {slow, ahead, after}) {
    EXPECT_EQ(site.snapshot().jobs.at(job).stored.job.state(), v1::Job::SUCCEEDED) << job;
    EXPECT_EQ(site.snapshot().jobs.at(job).stored.job.attempts(), 1) << job;
  }
  EXPECT_GT(TimeOf(site.snapshot().jobs.at(ahead).stored.job.create_time()), absl::Now() + absl::Hours(23))
      << "the clock did not jump";
  EXPECT_LT(TimeOf(site.snapshot().jobs.at(after).stored.job.end_time()), absl::Now() + absl::Minutes(1));
}

class JumpTest : public ClockTest {
 protected:
  // Jumps under load; every third time the server is killed and starts with what the jump left in the store.
  void JumpOften(dpar::testing::PrivatePostgres* postgres) {
    const int64_t jumps = FromEnvironment("DPAR_CRASH_JUMPS", kShortJumps);
    const int64_t seed = FromEnvironment("DPAR_CRASH_SEED", absl::ToUnixMicros(absl::Now()));
    std::cout << jumps << " jumps, DPAR_CRASH_SEED=" << seed << std::endl;
    dpar::testing::FixedRandom random(static_cast<uint64_t>(seed));
    FaultyClock clock;
    CrashSite site(postgres, {"--lease-seconds", "2"});
    ASSERT_TRUE(site.Start("dpard", clock.EnvironmentFor()));
    Load load(site, random);
    for (int64_t done = 1; done <= jumps && !HasFailure(); ++done) {
      const bool back = UniformBelow(random, 3) == 0;
      clock.Set(back ? absl::ZeroDuration() : kJumps[UniformBelow(random, std::size(kJumps))]);
      absl::SleepFor(absl::Milliseconds(500 + UniformBelow(random, 2'500)));
      if (done % 3 == 0) {
        site.server().Kill();
        site.Check(Rest::kInterrupted, absl::StrCat("after jump ", done));
        ASSERT_TRUE(site.Start("dpard", clock.EnvironmentFor()));
      }
    }
    clock.Set(absl::ZeroDuration());
    load.Stop();
    site.Settle(absl::StrCat("after ", jumps, " jumps"));
    std::cout << jumps << " jumps; " << load.Describe() << std::endl;
  }
};

TEST_F(JumpTest, JumpsUnderLoadLoseNothingAndDoubleNothingOnSqlite) { JumpOften(nullptr); }

TEST_F(JumpTest, JumpsUnderLoadLoseNothingAndDoubleNothingOnPostgres) {
  if (SharedPostgres() == nullptr) {
    GTEST_SKIP() << "PostgreSQL is not installed";
  }
  JumpOften(SharedPostgres());
}

TEST_F(ClockTest, ServersMinutesApartLoseNoJobAndPostNoneTwice) {
  if (SharedPostgres() == nullptr) {
    GTEST_SKIP() << "PostgreSQL is not installed";
  }
  dpar::testing::FixedRandom random(11);
  const FaultyClock behind(absl::Minutes(-7));
  const FaultyClock ahead(absl::Minutes(9));
  CrashSite site(SharedPostgres(), {"--lease-seconds", "2"});
  ASSERT_TRUE(site.Start("dpard", behind.EnvironmentFor()));
  e2e::TestServer second({"--lease-seconds", "2", "--max-attempts", absl::StrCat(kMaxAttempts), "--concurrent-jobs",
                          "2", "--store", site.postgres_uri()},
                         site.server().data_directory());
  ASSERT_TRUE(second.Start("dpard", ahead.EnvironmentFor()));
  Load load(site, random);
  absl::SleepFor(absl::Seconds(4));
  // What a dead server held, the other takes over, and no sooner than the lease ended.
  second.Kill();
  absl::SleepFor(absl::Seconds(3));
  ASSERT_TRUE(second.Start("dpard", ahead.EnvironmentFor()));
  absl::SleepFor(absl::Seconds(3));
  load.Stop();
  EXPECT_EQ(second.Terminate(), std::optional<int>(0));
  site.Settle("of two servers sixteen minutes apart");
  EXPECT_EQ(site.snapshot().CountJobs(v1::Job::FAILED), 0);
  std::cout << "sixteen minutes apart; " << load.Describe() << std::endl;
}

}  // namespace
}  // namespace dpar::crash
