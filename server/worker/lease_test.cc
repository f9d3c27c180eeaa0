// Workers that die, stall or stop: what becomes of their jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/worker/outcome.h"
#include "server/worker/testing/worker_fixture.h"

namespace dpar {
namespace {

using testing::kJob;
using testing::kLimits;
using testing::kLongRun;

using Entry = v1::LedgerEntry;
using ::testing::ElementsAre;

class LeaseTest : public testing::WorkerFixture {};

TEST_F(LeaseTest, StoppingPutsTheJobBackWithoutCountingTheAttempt) {
  ASSERT_TRUE(Submit(kLongRun).ok());
  ASSERT_TRUE(worker_.Start().ok());
  AwaitTraining();
  worker_.Stop();
  const v1::Job job = Job();
  EXPECT_EQ(job.state(), v1::Job::QUEUED);
  EXPECT_EQ(job.attempts(), 0);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE));
}

TEST_F(LeaseTest, AJobThatACrashLeftRunningRunsAgainUnderTheSameReservation) {
  ASSERT_TRUE(Submit(5).ok());
  const std::string file = store_.directory().ModelFile(kJob, LeaseAndDie().lease, kWeightsName);
  ASSERT_TRUE(MakeParentDirectory(file).ok());
  ASSERT_TRUE(WriteFileDurably(file, "half a model", 0600).ok());
  ASSERT_TRUE(worker_.Start().ok());
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(AwaitState(v1::Job::SUCCEEDED).attempts(), 2);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
}

TEST_F(LeaseTest, AJobThatCrashedTooOftenFailsAndIsPostedBecauseItsDataWasOpened) {
  ASSERT_TRUE(Submit(5).ok());
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (attempt > 0) {
      ASSERT_TRUE(Write([](Transaction& t) { return Requeue(t, kJob, true, true, absl::Now()); }).ok());
    }
    LeaseAndDie();
  }
  ASSERT_TRUE(worker_.Start().ok());
  const v1::Job job = AwaitState(v1::Job::FAILED);
  EXPECT_EQ(job.failure(),
            "the server failed while running this job as often as it may try; its data was opened, so its price was "
            "posted in full");
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
}

TEST_F(LeaseTest, AWorkerThatLostItsLeaseCannotPost) {
  ASSERT_TRUE(Submit(5).ok());
  const StoredJob stalled = LeaseAndDie();
  const JobOutput output = {{{kWeightsName, {"a", 1}}}, "", std::nullopt, stalled.lease};
  ASSERT_TRUE(worker_.Start().ok());
  AwaitState(v1::Job::SUCCEEDED);
  EXPECT_EQ(Release(store_.database(), Key(), stalled, output, AccountantEpsilon(stalled).value()).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GiveUp(store_.database(), stalled, {absl::InternalError("x")}, 2).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
  VerifiedStatement();
}

TEST_F(LeaseTest, GivingUpSaysInWhichStateItLeavesTheJob) {
  const auto give_up = [&](const StoredJob& stored, const absl::Status& cause, StopCause stopped) {
    return GiveUp(store_.database(), stored, {cause, stopped}, /*max_attempts=*/2).value();
  };
  ASSERT_TRUE(Submit(5).ok());
  EXPECT_EQ(give_up(LeaseAndDie(), absl::CancelledError(""), StopCause::kShutdown), v1::Job::QUEUED);
  EXPECT_EQ(give_up(LeaseAndDie(), absl::UnavailableError(""), StopCause::kNone), v1::Job::QUEUED);
  ASSERT_TRUE(Write([](Transaction& t) {
                return t.Execute("UPDATE jobs SET not_before = 0 WHERE name = $1", {std::string(kJob)}).status();
              }).ok());
  EXPECT_EQ(give_up(LeaseAndDie(), absl::UnavailableError(""), StopCause::kNone), v1::Job::FAILED);
}

// Each such run shows its duration, and whoever fills the disk decides how many there are.
TEST_F(LeaseTest, AShortageOfTheMachineCountsOnceItHasOpenedTheDataAsOftenAsAJobIsTried) {
  const auto run_short = [&](bool opened) {
    EXPECT_TRUE(Write([](Transaction& t) {
                  return t.Execute("UPDATE jobs SET not_before = 0 WHERE name = $1", {std::string(kJob)}).status();
                }).ok());
    return GiveUp(store_.database(), LeaseAndDie(), {absl::CancelledError(""), StopCause::kShortage, opened},
                  /*max_attempts=*/2)
        .value();
  };
  ASSERT_TRUE(Submit(5).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run_short(/*opened=*/true), v1::Job::QUEUED);
    EXPECT_EQ(Job().attempts(), 0);
  }
  EXPECT_EQ(run_short(/*opened=*/true), v1::Job::QUEUED);
  EXPECT_EQ(Job().attempts(), 1);
  EXPECT_EQ(run_short(/*opened=*/false), v1::Job::QUEUED);
  EXPECT_EQ(Job().attempts(), 1) << "the data was not opened";
  EXPECT_EQ(run_short(/*opened=*/true), v1::Job::FAILED);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
}

