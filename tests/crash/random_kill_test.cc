// Servers that are killed at random moments under load. DPAR_CRASH_KILLS says how often on each engine; DPAR_CRASH_SEED
// repeats what a run drew, though not when the machine did what.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "tests/crash/crash_site.h"
#include "tests/crash/load.h"

namespace dpar::crash {
namespace {

constexpr int64_t kShortKills = 8;
constexpr int64_t kKillsBetweenLines = 25;
// A server lives for up to that long after it listens, or dies before it does.
constexpr int64_t kLongestLifeMilliseconds = 1500;
constexpr int64_t kStartMilliseconds = 400;

class RandomKillTest : public ::testing::Test {
 protected:
  void CrashOften(dpar::testing::PrivatePostgres* postgres) {
    const int64_t kills = FromEnvironment("DPAR_CRASH_KILLS", kShortKills);
    const int64_t seed = FromEnvironment("DPAR_CRASH_SEED", absl::ToUnixMicros(absl::Now()));
    std::cout << kills << " kills, DPAR_CRASH_SEED=" << seed << std::endl;
    dpar::testing::FixedRandom random(static_cast<uint64_t>(seed));
    CrashSite site(postgres, {"--lease-seconds", "2"});
    ASSERT_TRUE(site.Start());
    Load load(site, random);
    int64_t done = 0;
    int64_t early = 0;
    while (done < kills && !HasFailure()) {
      Pause(random, kLongestLifeMilliseconds);
      site.server().Kill();
      site.Check(Rest::kInterrupted, absl::StrCat("after kill ", ++done));
      if (done < kills && UniformBelow(random, 5) == 0) {
        site.server().Launch();
        Pause(random, kStartMilliseconds);
        site.server().Kill();
        ++early;
        site.Check(Rest::kInterrupted, absl::StrCat("after kill ", ++done, ", while it started"));
      }
      if (done % kKillsBetweenLines == 0) {
        std::cout << done << " kills, " << site.snapshot().jobs.size() << " jobs" << std::endl;
      }
      ASSERT_TRUE(site.Start());
    }
    load.Stop();
    site.Settle(absl::StrCat("after ", done, " kills"));
    EXPECT_EQ(done, kills);
    std::cout << done << " kills, " << early << " of them while the server started; " << load.Describe() << std::endl;
  }

 private:
  static void Pause(RandomSource& random, int64_t longest_milliseconds) {
    absl::SleepFor(absl::Milliseconds(1 + UniformBelow(random, static_cast<uint64_t>(longest_milliseconds))));
  }
};

TEST_F(RandomKillTest, KillsAtRandomMomentsLoseNothingAndDoubleNothingOnSqlite) { CrashOften(nullptr); }

TEST_F(RandomKillTest, KillsAtRandomMomentsLoseNothingAndDoubleNothingOnPostgres) {
  if (SharedPostgres() == nullptr) {
    GTEST_SKIP() << "PostgreSQL is not installed";
  }
  CrashOften(SharedPostgres());
}

}  // namespace
}  // namespace dpar::crash
