#include "server/queue/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/queue/testing/queue_fixture.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/testing/temporary_store.h"

namespace dpar {
namespace {

using ::dpar::testing::Engine;
using ::dpar::testing::EngineName;
using ::dpar::testing::Engines;
using ::dpar::testing::kLease;
using ::dpar::testing::kManyJobs;
using ::dpar::testing::kNow;

std::string Reason(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : "";
}

class QueueTest : public testing::QueueFixture {};

INSTANTIATE_TEST_SUITE_P(Engines, QueueTest, ::testing::ValuesIn(Engines()), EngineName);

TEST_P(QueueTest, JobsAreLeasedOldestFirstAndOnce) {
  ASSERT_TRUE(Add("b", 2).ok());
  ASSERT_TRUE(Add("a", 1).ok());
  EXPECT_EQ(LeaseNext(), "acme/jobs/a");
  EXPECT_EQ(LeaseNext(), "acme/jobs/b");
  EXPECT_EQ(LeaseNext(), "none");
}

TEST_P(QueueTest, AJobComesBackAsItWasStored) {
  ASSERT_TRUE(Add("a", 1).ok());
  const v1::Job job = Get("a");
  EXPECT_EQ(job.state(), v1::Job::QUEUED);
  EXPECT_EQ(job.spec().epsilon(), 0.1);
  EXPECT_EQ(job.plan().learning_rate(), 1.0 / 3.0) << "doubles round-trip";
  EXPECT_EQ(job.attempts(), 0);
}

TEST_P(QueueTest, StandingsOfManyJobsShowStateProgressAndThePlanOfWhatSucceeded) {
  std::vector<std::string> names = {"tenants/acme/jobs/absent"};
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(Add(absl::StrCat("j", i), i).ok());
    names.push_back(absl::StrCat("tenants/acme/jobs/j", i));
  }
  ASSERT_EQ(LeaseNext(), "acme/jobs/j0");
  ASSERT_EQ(LeaseNext(), "acme/jobs/j1");
  v1::JobProgress progress;
  progress.set_stage("training");
  progress.set_completed(7);
  JobOutput output;
  output.lease = 1;
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(Succeed(t, names[1], output, kNow));
                return Renew(t, names[2], 1, kNow, kLease, progress).status();
              }).ok());
  JobStandings standings;
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(standings, GetStandings(t, names));
                return absl::OkStatus();
              }).ok());
  ASSERT_EQ(standings.size(), 40U);
  EXPECT_EQ(standings.count(names[0]), 0U);
  const v1::Job& succeeded = *standings.at(names[1]);
  EXPECT_EQ(succeeded.state(), v1::Job::SUCCEEDED);
  EXPECT_EQ(succeeded.plan().learning_rate(), 1.0 / 3.0);
  const v1::Job& running = *standings.at(names[2]);
  EXPECT_EQ(running.state(), v1::Job::RUNNING);
  EXPECT_EQ(running.progress().completed(), 7);
  EXPECT_FALSE(running.has_plan());
  EXPECT_EQ(standings.at(names[40])->state(), v1::Job::QUEUED);
  EXPECT_FALSE(standings.at(names[40])->has_progress());
}

TEST_P(QueueTest, OneJobPastTheLimitIsRefusedWithTheLimit) {
  ASSERT_TRUE(Add("a", 1, {.max_queued = 1}).ok());
  const absl::Status over = Add("b", 2, {.max_queued = 1});
  EXPECT_EQ(over.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetErrorInfo(over)->metadata().at("limit"), "max_queued_jobs");
}

TEST_P(QueueTest, ACrashCountsTheAttemptAndACleanStopDoesNot) {
  ASSERT_TRUE(Add("a", 1).ok());
  LeaseNext();
  EXPECT_EQ(Get("a").attempts(), 1);
  ASSERT_TRUE(PutBack("a", false).ok());
  EXPECT_EQ(Get("a").attempts(), 0);
  LeaseNext();
  ASSERT_TRUE(PutBack("a", true).ok());
  LeaseNext();
  EXPECT_EQ(Get("a").attempts(), 2);
}

