// Leasing several jobs at once, and for several threads.
#include "server/queue/leaser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"
#include "server/queue/testing/queue_fixture.h"

namespace dpar {
namespace {

using ::dpar::testing::EngineName;
using ::dpar::testing::Engines;
using ::dpar::testing::kLease;
using ::dpar::testing::kNow;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

class LeaserTest : public testing::QueueFixture {};

INSTANTIATE_TEST_SUITE_P(Engines, LeaserTest, ::testing::ValuesIn(Engines()), EngineName);

// Several at once are those that come one after the other.
TEST_P(LeaserTest, ManyAreLeasedAtOnceAsTheyWouldBeOneByOne) {
  std::mt19937_64 random(7);
  const auto draw = [&random](int below) { return static_cast<int>(random() % static_cast<uint64_t>(below)); };
  const std::vector<std::string> tenants = {"acme", "b", "c", "d"};
  for (const char* const tenant : {"b", "c", "d"}) {
    AddTenant(tenant);
  }
  for (int i = 0; i < 60; ++i) {
    const std::string tenant = tenants[static_cast<size_t>(std::min(draw(4), draw(4)))];
    ASSERT_TRUE(
        Add(absl::StrCat("j", i), i, {.tenant = tenant, .priority = draw(3), .memory_bytes = 1 + draw(300)}).ok());
  }
  absl::Time now = kNow;
  for (int round = 0; round < 12; ++round) {
    LeaseRequest request = Request(now);
    request.max_jobs = 1 + draw(12);
    request.max_running_jobs = 1 + draw(20);
    request.free_bytes = 200 + draw(2000);
    request.total_bytes = 250;
    std::vector<std::string> together;
    EXPECT_TRUE(absl::IsCancelled(Write([&](Transaction& t) -> absl::Status {
      together.clear();
      DPAR_ASSIGN_OR_RETURN(const std::vector<StoredJob> jobs, Lease(t, request));
      for (const StoredJob& job : jobs) {
        together.push_back(job.job.name().substr(8));
        EXPECT_EQ(job.job.state(), v1::Job::RUNNING);
        EXPECT_EQ(job.lease_expire_time, now + kLease);
      }
      return absl::CancelledError("only to see");
    })));
    std::vector<std::string> one_by_one;
    for (int64_t left = std::exchange(request.max_jobs, 1); left > 0; --left) {
      request.now = now += absl::Microseconds(1);
      const std::string name = LeaseNext(request);
      if (name == "none") {
        break;
      }
      one_by_one.push_back(name);
      request.free_bytes -= MemoryOf(name);
    }
    EXPECT_THAT(together, ElementsAreArray(one_by_one)) << "round " << round;
  }
}

TEST_P(LeaserTest, ATenantWhoseJobsMustWaitDelaysNoOther) {
  AddTenant("other");
  ASSERT_TRUE(Add("a", 1).ok());
  ASSERT_TRUE(Add("b", 2, {.tenant = "other"}).ok());
  ASSERT_TRUE(Add("c", 3, {.tenant = "other"}).ok());
  LeaseNext();
  ASSERT_TRUE(PutBack("a", true, kNow + absl::Seconds(10)).ok());
  LeaseRequest request = Request();
  request.max_jobs = 5;
  std::vector<std::string> leased;
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const std::vector<StoredJob> jobs, Lease(t, request));
                for (const StoredJob& job : jobs) {
                  leased.push_back(job.job.name());
                }
                return absl::OkStatus();
              }).ok());
  EXPECT_THAT(leased, ElementsAre("tenants/other/jobs/b", "tenants/other/jobs/c"));
}

TEST_P(LeaserTest, ThreadsOfOneServerGetJobsOfTheirOwn) {
  constexpr int kJobs = 60;
  constexpr int kThreads = 20;
  for (int i = 0; i < kJobs; ++i) {
    ASSERT_TRUE(Add(absl::StrCat("j", i), i, {.memory_bytes = 100}).ok());
  }
  std::mutex mutex;
  int64_t free_bytes = 1000;  // for ten jobs
  std::multiset<std::string> admitted;
  std::multiset<std::string> leased;
  Leaser leaser(
      store_.database(),
      [&] {
        const std::lock_guard<std::mutex> lock(mutex);
        LeaseRequest request = Request();
        request.free_bytes = free_bytes;
        return request;
      },
      [&](const StoredJob& job) {
        const std::lock_guard<std::mutex> lock(mutex);
        free_bytes -= job.job.memory_bytes();
        EXPECT_GE(free_bytes, 0) << "two counted on the same memory";
        admitted.insert(job.job.name());
      });
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      while (true) {
        const absl::StatusOr<std::optional<StoredJob>> job = leaser.Next();
        ASSERT_TRUE(job.ok()) << job.status();
        const std::lock_guard<std::mutex> lock(mutex);
        if (job->has_value()) {
          EXPECT_EQ(admitted.count((*job)->job.name()), 1U);
          leased.insert((*job)->job.name());
          free_bytes += (*job)->job.memory_bytes();
        } else if (leased.size() == kJobs) {
          return;
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(leased, admitted);
  EXPECT_EQ(std::set<std::string>(leased.begin(), leased.end()).size(), static_cast<size_t>(kJobs));
}

}  // namespace
}  // namespace dpar