TEST_F(LeaseTest, AReleaseThatIsRepeatedIsFoundAndNotPostedAgain) {
  ASSERT_TRUE(Submit(5).ok());
  const StoredJob stored = LeaseAndDie();
  const JobOutput output = {{{kWeightsName, {std::string(64, 'a'), 1}}}, "", std::nullopt, stored.lease};
  ASSERT_TRUE(Release(store_.database(), Key(), stored, output, AccountantEpsilon(stored).value()).ok());
  EXPECT_TRUE(Release(store_.database(), Key(), stored, output, AccountantEpsilon(stored).value()).ok())
      << "as after a commit whose answer was lost";
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
}

// Leases a job for somebody else, in one transaction with its submission, so that the running worker does not come
// first. `ahead` is how far the other's clock goes ahead.
class ForeignLeaseTest : public LeaseTest {
 protected:
  ForeignLeaseTest() { options_.lease = absl::Seconds(2); }

  void LeaseElsewhere(absl::Duration ahead) {
    v1::TrainingSpec spec = Spec();
    spec.mutable_options()->set_steps(5);
    const PlannedJob planned = *PlanJob(store_.database(), spec, kLimits);
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_RETURN_IF_ERROR(SubmitJob(t, planned, {kJob, {}}, 10, {"token", absl::Now()}).status());
                  return Lease(t, {"other", absl::Now() + ahead, options_.lease, 1, kLimits.max_job_bytes,
                                   kLimits.max_job_bytes})
                      .status();
                }).ok());
  }

  WorkerOptions options_ = Options();
};

TEST_F(ForeignLeaseTest, AJobWhoseLeaseIsNotRenewedIsTakenBackWhateverTheOtherClockSaid) {
  Worker worker(store_.database(), store_.directory(), Key(), board_, options_);
  ASSERT_TRUE(worker.Start().ok());
  LeaseElsewhere(absl::Hours(24));
  EXPECT_EQ(AwaitState(v1::Job::SUCCEEDED).attempts(), 2);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
}

TEST_F(ForeignLeaseTest, AJobWhoseLeaseIsRenewedStaysWithAMemberWhoseClockIsMinutesBehind) {
  Worker worker(store_.database(), store_.directory(), Key(), board_, options_);
  ASSERT_TRUE(worker.Start().ok());
  LeaseElsewhere(-absl::Minutes(5));
  for (int i = 0; i < 10; ++i) {
    absl::SleepFor(absl::Milliseconds(500));
    ASSERT_TRUE(Write([&](Transaction& t) {
                  return Renew(t, kJob, 1, absl::Now() - absl::Minutes(5), options_.lease, std::nullopt).status();
                }).ok());
  }
  EXPECT_EQ(Job().attempts(), 1);
  EXPECT_EQ(Job().state(), v1::Job::RUNNING);
}

