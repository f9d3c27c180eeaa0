// Everything at once: a fleet of two servers on one PostgreSQL with uploads, jobs, watchers, page and metrics, under
// network faults, kills, clocks that jump and a disk that fills up. For DPAR_LOAD_SECONDS; DPAR_CRASH_SEED repeats what
// a run drew. At the end the checker reads what is left, and memory, descriptors and threads of the server that was
// never killed must have stayed flat.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "server/http/testing/http_client.h"
#include "tests/crash/crash_site.h"
#include "tests/crash/faulty_clock.h"
#include "tests/crash/faulty_proxy.h"
#include "tests/crash/load.h"
#include "tests/crash/network_faults.h"
#include "tests/crash/preload.h"
#include "tests/crash/small_disk.h"

namespace dpar::crash {
namespace {

constexpr int64_t kShortSeconds = 20;
constexpr int64_t kDiskBytes = int64_t{96} << 20;
constexpr absl::Duration kJumps[] = {absl::Hours(24), absl::Hours(-24), absl::Minutes(7), absl::Seconds(-40)};

// What a process holds at one moment.
struct Holding {
  int64_t bytes = 0;
  int64_t descriptors = 0;
  int64_t threads = 0;
};

Holding HoldingOf(pid_t pid) {
  const auto count = [pid](const std::string& kind) {
    std::error_code ignored;
    const std::filesystem::directory_iterator all(absl::StrCat("/proc/", pid, "/", kind), ignored);
    return static_cast<int64_t>(std::distance(begin(all), end(all)));
  };
  return {e2e::MemoryOf(pid, "VmRSS"), count("fd"), count("task")};
}

// The most of several moments.
Holding Most(const std::vector<Holding>& all, size_t first, size_t last) {
  Holding most;
  for (size_t i = first; i < last; ++i) {
    most = {std::max(most.bytes, all[i].bytes), std::max(most.descriptors, all[i].descriptors),
            std::max(most.threads, all[i].threads)};
  }
  return most;
}

void ExpectFlat(const std::vector<Holding>& holdings) {
  ASSERT_GE(holdings.size(), 3U);
  const size_t third = holdings.size() / 3;
  const Holding early = Most(holdings, 0, 2 * third);
  const Holding late = Most(holdings, 2 * third, holdings.size());
  std::cout << "memory " << (early.bytes >> 20) << " to " << (late.bytes >> 20) << " MiB, descriptors "
            << early.descriptors << " to " << late.descriptors << ", threads " << early.threads << " to "
            << late.threads << std::endl;
  EXPECT_LT(late.bytes, early.bytes * 5 / 4 + (int64_t{64} << 20));
  EXPECT_LT(late.descriptors, early.descriptors + 64);
  EXPECT_LT(late.threads, early.threads + 32);
}

class EverythingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCanPreload) {
      GTEST_SKIP() << kCannotPreload;
    }
    if (SharedPostgres() == nullptr) {
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
  }

  // Asks health, metrics and the page of a server over and over; health has to answer whenever the server runs.
  void Poll(const e2e::TestServer& server) {
    const std::string metrics = server.metrics_address();
    const std::string page = server.page_address();
    while (!stop_) {
      EXPECT_EQ(SendHttp({.address = metrics, .path = "/livez"}).status, 200);
      EXPECT_EQ(SendHttp({.address = metrics, .path = "/metrics"}).status, 200);
      EXPECT_EQ(SendHttp({.address = page, .tls = HttpTls{}}).status, 200);
      polls_ += 3;
      absl::SleepFor(absl::Milliseconds(100));
    }
  }

  std::atomic<bool> stop_ = false;
  std::atomic<int64_t> polls_ = 0;
};

TEST_F(EverythingTest, AtOnceLosesNothingDoublesNothingAndStaysFlat) {
  const int64_t seconds = FromEnvironment("DPAR_LOAD_SECONDS", kShortSeconds);
  const int64_t seed = FromEnvironment("DPAR_CRASH_SEED", absl::ToUnixMicros(absl::Now()));
  std::cout << seconds << " seconds, DPAR_CRASH_SEED=" << seed << std::endl;
  dpar::testing::FixedRandom random(static_cast<uint64_t>(seed));
  const std::string uri = SharedPostgres()->NewDatabase();
  std::array<FaultyProxy, 2> proxies = {FaultyProxy(uri), FaultyProxy(uri)};
  FaultyClock clock;
  const std::vector<std::string> flags = {"--lease-seconds", "2"};
  CrashSite site(uri, proxies[0].UriOf(uri), flags);
  const std::unique_ptr<SmallDisk> disk = SmallDisk::Mount(site.server().data_directory(), kDiskBytes);
  ASSERT_TRUE(site.Start("dpard", clock.EnvironmentFor()));
  e2e::TestServer second({"--lease-seconds", "2", "--max-attempts", absl::StrCat(kMaxAttempts), "--concurrent-jobs",
                          "2", "--store", proxies[1].UriOf(uri)},
                         site.server().data_directory());
  ASSERT_TRUE(second.Start());
  std::map<std::string, int64_t> done;
  std::vector<Holding> holdings;
  {
    Load load(site, random);
    std::thread poller([&] { Poll(site.server()); });
    // Faults that stop the polled server altogether are for the other one.
    NetworkFaults network(uri, {{proxies[1], second}});
    NetworkFaults own(uri, {{proxies[0], second}});
    const absl::Time end = absl::Now() + absl::Seconds(seconds);
    for (size_t turn = 0; absl::Now() < end && !HasFailure(); ++turn) {
      switch (UniformBelow(random, 6)) {
        case 0:
          second.Kill();
          absl::SleepFor(absl::Milliseconds(UniformBelow(random, 3'000)));
          second.Launch();
          // PostgreSQL may be out of its reach just now.
          ASSERT_TRUE(second.ComesUp());
          ++done["kills"];
          break;
        case 1:
          clock.Set(UniformBelow(random, 2) == 0 ? absl::ZeroDuration()
                                                 : kJumps[UniformBelow(random, std::size(kJumps))]);
          absl::SleepFor(absl::Seconds(1));
          ++done["clock jumps"];
          break;
        case 2:
          if (disk != nullptr) {
            disk->Fill();
            absl::SleepFor(absl::Milliseconds(UniformBelow(random, 2'000)));
            disk->Free();
            ++done["full disks"];
          }
          break;
        default:
          (UniformBelow(random, 2) == 0 ? network : own).Strike(random, turn);
          ++done["network faults"];
      }
      holdings.push_back(HoldingOf(site.server().pid()));
    }
    stop_ = true;
    poller.join();
    clock.Set(absl::ZeroDuration());
    load.Stop();
    EXPECT_EQ(second.Terminate(), std::optional<int>(0));
    site.Settle(absl::StrCat("after ", seconds, " seconds of everything"));
    std::cout << load.Describe() << std::endl;
  }
  for (const auto& [what, count] : done) {
    std::cout << count << " " << what << ", ";
  }
  std::cout << polls_ << " answers of health, metrics and page" << std::endl;
  ExpectFlat(holdings);
}

}  // namespace
}  // namespace dpar::crash
