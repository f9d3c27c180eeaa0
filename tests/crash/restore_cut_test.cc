// Power that goes at any sync of a restore. DPAR_CRASH_CUTS=1 cuts at each of them, otherwise a few are drawn;
// DPAR_CRASH_SEED repeats what a run drew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "tests/crash/crash_site.h"
#include "tests/crash/power_cut.h"
#include "tests/crash/preload.h"

namespace dpar::crash {
namespace {

namespace fs = std::filesystem;

// The last syncs of a restore, among which it replaces what was there.
constexpr int64_t kWindow = 6;

class RestoreCutTest : public ::testing::Test {
 protected:
  // A store of one job, its backup, and the same store with a tenant more.
  void SetUp() override {
    if (!kCanPreload) {
      GTEST_SKIP() << kCannotPreload;
    }
    ASSERT_TRUE(site_.Start());
    const CrashSite::Tenant tenant = site_.NewTenant(/*seed=*/1);
    site_.Submit(tenant, QuickJob(tenant.dataset));
    site_.Settle("before the backup");
    ASSERT_EQ(Dpard({"backup", Scratch("backup")}).exit_code, 0);
    ASSERT_TRUE(site_.Start());
    site_.server().NewTenant();
    ASSERT_EQ(site_.server().Terminate(), std::optional<int>(0));
    for (const std::string& top : {std::string(), std::string(".witness")}) {
      fs::copy(Data() + top, Scratch("before") + top, fs::copy_options::recursive);
    }
  }
  [[nodiscard]] std::string Data() { return site_.server().data_directory(); }
  [[nodiscard]] std::string Scratch(const std::string& name) { return site_.server().Scratch(name); }
  e2e::CommandResult Dpard(std::vector<std::string> arguments, const e2e::Environment& environment = {}) {
    arguments.insert(arguments.begin(), e2e::BinaryPath("dpard"));
    arguments.insert(arguments.end(), {"--data-dir", Data()});
    return e2e::RunCommand(arguments, environment, kPatience);
  }
  void PutBack() {
    for (const std::string& top : {std::string(), std::string(".witness")}) {
      fs::remove_all(Data() + top);
      fs::copy(Scratch("before") + top, Data() + top, fs::copy_options::recursive);
    }
  }
  // Restores, and loses power at that sync (0: never); how many syncs there were if it did not.
  int64_t CutAt(int64_t at, RandomSource& random) {
    PutBack();
    PowerCut power(Data());
    power.AdoptAll();
    const e2e::CommandResult restored =
        Dpard({"restore", Scratch("backup"), "--replace"}, power.EnvironmentFor(at, 0, 0));
    EXPECT_EQ(restored.exit_code, at == 0 ? 0 : 128 + SIGKILL) << restored.err;
    const int64_t syncs = power.Syncs();
    if (at > 0) {
      power.Apply(random, /*strict=*/at % 2 == 0);
    }
    return syncs;
  }
  size_t CountTenants() {
    const auto answer =
        site_.server().Operator().Call(&v1::OperatorService::Stub::ListTenants, v1::ListTenantsRequest());
    EXPECT_THAT(answer.status, e2e::IsOk());
    return static_cast<size_t>(answer.value.tenants_size());
  }
  // The server serves the whole store, as it was before or as it was backed up, or refuses it until another restore.
  void ExpectWhole(const std::string& when) {
    site_.server().Launch();
    if (!site_.server().ComesUp()) {
      ++refused_;
      EXPECT_THAT(site_.server().log(), ::testing::HasSubstr("a restore was cut off")) << when;
      absl::SleepFor(absl::Seconds(1.1));  // what is replaced is kept under a name that has the second in it
      const e2e::CommandResult again = Dpard({"restore", Scratch("backup"), "--replace"});
      ASSERT_EQ(again.exit_code, 0) << when << ": " << again.err;
      ASSERT_TRUE(site_.server().Start()) << when;
      EXPECT_EQ(CountTenants(), 1U) << when;
    }
    const size_t tenants = CountTenants();
    EXPECT_TRUE(tenants == 1 || tenants == 2) << when << ": " << tenants;
    (tenants == 1 ? restored_ : untouched_) += 1;
    EXPECT_EQ(site_.server().Terminate(), std::optional<int>(0)) << when;
    site_.Check(Rest::kSettled, when);
  }

  CrashSite site_{nullptr};
  int64_t refused_ = 0;
  int64_t restored_ = 0;
  int64_t untouched_ = 0;
};

TEST_F(RestoreCutTest, AStoreIsServedWholeOrNotAtAll) {
  const int64_t seed = FromEnvironment("DPAR_CRASH_SEED", absl::ToUnixMicros(absl::Now()));
  std::cout << "DPAR_CRASH_SEED=" << seed << std::endl;
  dpar::testing::FixedRandom random(static_cast<uint64_t>(seed));
  const int64_t syncs = CutAt(0, random);
  ASSERT_GT(syncs, kWindow);
  const bool all = FromEnvironment("DPAR_CRASH_CUTS", 0) > 0;
  int64_t cuts = 0;
  for (int64_t at = 1; at <= syncs && !HasFailure(); ++at) {
    const bool in_window = at > syncs - kWindow;
    const auto one_in = static_cast<uint64_t>(in_window ? 2 : syncs / 2);
    if (all || UniformBelow(random, one_in) == 0) {
      CutAt(at, random);
      ExpectWhole(absl::StrCat("a restore cut off at sync ", at, " of ", syncs));
      ++cuts;
    }
  }
  std::cout << cuts << " restores cut off: " << refused_ << " refused until another, " << untouched_
            << " left as before, " << restored_ << " restored" << std::endl;
  if (all) {
    EXPECT_GT(refused_, 0) << "no cut met the moment of replacement";
  }
}

}  // namespace
}  // namespace dpar::crash