TEST_F(LeaseTest, ACancelledJobWhoseWorkerDiedIsVoided) {
  ASSERT_TRUE(Submit(5).ok());
  LeaseAndDie();
  ASSERT_TRUE(Cancel().ok());
  ASSERT_TRUE(worker_.Start().ok());
  AwaitState(v1::Job::CANCELLED);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::VOID));
}

TEST_F(LeaseTest, ProgressIsStoredWhileAJobRuns) {
  ASSERT_TRUE(Submit(kLongRun * 10).ok());
  ASSERT_TRUE(worker_.Start().ok());
  const v1::Job job = Await([](const v1::Job& now) { return now.has_progress() && now.progress().completed() > 0; });
  EXPECT_EQ(job.progress().stage(), "training");
  EXPECT_EQ(job.progress().total(), kLongRun * 10);
  ASSERT_TRUE(Cancel().ok());
  worker_.Notify(kJob);
  EXPECT_FALSE(AwaitState(v1::Job::CANCELLED).has_progress());
}

TEST_F(LeaseTest, FilesOfAttemptsThatReleasedNothingAreSwept) {
  const auto leave = [&](const std::string& job, int64_t lease) {
    const std::string file = store_.directory().ModelFile(job, lease, kWeightsName);
    EXPECT_TRUE(MakeParentDirectory(file).ok());
    EXPECT_TRUE(WriteFileDurably(file, "x", 0600).ok());
    return file;
  };
  ASSERT_TRUE(Submit(5).ok());
  const StoredJob stored = LeaseAndDie();
  const std::string old = leave(kJob, stored.lease + 7);
  const std::string unknown = leave("tenants/acme/jobs/unknown", 1);
  const std::string current = leave(kJob, stored.lease);
  ASSERT_TRUE(SweepModels(store_.database(), store_.directory()).ok());
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_FALSE(std::filesystem::exists(unknown));
  EXPECT_TRUE(std::filesystem::exists(current)) << "the attempt that holds the lease may be writing it";
  const JobOutput output = {{{kWeightsName, {std::string(64, 'a'), 1}}}, "", std::nullopt, stored.lease};
  ASSERT_TRUE(Release(store_.database(), Key(), stored, output, AccountantEpsilon(stored).value()).ok());
  const std::string late = leave(kJob, stored.lease + 1);
  ASSERT_TRUE(SweepModels(store_.database(), store_.directory()).ok());
  EXPECT_TRUE(std::filesystem::exists(current)) << "a model that was released stays";
  EXPECT_FALSE(std::filesystem::exists(late));
}

TEST_F(LeaseTest, SeveralJobsRunAtOnceWithinTheirMemory) {
  const PlannedJob planned = *PlanJob(store_.database(), Spec(0.1), kLimits);
  const int64_t bytes = planned.stored.job.memory_bytes();
  WorkerOptions options = Options();
  options.concurrent_jobs = 3;
  options.max_running_jobs = 3;
  options.total_bytes = 2 * bytes + bytes / 2;
  Worker worker(store_.database(), store_.directory(), Key(), board_, options);
  v1::TrainingSpec spec = Spec(0.1);
  spec.mutable_options()->set_steps(kLongRun * 10);
  const PlannedJob longer = *PlanJob(store_.database(), spec, kLimits);
  for (const std::string name : {"a", "b", "c"}) {
    ASSERT_TRUE(Write([&](Transaction& t) {
                  return SubmitJob(t, longer, {absl::StrCat("tenants/acme/jobs/", name), {}}, 10,
                                   {"token", absl::Now()})
                      .status();
                }).ok());
  }
  ASSERT_TRUE(worker.Start().ok());
  const auto running = [&] {
    int64_t count = 0;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const JobPage page, ListJobs(t, "tenants/acme", 10, ""));
                  for (const v1::Job& job : page.jobs) {
                    count += job.state() == v1::Job::RUNNING ? 1 : 0;
                  }
                  return absl::OkStatus();
                }).ok());
    return count;
  };
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  while (running() < 2 && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_EQ(running(), 2) << "the third waits for memory, though a thread is free";
}

}  // namespace
}  // namespace dpar
