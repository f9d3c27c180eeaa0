// Two servers of a fleet and the network between them and PostgreSQL: connections that are cut, stall beyond a lease,
// crawl or are half open, backends that are terminated, servers that stand still. DPAR_CRASH_FAULTS says how many
// faults; DPAR_CRASH_SEED repeats what a run drew.
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "server/store/database.h"
#include "tests/crash/crash_site.h"
#include "tests/crash/faulty_proxy.h"
#include "tests/crash/load.h"
#include "tests/crash/network_faults.h"

namespace dpar::crash {
namespace {

constexpr int64_t kShortFaults = 7;

TEST(ProxyFaultTest, NetworkFaultsLoseNothingAndDoubleNothing) {
  if (SharedPostgres() == nullptr) {
    GTEST_SKIP() << "PostgreSQL is not installed";
  }
  const int64_t faults = FromEnvironment("DPAR_CRASH_FAULTS", kShortFaults);
  const int64_t seed = FromEnvironment("DPAR_CRASH_SEED", absl::ToUnixMicros(absl::Now()));
  std::cout << faults << " faults, DPAR_CRASH_SEED=" << seed << std::endl;
  dpar::testing::FixedRandom random(static_cast<uint64_t>(seed));
  const std::string uri = SharedPostgres()->NewDatabase();
  std::array<FaultyProxy, 2> proxies = {FaultyProxy(uri), FaultyProxy(uri)};
  CrashSite site(uri, proxies[0].UriOf(uri), {"--lease-seconds", "2"});
  ASSERT_TRUE(site.Start());
  e2e::TestServer second({"--lease-seconds", "2", "--max-attempts", absl::StrCat(kMaxAttempts), "--concurrent-jobs",
                          "2", "--store", proxies[1].UriOf(uri)},
                         site.server().data_directory());
  ASSERT_TRUE(second.Start());
  Load load(site, random);
  NetworkFaults network(uri, {{proxies[0], site.server()}, {proxies[1], second}});
  for (int64_t done = 0; done < faults && !::testing::Test::HasFailure(); ++done) {
    network.Strike(random, static_cast<size_t>(done));
    EXPECT_FALSE(site.server().AwaitEnd(absl::ZeroDuration()).has_value()) << "the server ended";
    EXPECT_FALSE(second.AwaitEnd(absl::ZeroDuration()).has_value()) << "the second server ended";
  }
  load.Stop();
  EXPECT_EQ(second.Terminate(), std::optional<int>(0));
  site.Settle(absl::StrCat("after ", faults, " faults"));
  std::cout << network.Describe() << "; " << load.Describe() << std::endl;
}

}  // namespace
}  // namespace dpar::crash