TEST_P(QueueTest, AnOldLeaseCannotFinish) {
  ASSERT_TRUE(Add("a", 1).ok());
  LeaseNext();
  ASSERT_TRUE(PutBack("a", true).ok());
  LeaseNext();
  EXPECT_EQ(Finish("a", 1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Get("a").state(), v1::Job::RUNNING);
  EXPECT_TRUE(Finish("a", 2).ok());
  EXPECT_EQ(Get("a").state(), v1::Job::SUCCEEDED);
}

TEST_P(QueueTest, AJobEndsOnce) {
  ASSERT_TRUE(Add("a", 1).ok());
  LeaseNext();
  ASSERT_TRUE(Finish("a", 1).ok());
  EXPECT_EQ(Finish("a", 1).code(), absl::StatusCode::kFailedPrecondition);
  const auto refused = [&](const std::function<absl::Status(Transaction&)>& body) { return Reason(Write(body)); };
  EXPECT_EQ(refused([](Transaction& t) { return End(t, "tenants/acme/jobs/a", v1::Job::FAILED, "x", kNow); }),
            "JOB_ENDED");
  EXPECT_EQ(refused([](Transaction& t) { return Requeue(t, "tenants/acme/jobs/a", true, true, kNow); }), "JOB_ENDED");
  EXPECT_EQ(refused([](Transaction& t) { return RequestCancel(t, "tenants/acme/jobs/a"); }), "JOB_ENDED");
}

TEST_P(QueueTest, OnlyASucceededJobHasOutput) {
  ASSERT_TRUE(Add("a", 1).ok());
  const auto output = [&] {
    return Write([](Transaction& t) -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(const JobOutput found, GetOutput(t, "tenants/acme/jobs/a"));
      EXPECT_EQ(found.files, (std::map<std::string, OutputFile>{{"model.npz", {"a", 1}}, {"model.pt", {"b", 2}}}));
      EXPECT_EQ(found.envelope, "{}");
      EXPECT_EQ(found.lease, 1);
      return absl::OkStatus();
    });
  };
  EXPECT_EQ(Reason(output()), "JOB_NOT_SUCCEEDED");
  LeaseNext();
  ASSERT_TRUE(Finish("a", 1).ok());
  EXPECT_TRUE(output().ok());
}

TEST_P(QueueTest, AnEvaluationBelongsToTheJobOnceItSucceeded) {
  ASSERT_TRUE(Add("a", 1).ok());
  LeaseNext();
  JobOutput output = {{{"model.npz", {"a", 1}}, {"model.pt", {"b", 2}}}, "{}", v1::Evaluation(), 2};
  output.evaluation->set_accuracy(1.0 / 3.0);
  output.evaluation->set_low(0.2);
  output.evaluation->set_high(0.5);
  output.evaluation->set_held_out_slots(40);
  EXPECT_FALSE(Get("a").has_evaluation());
  EXPECT_FALSE(Write([&](Transaction& t) { return Succeed(t, "tenants/acme/jobs/a", output, kNow); }).ok());
  EXPECT_FALSE(Get("a").has_evaluation()) << "a lease that is not the present one leaves nothing";
  output.lease = 1;
  ASSERT_TRUE(Write([&](Transaction& t) { return Succeed(t, "tenants/acme/jobs/a", output, kNow); }).ok());
  EXPECT_EQ(Get("a").evaluation().SerializeAsString(), output.evaluation->SerializeAsString());
  ASSERT_TRUE(Write([](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const JobOutput found, GetOutput(t, "tenants/acme/jobs/a"));
                EXPECT_EQ(found.evaluation->held_out_slots(), 40);
                return absl::OkStatus();
              }).ok());
}

