// Power that goes under load, on both engines. DPAR_CRASH_CUTS says how often on each; DPAR_CRASH_SEED repeats what a
// run drew, though not when the machine did what.
#include "tests/crash/power_cut.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "tests/crash/crash_site.h"
#include "tests/crash/load.h"
#include "tests/crash/preload.h"

namespace dpar::crash {
namespace {

constexpr int64_t kShortCuts = 4;
constexpr int64_t kCutsBetweenLines = 10;
// At whichever sync of so many the power goes, or after this time.
constexpr uint64_t kMostSyncs = 250;
constexpr absl::Duration kLongestLife = absl::Seconds(2);
// One in so many writes and syncs fails, in every second life.
constexpr int64_t kFaults = 400;

class PowerCutTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCanPreload) {
      GTEST_SKIP() << kCannotPreload;
    }
  }
  void CutOften(dpar::testing::PrivatePostgres* postgres) {
    const int64_t cuts = FromEnvironment("DPAR_CRASH_CUTS", kShortCuts);
    const int64_t seed = FromEnvironment("DPAR_CRASH_SEED", absl::ToUnixMicros(absl::Now()));
    std::cout << cuts << " power cuts, DPAR_CRASH_SEED=" << seed << std::endl;
    dpar::testing::FixedRandom random(static_cast<uint64_t>(seed));
    CrashSite site(postgres, {"--lease-seconds", "2"});
    PowerCut power(site.server().data_directory());
    ASSERT_TRUE(site.Start("dpard", power.EnvironmentFor(0, 0, 0)));
    Load load(site, random);
    int64_t at_a_sync = 0;
    for (int64_t done = 1; done <= cuts && !HasFailure(); ++done) {
      if (done == 1) {
        absl::SleepFor(absl::Milliseconds(UniformBelow(random, 2'000)));
      } else {
        at_a_sync += site.server().AwaitEnd(kLongestLife).has_value() ? 1 : 0;
      }
      if (site.server().runs()) {
        site.server().Kill();
      }
      power.Apply(random, /*strict=*/UniformBelow(random, 2) == 0);
      site.Check(Rest::kInterrupted, absl::StrCat("after power cut ", done));
      if (done % kCutsBetweenLines == 0) {
        std::cout << done << " power cuts, " << site.snapshot().jobs.size() << " jobs" << std::endl;
      }
      if (done < cuts) {
        Begin(site, power, random);
      }
    }
    ASSERT_TRUE(site.Start("dpard", power.EnvironmentFor(0, 0, 0)));
    load.Stop();
    site.Settle(absl::StrCat("after ", cuts, " power cuts"));
    std::cout << cuts << " power cuts, " << at_a_sync << " of them at a sync, took " << power.lost_entries()
              << " directories back and " << power.lost_pages() << " pages; " << load.Describe() << std::endl;
  }

 private:
  // The next life: it may end before the server listens.
  static void Begin(CrashSite& site, const PowerCut& power, RandomSource& random) {
    const auto cut = static_cast<int64_t>(1 + UniformBelow(random, kMostSyncs));
    const int64_t faults = UniformBelow(random, 2) == 0 ? kFaults : 0;
    site.Restart("dpard", power.EnvironmentFor(cut, faults, UniformBits(random)));
  }
};

TEST_F(PowerCutTest, WhatWasPromisedSurvivesOnSqlite) { CutOften(nullptr); }

TEST_F(PowerCutTest, WhatWasPromisedSurvivesOnPostgres) {
  if (SharedPostgres() == nullptr) {
    GTEST_SKIP() << "PostgreSQL is not installed";
  }
  CutOften(SharedPostgres());
}

// Without it, the others could pass because nothing is ever lost.
TEST_F(PowerCutTest, ADiskThatDoesNotSyncLosesWhatWasPromised) {
  dpar::testing::FixedRandom random(1);
  CrashSite site(nullptr);
  PowerCut power(site.server().data_directory());
  ASSERT_TRUE(site.Start("dpard", power.EnvironmentFor(0, 0, 0)));
  site.NewTenant(/*seed=*/1);
  site.server().Kill();
  power.Apply(random, /*strict=*/true);
  site.Check(Rest::kInterrupted, "after a power cut on an honest disk");
  e2e::Environment lies = power.EnvironmentFor(0, 0, 0);
  lies.emplace("DPAR_TEST_LAYER_LIES", "1");
  ASSERT_TRUE(site.Start("dpard", lies));
  site.NewTenant(/*seed=*/2);
  site.server().Kill();
  power.Apply(random, /*strict=*/true);
  EXPECT_NONFATAL_FAILURE(site.Check(Rest::kInterrupted, "after a power cut on a lying disk"),
                          "was sealed and is lost");
}

}  // namespace
}  // namespace dpar::crash
