// Leasing several jobs at once, and for several threads.
#include "server/queue/leaser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
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
  testing::FixedRandom random(20260107);
  const auto draw = [&random](int below) {
    return static_cast<int>(UniformBits(random) % static_cast<uint64_t>(below));
  };
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

// A transaction that something happens beside, just before it announces its last query.
class Interrupted final : public Transaction {
 public:
  Interrupted(Transaction& transaction, int queries, std::function<void()> interrupt)
      : transaction_(transaction), left_(queries), interrupt_(std::move(interrupt)) {}

  absl::StatusOr<std::vector<Row>> Query(absl::string_view sql, const std::vector<Value>& parameters) override {
    return transaction_.Query(sql, parameters);
  }
  absl::StatusOr<int64_t> Execute(absl::string_view sql, const std::vector<Value>& parameters) override {
    return transaction_.Execute(sql, parameters);
  }
  absl::Status ExecuteLater(absl::string_view sql, const std::vector<Value>& parameters,
                            const absl::Status& otherwise) override {
    return transaction_.ExecuteLater(sql, parameters, otherwise);
  }
  absl::Status QueryAhead(absl::string_view sql, const std::vector<Value>& parameters) override {
    if (--left_ == 0) {
      interrupt_();
    }
    return transaction_.QueryAhead(sql, parameters);
  }
  absl::Status LockAhead(Guard guard, const std::string& name, absl::string_view sql) override {
    return transaction_.LockAhead(guard, name, sql);
  }
  absl::Status Lock(Guard guard, const std::string& name) override { return transaction_.Lock(guard, name); }
  [[nodiscard]] absl::string_view for_update() const override { return transaction_.for_update(); }
  [[nodiscard]] absl::string_view skip_locked() const override { return transaction_.skip_locked(); }
  int64_t CountUnseen(const std::string& what) override { return transaction_.CountUnseen(what); }
  absl::Status Notify(const std::string& notice) override { return transaction_.Notify(notice); }
  [[nodiscard]] int left() const { return left_; }

 private:
  Transaction& transaction_;
  int left_;
  const std::function<void()> interrupt_;
};

TEST_P(LeaserTest, AJobThatComesMeanwhileHasNoneLeasedTwice) {
  if (GetParam() == testing::Engine::kSqlite) {
    GTEST_SKIP() << "one transaction writes at a time";
  }
  AddTenant("other");
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(Add(absl::StrCat("a", i), i).ok());
  }
  ASSERT_TRUE(Add("b", 1, {.tenant = "other"}).ok());
  LeaseRequest request = Request();
  request.max_jobs = 4;
  std::vector<std::string> leased;
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                // Two tenants are asked, of whom one has too few jobs, so that the first is asked again.
                Interrupted transaction(t, 3, [&] { ASSERT_TRUE(Add("urgent", 9, {.priority = 5}).ok()); });
                DPAR_ASSIGN_OR_RETURN(const std::vector<StoredJob> jobs, Lease(transaction, request));
                EXPECT_LE(transaction.left(), 0);
                for (const StoredJob& job : jobs) {
                  leased.push_back(job.job.name().substr(8));
                }
                return absl::OkStatus();
              }).ok());
  EXPECT_THAT(leased, ElementsAre("acme/jobs/a1", "other/jobs/b", "acme/jobs/a2", "acme/jobs/urgent"));
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
  threads.reserve(kThreads);
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