TEST_P(QueueTest, ATenantWithAThousandJobsDoesNotDelayAnothersOne) {
  AddTenant("small");
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Add(absl::StrCat("many", i), i).ok());
  }
  EXPECT_EQ(LeaseNext(), "acme/jobs/many0");
  EXPECT_EQ(LeaseNext(), "acme/jobs/many1");
  ASSERT_TRUE(Add("one", 1000, {.tenant = "small"}).ok());
  EXPECT_EQ(LeaseNext(Request(kNow + absl::Seconds(1))), "small/jobs/one");
  EXPECT_EQ(LeaseNext(Request(kNow + absl::Seconds(2))), "acme/jobs/many2");
}

TEST_P(QueueTest, TenantsWithNothingRunningTakeTurns) {
  AddTenant("other");
  const auto run = [&](const std::string& expected, int second) {
    EXPECT_EQ(LeaseNext(Request(kNow + absl::Seconds(second))), expected);
    ASSERT_TRUE(Write([&](Transaction& t) {
                  return End(t, absl::StrCat("tenants/", expected), v1::Job::CANCELLED, "", kNow);
                }).ok());
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Add(absl::StrCat("a", i), i).ok());
    ASSERT_TRUE(Add(absl::StrCat("b", i), i, {.tenant = "other"}).ok());
  }
  run("acme/jobs/a0", 1);
  run("other/jobs/b0", 2);
  run("acme/jobs/a1", 3);
  run("other/jobs/b1", 4);
  run("acme/jobs/a2", 5);
  run("other/jobs/b2", 6);
}

TEST_P(QueueTest, PriorityOrdersATenantsOwnJobsOnly) {
  AddTenant("other");
  ASSERT_TRUE(Add("low", 1, {.priority = -1}).ok());
  ASSERT_TRUE(Add("plain", 2).ok());
  ASSERT_TRUE(Add("high", 3, {.priority = 5}).ok());
  ASSERT_TRUE(Add("meek", 4, {.tenant = "other", .priority = -100}).ok());
  EXPECT_EQ(LeaseNext(Request(kNow + absl::Seconds(1))), "acme/jobs/high");
  EXPECT_EQ(LeaseNext(Request(kNow + absl::Seconds(2))), "other/jobs/meek");
  EXPECT_EQ(LeaseNext(Request(kNow + absl::Seconds(3))), "acme/jobs/plain");
  EXPECT_EQ(LeaseNext(Request(kNow + absl::Seconds(4))), "acme/jobs/low");
}

TEST_P(QueueTest, ATenantRunsAtMostItsLimitAtOnce) {
  AddTenant("other");
  ASSERT_TRUE(Add("a", 1).ok());
  ASSERT_TRUE(Add("b", 2).ok());
  ASSERT_TRUE(Add("c", 3, {.tenant = "other"}).ok());
  LeaseRequest request = Request();
  request.max_running_jobs = 1;
  EXPECT_EQ(LeaseNext(request), "acme/jobs/a");
  EXPECT_EQ(LeaseNext(request), "other/jobs/c");
  EXPECT_EQ(LeaseNext(request), "none");
  ASSERT_TRUE(Finish("a", 1).ok());
  EXPECT_EQ(LeaseNext(request), "acme/jobs/b");
}

TEST_P(QueueTest, AJobThatDoesNotFitNowIsWaitedForAndOneThatNeverFitsIsLeftToOthers) {
  ASSERT_TRUE(Add("huge", 1, {.memory_bytes = 5000}).ok());
  ASSERT_TRUE(Add("big", 2, {.memory_bytes = 800}).ok());
  ASSERT_TRUE(Add("small", 3, {.memory_bytes = 10}).ok());
  LeaseRequest request = Request();
  request.free_bytes = 799;
  EXPECT_EQ(LeaseNext(request), "none") << "a smaller one does not overtake";
  request.free_bytes = 800;
  EXPECT_EQ(LeaseNext(request), "acme/jobs/big");
  EXPECT_EQ(LeaseNext(request), "acme/jobs/small");
  EXPECT_EQ(LeaseNext(request), "none");
  request.total_bytes = 5000;
  request.free_bytes = 5000;
  EXPECT_EQ(LeaseNext(request), "acme/jobs/huge");
}

