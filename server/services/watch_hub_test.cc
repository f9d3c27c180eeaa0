#include "server/services/watch_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <deque>
#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "server/queue/queue.h"
#include "server/services/testing/watch_hub_fixture.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

using ::dpar::testing::kJob;
using ::dpar::testing::kTenant;
using ::dpar::testing::Watcher;
using ::dpar::testing::WatchHubTest;
using ::testing::ElementsAre;

TEST_F(WatchHubTest, NothingIsReadWhileNobodyWatches) {
  After(absl::Seconds(1));
  Train(3);
  After(absl::Seconds(100));
  EXPECT_EQ(database_->reads, 0);
  EXPECT_EQ(next_, absl::InfiniteFuture());
}

TEST_F(WatchHubTest, ThePresentStateComesAtOnceThenEveryChangeAndTheEndLast) {
  Watcher& watcher = New();
  Join(watcher);
  After(absl::ZeroDuration());
  ASSERT_EQ(watcher.sink.messages.size(), 1U);
  EXPECT_EQ(watcher.sink.messages[0].stage(), "queued");
  EXPECT_EQ(watcher.sink.messages[0].sequence(), absl::ToUnixMicros(now_));
  EXPECT_EQ(watcher.sink.messages[0].time().seconds(), 1'000'000'000);
  Take(watcher);
  LeaseJob();
  Train(1);
  After(absl::Milliseconds(100));
  Take(watcher);
  Train(2);
  After(absl::Milliseconds(100));
  Take(watcher);
  EndJob();
  After(absl::Milliseconds(100));
  ASSERT_EQ(watcher.sink.messages.size(), 4U);
  EXPECT_EQ(watcher.sink.messages[1].completed(), 1);
  EXPECT_EQ(watcher.sink.messages[2].completed(), 2);
  EXPECT_DOUBLE_EQ(watcher.sink.messages[2].epsilon_so_far(), 0.2);
  EXPECT_EQ(watcher.sink.messages[3].stage(), "cancelled");
  EXPECT_TRUE(watcher.sink.messages[3].terminal());
  EXPECT_FALSE(watcher.sink.end.has_value());
  Take(watcher);
  EXPECT_EQ(watcher.sink.end, absl::OkStatus());
  EXPECT_EQ(next_, now_ + absl::Seconds(1));
  After(absl::Seconds(1));
  EXPECT_EQ(next_, absl::InfiniteFuture());
}

TEST_F(WatchHubTest, AJobThatSucceededShowsItsPlan) {
  LeaseJob();
  Write([](Transaction& t) {
    JobOutput output;
    output.lease = 1;
    return Succeed(t, kJob, output, absl::Now());
  });
  Watcher& watcher = New();
  Join(watcher);
  After(absl::ZeroDuration());
  ASSERT_EQ(watcher.sink.messages.size(), 1U);
  EXPECT_EQ(watcher.sink.messages[0].stage(), "succeeded");
  EXPECT_EQ(watcher.sink.messages[0].completed(), 40);
  EXPECT_DOUBLE_EQ(watcher.sink.messages[0].epsilon_so_far(), 1.5);
}

TEST_F(WatchHubTest, OneReadServesAllWatchersOfAllJobsThatAreDue) {
  constexpr int kJobs = 70;
  std::vector<Watcher*> watchers;
  for (int i = 0; i < kJobs; ++i) {
    const std::string job = absl::StrCat(kTenant, "/jobs/many-", i);
    AddJob(job);
    for (int copy = 0; copy < 3; ++copy) {
      watchers.push_back(&New());
      hub_->Join(watchers.back()->watch, job, 0);
    }
  }
  After(absl::ZeroDuration());
  EXPECT_EQ(database_->reads, 1);
  for (Watcher* watcher : watchers) {
    ASSERT_EQ(watcher->sink.messages.size(), 1U);
    EXPECT_EQ(watcher->sink.messages[0].stage(), "queued");
  }
}

TEST_F(WatchHubTest, ThereAreAtMostTenMessagesASecond) {
  LeaseJob();
  Watcher& watcher = New();
  Join(watcher);
  for (int64_t completed = 1; completed <= 1000; ++completed) {
    const size_t before = watcher.sink.messages.size();
    Train(completed);
    After(absl::Milliseconds(1));
    if (watcher.sink.messages.size() > before) {
      EXPECT_EQ(watcher.sink.messages.back().completed(), completed);
      Take(watcher);
    }
  }
  EXPECT_EQ(watcher.sink.messages.size(), 10U);
}

TEST_F(WatchHubTest, ManyWatchersOfOneJobHearOfItLessOften) {
  LeaseJob();
  std::vector<Watcher*> watchers;
  for (int i = 0; i < 2'000; ++i) {
    watchers.push_back(&New());
    Join(*watchers.back());
  }
  Train(1);
  After(absl::ZeroDuration());
  for (Watcher* watcher : watchers) {
    Take(*watcher);
  }
  Train(2);
  After(absl::Milliseconds(399));
  EXPECT_EQ(watchers[0]->sink.messages.size(), 1U);
  After(absl::Milliseconds(1));
  EXPECT_EQ(watchers[0]->sink.messages.size(), 2U);
  EXPECT_EQ(watchers[1'999]->sink.messages.size(), 2U);
}

TEST_F(WatchHubTest, WithoutNewsThereIsOneMessageInTenSeconds) {
  Watcher& watcher = New();
  Join(watcher);
  After(absl::ZeroDuration());
  Take(watcher);
  absl::Time last = now_;
  for (int i = 0; i < 60; ++i) {
    const size_t before = watcher.sink.messages.size();
    After(absl::Seconds(1));
    if (watcher.sink.messages.size() > before) {
      EXPECT_LT(now_ - last, absl::Seconds(10));
      EXPECT_GT(now_ - last, absl::Seconds(5));
      last = now_;
      Take(watcher);
    }
  }
  EXPECT_EQ(watcher.sink.messages.size(), 1U + 60 / 8);
  for (size_t i = 1; i < watcher.sink.messages.size(); ++i) {
    EXPECT_GT(watcher.sink.messages[i].sequence(), watcher.sink.messages[i - 1].sequence());
    EXPECT_EQ(watcher.sink.messages[i].stage(), "queued");
  }
}

TEST_F(WatchHubTest, AJobThatRunsOnAnotherServerIsKnownByWhatThatOneStoredWithinASecond) {
  Watcher& watcher = New();
  Join(watcher);
  After(absl::ZeroDuration());
  Take(watcher);
  LeaseJob();
  v1::JobProgress progress;
  progress.set_stage("training");
  progress.set_completed(7);
  progress.set_total(40);
  progress.set_epsilon_so_far(0.25);
  *progress.mutable_stage_start_time() = ToTimestamp(absl::ToUnixMicros(now_ - absl::Seconds(6)));
  Write([&](Transaction& t) { return Renew(t, kJob, 1, absl::Now(), absl::Minutes(1), progress).status(); });
  After(absl::Seconds(1));
  ASSERT_EQ(watcher.sink.messages.size(), 2U);
  EXPECT_EQ(watcher.sink.messages[1].stage(), "training");
  EXPECT_EQ(watcher.sink.messages[1].completed(), 7);
  EXPECT_EQ(watcher.sink.messages[1].epsilon_so_far(), 0.25);
  EXPECT_DOUBLE_EQ(watcher.sink.messages[1].rate(), 1);
}

TEST_F(WatchHubTest, EveryMessageComesAfterTheSequenceTheCallerHas) {
  const int64_t future = absl::ToUnixMicros(now_ + absl::Hours(1));
  Watcher& ahead = New();
  Watcher& fresh = New();
  Join(ahead, future);
  Join(fresh);
  After(absl::ZeroDuration());
  Take(ahead);
  Take(fresh);
  EndJob();
  After(absl::Milliseconds(100));
  ASSERT_EQ(ahead.sink.messages.size(), 2U);
  EXPECT_EQ(ahead.sink.messages[0].sequence(), future + 1);
  EXPECT_EQ(ahead.sink.messages[1].sequence(), future + 2);
  EXPECT_TRUE(ahead.sink.messages[1].terminal());
  EXPECT_EQ(fresh.sink.messages[1].sequence(), absl::ToUnixMicros(now_));
}

TEST_F(WatchHubTest, ACallerThatComesBackWithTheLastNumberGetsALaterOne) {
  Watcher& first = New();
  Join(first);
  After(absl::ZeroDuration());
  Take(first);
  const int64_t seen = first.sink.messages[0].sequence();
  Watcher& again = New();
  Join(again, seen);
  After(absl::Milliseconds(100));
  ASSERT_EQ(again.sink.messages.size(), 1U);
  EXPECT_GT(again.sink.messages[0].sequence(), seen);
  EXPECT_EQ(first.sink.messages.size(), 1U);
}

TEST_F(WatchHubTest, ASlowWatcherGetsTheNewestStateAndDelaysNobody) {
  LeaseJob();
  Watcher& slow = New();
  Watcher& quick = New();
  Join(slow);
  Join(quick);
  for (int64_t completed = 1; completed <= 5; ++completed) {
    Train(completed);
    After(absl::Milliseconds(100));
    Take(quick);
  }
  EXPECT_EQ(quick.sink.messages.size(), 5U);
  ASSERT_EQ(slow.sink.messages.size(), 1U);
  Take(slow);
  After(absl::Milliseconds(100));
  ASSERT_EQ(slow.sink.messages.size(), 2U);
  EXPECT_EQ(slow.sink.messages[1].completed(), 5);
  EXPECT_EQ(quick.sink.messages.size(), 5U);
}

TEST_F(WatchHubTest, ASlowWatcherStillGetsTheEnd) {
  Watcher& slow = New();
  Join(slow);
  After(absl::ZeroDuration());
  EndJob();
  After(absl::Milliseconds(100));
  ASSERT_EQ(slow.sink.messages.size(), 1U);
  Take(slow);
  After(absl::Milliseconds(100));
  ASSERT_EQ(slow.sink.messages.size(), 2U);
  EXPECT_TRUE(slow.sink.messages[1].terminal());
  Take(slow);
  EXPECT_EQ(slow.sink.end, absl::OkStatus());
}

TEST_F(WatchHubTest, WhoeverTakesNothingIsDroppedWhenItsPatienceIsOver) {
  Watcher& stuck = New();
  Watcher& quick = New();
  Join(stuck);
  Join(quick);
  After(absl::ZeroDuration());
  Take(quick);
  for (int i = 0; i < 59; ++i) {
    const size_t before = quick.sink.messages.size();
    After(absl::Seconds(1));
    if (quick.sink.messages.size() > before) {
      Take(quick);
    }
  }
  EXPECT_EQ(stuck.sink.cancels, 0);
  After(absl::Seconds(1));
  EXPECT_EQ(stuck.sink.cancels, 1);
  EXPECT_FALSE(stuck.sink.end.has_value());
  hub_->Sent(stuck.watch, false);
  ASSERT_TRUE(stuck.sink.end.has_value());
  EXPECT_EQ(stuck.sink.end->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(GetErrorInfo(*stuck.sink.end)->reason(), "LIMIT_EXCEEDED");
  EXPECT_EQ(GetErrorInfo(*stuck.sink.end)->metadata().at("limit"), "max_idle_seconds");
  EXPECT_EQ(GetErrorInfo(*stuck.sink.end)->metadata().at("maximum"), "60");
  After(absl::Seconds(100));
  EXPECT_EQ(stuck.sink.cancels, 1);
  EXPECT_FALSE(quick.sink.end.has_value());
}

TEST_F(WatchHubTest, ACallerThatIsGoneIsForgottenAtOnce) {
  Watcher& watcher = New();
  Join(watcher);
  After(absl::ZeroDuration());
  Take(watcher);
  hub_->Leave(watcher.watch);
  ASSERT_TRUE(watcher.sink.end.has_value());
  EXPECT_EQ(watcher.sink.end->code(), absl::StatusCode::kCancelled);
  const int reads = database_->reads;
  After(absl::Seconds(10));
  EXPECT_EQ(database_->reads, reads);
  EXPECT_EQ(watcher.sink.messages.size(), 1U);
}

TEST_F(WatchHubTest, ACallerThatGoesWhileAMessageIsOnItsWayEndsWithThat) {
  Watcher& watcher = New();
  Join(watcher);
  After(absl::ZeroDuration());
  hub_->Leave(watcher.watch);
  EXPECT_FALSE(watcher.sink.end.has_value());
  hub_->Sent(watcher.watch, false);
  EXPECT_EQ(watcher.sink.end->code(), absl::StatusCode::kCancelled);
}

TEST_F(WatchHubTest, ACallerThatGoesBeforeItIsAdmittedNeverJoins) {
  Watcher& watcher = New();
  hub_->Leave(watcher.watch);
  EXPECT_FALSE(watcher.sink.end.has_value());
  Join(watcher);
  EXPECT_EQ(watcher.sink.end->code(), absl::StatusCode::kCancelled);
  After(absl::Seconds(1));
  EXPECT_EQ(database_->reads, 0);
  EXPECT_TRUE(watcher.sink.messages.empty());
}

TEST_F(WatchHubTest, WhoeverIsRefusedHearsWhy) {
  Watcher& watcher = New();
  hub_->Refuse(watcher.watch, absl::PermissionDeniedError("no"));
  EXPECT_EQ(watcher.sink.end->code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(WatchHubTest, AServerThatStopsLetsTheCallersGoAndComeBack) {
  Watcher& idle = New();
  Watcher& busy = New();
  Watcher& late = New();
  Join(idle);
  Join(busy);
  After(absl::ZeroDuration());
  Take(idle);
  hub_->Stop();
  ASSERT_TRUE(idle.sink.end.has_value());
  EXPECT_EQ(idle.sink.end->code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetErrorInfo(*idle.sink.end)->reason(), "SERVER_UNAVAILABLE");
  EXPECT_FALSE(busy.sink.end.has_value());
  Take(busy);
  EXPECT_EQ(busy.sink.end->code(), absl::StatusCode::kUnavailable);
  Join(late);
  EXPECT_EQ(late.sink.end->code(), absl::StatusCode::kUnavailable);
}

TEST_F(WatchHubTest, AJobThatIsNotThereIsNotFound) {
  Watcher& watcher = New();
  hub_->Join(watcher.watch, "tenants/acme/jobs/none", 0);
  After(absl::ZeroDuration());
  EXPECT_EQ(watcher.sink.end->code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(GetErrorInfo(*watcher.sink.end)->reason(), "RESOURCE_NOT_FOUND");
}

TEST_F(WatchHubTest, AStoreThatIsAwayEndsOnlyTheWatchesThatAreOwedSomething) {
  Watcher& told = New();
  Join(told);
  After(absl::ZeroDuration());
  Take(told);
  database_->away = absl::UnavailableError("away");
  Watcher& fresh = New();
  Join(fresh);
  After(absl::Seconds(1));
  EXPECT_EQ(fresh.sink.end->code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(told.sink.end.has_value());
  After(absl::Seconds(6));
  EXPECT_FALSE(told.sink.end.has_value());
  After(absl::Seconds(1));
  EXPECT_EQ(told.sink.end->code(), absl::StatusCode::kUnavailable);
}

TEST_F(WatchHubTest, AStoreThatComesBackInTimeIsNotNoticed) {
  Watcher& watcher = New();
  Join(watcher);
  After(absl::ZeroDuration());
  Take(watcher);
  database_->away = absl::UnavailableError("away");
  After(absl::Seconds(5));
  database_->away = absl::OkStatus();
  EndJob();
  After(absl::Seconds(1));
  Take(watcher);
  EXPECT_EQ(watcher.sink.end, absl::OkStatus());
}

TEST_F(WatchHubTest, AJobThatCannotBeReadBackEndsItsOwnWatchersAlone) {
  const std::string broken = "tenants/acme/jobs/broken";
  AddJob(broken);
  Write([&](Transaction& t) { return t.Execute("UPDATE jobs SET state = 99 WHERE name = $1", {broken}).status(); });
  Watcher& of_broken = New();
  Watcher& of_good = New();
  hub_->Join(of_broken.watch, broken, 0);
  Join(of_good);
  After(absl::ZeroDuration());
  EXPECT_EQ(of_broken.sink.end->code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(of_good.sink.end.has_value());
  EXPECT_EQ(of_good.sink.messages.size(), 1U);
}

TEST_F(WatchHubTest, ANoticeThatSomeMayHaveBeenMissedMakesEveryJobDue) {
  Watcher& watcher = New();
  Join(watcher);
  After(absl::ZeroDuration());
  Take(watcher);
  EndJob();
  board_.Touch("");
  EXPECT_EQ(hub_->Look(now_, now_), now_ + absl::Milliseconds(100));
}

// With its thread, as a server runs it; a real sink answers from another thread.
TEST_F(WatchHubTest, TheThreadDoesWhatTheTestDidInItsPlace) {
  class EagerSink : public WatchSink {
   public:
    explicit EagerSink(WatchHub& hub) : hub_(hub) {}
    void Send(std::shared_ptr<const v1::WatchJobResponse> message) override {
      {
        const MutexLock lock(&mutex);
        stages.push_back(message->stage());
      }
      hub_.Sent(watch, true);
    }
    void Cancel() override {}
    void End(const absl::Status& status) override {
      const MutexLock lock(&mutex);
      end = status;
    }
    std::vector<std::string> Await(const std::function<bool()>& reached) {
      const MutexLock lock(&mutex);
      EXPECT_TRUE(mutex.AwaitWithTimeout(Condition(&reached), absl::Minutes(1)));
      return stages;
    }

    std::shared_ptr<Watch> watch = std::make_shared<Watch>(*this);
    Mutex mutex;
    std::vector<std::string> stages;
    std::optional<absl::Status> end;

   private:
    WatchHub& hub_;
  };
  EagerSink sink(*hub_);
  hub_->Start();
  hub_->Join(sink.watch, kJob, 0);
  EXPECT_THAT(sink.Await([&] { return !sink.stages.empty(); }), ElementsAre("queued"));
  EndJob();
  EXPECT_THAT(sink.Await([&] { return sink.end.has_value(); }), ElementsAre("queued", "cancelled"));
  EXPECT_EQ(sink.end, absl::OkStatus());
}

}  // namespace
}  // namespace dpar