TEST_P(QueueTest, AJobThatWasPutBackWaitsAsLongAsItWasTold) {
  ASSERT_TRUE(Add("a", 1).ok());
  LeaseNext();
  ASSERT_TRUE(PutBack("a", true, kNow + absl::Seconds(10)).ok());
  EXPECT_EQ(LeaseNext(Request(kNow + absl::Seconds(9))), "none");
  EXPECT_EQ(LeaseNext(Request(kNow + absl::Seconds(10))), "acme/jobs/a");
}

TEST_P(QueueTest, ATenantWhoseJobsMustWaitDelaysNoOther) {
  AddTenant("other");
  ASSERT_TRUE(Add("a", 1).ok());
  ASSERT_TRUE(Add("b", 2, {.tenant = "other"}).ok());
  ASSERT_EQ(LeaseNext(), "acme/jobs/a");
  ASSERT_TRUE(PutBack("a", true, kNow + absl::Seconds(10)).ok());
  EXPECT_EQ(LeaseNext(), "other/jobs/b");
  EXPECT_EQ(LeaseNext(), "none");
}

TEST_P(QueueTest, ALeaseHoldsUntilTheJobIsTakenBackWhateverTheClockSays) {
  ASSERT_TRUE(Add("a", 1).ok());
  LeaseNext();
  EXPECT_TRUE(Hold("a", 1).ok());
  EXPECT_EQ(Reason(Hold("a", 2)), "JOB_ENDED");
  EXPECT_EQ(Reason(Hold("a", 0)), "JOB_ENDED");
  const auto renew = [&](int64_t lease, absl::Time now) {
    v1::JobProgress progress;
    progress.set_stage("training");
    progress.set_completed(3);
    return Write(
        [&](Transaction& t) { return Renew(t, "tenants/acme/jobs/a", lease, now, kLease, progress).status(); });
  };
  EXPECT_TRUE(renew(1, kNow + absl::Seconds(20)).ok());
  EXPECT_EQ(Get("a").progress().completed(), 3);
  EXPECT_TRUE(Hold("a", 1).ok());
  EXPECT_TRUE(renew(1, kNow + absl::Hours(24)).ok());
  EXPECT_TRUE(renew(1, kNow - absl::Hours(24)).ok());
  ASSERT_TRUE(PutBack("a", true).ok());
  EXPECT_FALSE(Get("a").has_progress());
  EXPECT_EQ(Reason(Hold("a", 1)), "JOB_ENDED");
  LeaseNext();
  EXPECT_EQ(Stored("a").lease, 2);
  EXPECT_EQ(Reason(renew(1, kNow)), "JOB_ENDED");
  EXPECT_TRUE(Hold("a", 2).ok());
}

TEST_P(QueueTest, APauseThatNoRuleCouldHaveWrittenIsForgotten) {
  ASSERT_TRUE(Add("a", 1).ok());
  ASSERT_TRUE(Add("b", 2).ok());
  LeaseNext();
  LeaseNext();
  ASSERT_TRUE(PutBack("a", true, kNow + kLongestPause).ok());
  ASSERT_TRUE(PutBack("b", true, kNow + absl::Hours(365 * 24)).ok());
  std::vector<std::string> forgotten;
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(forgotten, ForgetFarPauses(t, kNow));
                return absl::OkStatus();
              }).ok());
  EXPECT_THAT(forgotten, ::testing::ElementsAre("tenants/acme/jobs/b"));
  EXPECT_EQ(LeaseNext(), "acme/jobs/b");
  EXPECT_EQ(LeaseNext(), "none");
}

TEST_P(QueueTest, AStartThatLiesFarAheadDoesNotDelayItsTenant) {
  AddTenant("other");
  ASSERT_TRUE(Add("a", 1).ok());
  ASSERT_TRUE(Add("b", 2).ok());
  ASSERT_TRUE(Add("c", 3, {.tenant = "other"}).ok());
  ASSERT_TRUE(Add("d", 4, {.tenant = "other"}).ok());
  ASSERT_EQ(LeaseNext(Request(kNow + absl::Hours(24))), "acme/jobs/a");
  ASSERT_TRUE(Finish("a", 1).ok());
  ASSERT_EQ(LeaseNext(), "acme/jobs/b");
}

TEST_P(QueueTest, NoJobIsLeasedTwiceByManyAtOnce) {
  constexpr int kJobs = 60;
  for (int i = 0; i < kJobs; ++i) {
    ASSERT_TRUE(Add(absl::StrCat("j", i), i).ok());
  }
  std::mutex mutex;
  std::multiset<std::string> leased;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      // Others may hold all that is left: nothing is then no proof of an empty queue.
      for (int empty = 0; empty < 20;) {
        const std::string name = LeaseNext();
        empty += name == "none" ? 1 : 0;
        const std::lock_guard<std::mutex> lock(mutex);
        if (name != "none") {
          leased.insert(name);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(leased.size(), static_cast<size_t>(kJobs));
  EXPECT_EQ(std::set<std::string>(leased.begin(), leased.end()).size(), static_cast<size_t>(kJobs));
}

TEST_P(QueueTest, ALeaseCountsAsAnOpeningUnlessItsWorkerKnowsBetter) {
  ASSERT_TRUE(Add("a", 1).ok());
  const auto put_back = [&](bool opened) {
    return Write(
        [&](Transaction& t) { return Requeue(t, "tenants/acme/jobs/a", /*count_attempt=*/false, opened, kNow); });
  };
  EXPECT_EQ(Stored("a").openings, 0);
  ASSERT_EQ(LeaseNext(), "acme/jobs/a");
  EXPECT_EQ(Stored("a").openings, 1);
  ASSERT_TRUE(put_back(/*opened=*/false).ok());
  EXPECT_EQ(Stored("a").openings, 0);
  ASSERT_EQ(LeaseNext(), "acme/jobs/a");
  ASSERT_TRUE(put_back(/*opened=*/true).ok());
  EXPECT_EQ(Stored("a").openings, 1) << "a clean shutdown is no attempt, but the data was opened";
}

TEST_P(QueueTest, AJobThatNobodyCouldHaveWrittenIsCorruption) {
  ASSERT_TRUE(Add("a", 1).ok());
  for (const char* change :
       {"state = 0", "state = 9", "state = 3", "attempts = -1", "failure = 'x'", "attempts = 4294967297", "plan = '{'",
        "plan = '{]'", "plan = 'AAA='", "plan = '!'", "plan = ''", "spec = '[]'", "memory_bytes = -1", "state = 2",
        "openings = -1", "openings = 1"}) {
    const absl::Status undone = Write([&](Transaction& t) -> absl::Status {
      DPAR_RETURN_IF_ERROR(t.Execute(absl::StrCat("UPDATE jobs SET ", change), {}).status());
      EXPECT_EQ(Reason(GetJob(t, "tenants/acme/jobs/a").status()), "STORE_CORRUPT") << change;
      return absl::CancelledError("undone");
    });
    EXPECT_TRUE(absl::IsCancelled(undone)) << undone;
  }
}

TEST_P(QueueTest, PagesAreNewestFirstAndJoinUp) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Add(absl::StrCat("j", i), i).ok());
  }
  std::vector<std::string> names;
  std::string token;
  do {
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const JobPage page, ListJobs(t, "tenants/acme", 2, token));
                  for (const v1::Job& job : page.jobs) {
                    names.push_back(job.name().substr(job.name().rfind('/') + 1));
                  }
                  token = page.next_page_token;
                  return absl::OkStatus();
                }).ok());
  } while (!token.empty());
  EXPECT_THAT(names, ::testing::ElementsAre("j4", "j3", "j2", "j1", "j0"));
}

TEST_P(QueueTest, AnUnknownJobIsNotFound) {
  EXPECT_EQ(Write([](Transaction& t) { return GetJob(t, "tenants/acme/jobs/x").status(); }).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace dpar
