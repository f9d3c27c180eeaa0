#include "server/services/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "core/error.h"
#include "server/auth/authenticator.h"
#include "server/queue/queue.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

constexpr char kJob[] = "tenants/acme/jobs/j";
constexpr char kDataset[] = "tenants/acme/datasets/d";

v1::Job JobIn(v1::Job::State state) {
  v1::Job job;
  job.set_state(state);
  job.mutable_plan()->set_steps(40);
  job.mutable_plan()->set_epsilon(1.5);
  return job;
}

TEST(DescribeProgressTest, AQueuedJobHasNoCounters) {
  const v1::WatchJobResponse message = DescribeProgress(JobIn(v1::Job::QUEUED), std::nullopt, absl::Now());
  EXPECT_EQ(message.stage(), "queued");
  EXPECT_EQ(message.total(), 0);
  EXPECT_FALSE(message.has_rate());
  EXPECT_FALSE(message.terminal());
}

TEST(DescribeProgressTest, ARunningJobShowsItsStageRateAndTimeLeft) {
  const absl::Time start = absl::FromUnixSeconds(1'000);
  const Progress progress{"training", 10, 40, start, 0.25};
  const v1::WatchJobResponse message = DescribeProgress(JobIn(v1::Job::RUNNING), progress, start + absl::Seconds(5));
  EXPECT_EQ(message.stage(), "training");
  EXPECT_EQ(message.completed(), 10);
  EXPECT_EQ(message.total(), 40);
  EXPECT_DOUBLE_EQ(message.rate(), 2);
  EXPECT_EQ(message.eta().seconds(), 15);
  EXPECT_DOUBLE_EQ(message.epsilon_so_far(), 0.25);
  EXPECT_FALSE(message.terminal());
}

TEST(DescribeProgressTest, AStageWithoutATotalHasNoRate) {
  const absl::Time start = absl::FromUnixSeconds(1'000);
  const v1::WatchJobResponse message =
      DescribeProgress(JobIn(v1::Job::RUNNING), Progress{"loading", 0, 0, start, 0}, start + absl::Seconds(5));
  EXPECT_EQ(message.stage(), "loading");
  EXPECT_FALSE(message.has_rate());
  EXPECT_FALSE(message.has_eta());
}

TEST(DescribeProgressTest, ARunningJobThatSaidNothingYetIsLoading) {
  EXPECT_EQ(DescribeProgress(JobIn(v1::Job::RUNNING), std::nullopt, absl::Now()).stage(), "loading");
}

TEST(DescribeProgressTest, AJobThatEndedIsTerminalWhateverTheBoardStillSays) {
  const Progress stale{"training", 10, 40, absl::FromUnixSeconds(0), 0.25};
  const v1::WatchJobResponse succeeded = DescribeProgress(JobIn(v1::Job::SUCCEEDED), stale, absl::Now());
  EXPECT_TRUE(succeeded.terminal());
  EXPECT_EQ(succeeded.stage(), "succeeded");
  EXPECT_EQ(succeeded.completed(), 40);
  EXPECT_DOUBLE_EQ(succeeded.epsilon_so_far(), 1.5);
  for (const v1::Job::State state : {v1::Job::FAILED, v1::Job::CANCELLED}) {
    const v1::WatchJobResponse message = DescribeProgress(JobIn(state), stale, absl::Now());
    EXPECT_TRUE(message.terminal());
    EXPECT_EQ(message.completed(), 0);
    EXPECT_EQ(message.epsilon_so_far(), 0);
  }
}

class WatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/watch_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    database_ = OpenSqlite(root_ + "/dpar.sqlite").value();
    ASSERT_TRUE(Migrate(*database_).ok());
    directory_ = std::make_unique<DataDirectory>(root_);
    authenticator_ = std::make_unique<Authenticator>(*database_);
    gate_ = std::make_unique<Gate>(*authenticator_);
    uploads_ = std::make_unique<Uploads>(*database_, *directory_, limits_);
    rooms_ = std::unique_ptr<Rooms>(
        new Rooms{*database_, *directory_, limits_, *gate_, *uploads_, progress_, streams_, watchdog_, 1, stopping_});
    StoredDataset dataset;
    dataset.dataset.set_name(kDataset);
    dataset.dataset.set_is_public(true);
    StoredJob job;
    job.job.set_name(kJob);
    job.job.mutable_spec()->set_dataset(kDataset);
    job.job.mutable_plan()->set_steps(40);
    Write([&](Transaction& t) { return InsertTenant(t, "acme", "key", absl::Now()); });
    Write([&](Transaction& t) { return InsertDataset(t, dataset, 10); });
    Write([&](Transaction& t) { return Enqueue(t, job, 10); });
  }
  void TearDown() override {
    rooms_.reset();
    database_.reset();
    std::filesystem::remove_all(root_);
  }

  void Write(const std::function<absl::Status(Transaction&)>& body) {
    const absl::Status status = database_->Write(body);
    ASSERT_TRUE(status.ok()) << status;
  }
  void LeaseJob() {
    Write([](Transaction& t) { return Lease(t, {"server", absl::Now(), absl::Minutes(1), 1, 0, 0}).status(); });
  }
  void EndJob() {
    Write([](Transaction& t) { return End(t, kJob, v1::Job::CANCELLED, "", absl::Now()); });
    progress_.Remove(kJob);
  }
  // Watches; `on_message` is called with each message before the next is waited for.
  absl::Status Run(int64_t after, const std::function<void(const v1::WatchJobResponse&)>& on_message) {
    return Watch(
        *rooms_, kJob, after,
        [&](const v1::WatchJobResponse& message) {
          messages_.push_back(message);
          on_message(message);
          return true;
        },
        [&] { return gone_; });
  }

  std::string root_;
  Limits limits_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<DataDirectory> directory_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<Uploads> uploads_;
  ProgressBoard progress_;
  StreamLimiter streams_{10};
  StreamWatchdog watchdog_{absl::Minutes(1)};
  std::atomic<bool> stopping_ = false;
  bool gone_ = false;
  std::unique_ptr<Rooms> rooms_;
  std::vector<v1::WatchJobResponse> messages_;
};

TEST_F(WatchTest, AJobThatEndedGivesOneTerminalMessage) {
  EndJob();
  ASSERT_TRUE(Run(0, [](const v1::WatchJobResponse&) {}).ok());
  ASSERT_EQ(messages_.size(), 1U);
  EXPECT_TRUE(messages_[0].terminal());
  EXPECT_EQ(messages_[0].stage(), "cancelled");
}

TEST_F(WatchTest, ThePresentStateComesAtOnceThenEveryChangeAndTheEndLast) {
  const absl::Status status = Run(0, [&](const v1::WatchJobResponse& message) {
    if (message.stage() == "queued") {
      LeaseJob();
      progress_.Update(kJob, {"training", 1, 40, absl::Now() - absl::Seconds(1), 0.1});
    } else if (message.completed() == 1) {
      progress_.Update(kJob, {"training", 2, 40, absl::Now() - absl::Seconds(2), 0.2});
    } else if (!message.terminal()) {
      EndJob();
    }
  });
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(messages_.size(), 4U);
  EXPECT_EQ(messages_[1].completed(), 1);
  EXPECT_EQ(messages_[2].completed(), 2);
  EXPECT_TRUE(messages_[3].terminal());
  for (size_t i = 1; i < messages_.size(); ++i) {
    EXPECT_GT(messages_[i].sequence(), messages_[i - 1].sequence());
    EXPECT_FALSE(messages_[i - 1].terminal());
  }
}

TEST_F(WatchTest, AJobThatRunsOnAnotherServerIsKnownByWhatThatOneStored) {
  LeaseJob();
  v1::JobProgress progress;
  progress.set_stage("training");
  progress.set_completed(7);
  progress.set_total(40);
  progress.set_epsilon_so_far(0.25);
  *progress.mutable_stage_start_time() = ToTimestamp(absl::ToUnixMicros(absl::Now() - absl::Seconds(7)));
  Write([&](Transaction& t) { return Renew(t, kJob, 1, absl::Now(), absl::Minutes(1), progress).status(); });
  ASSERT_TRUE(Run(0, [&](const v1::WatchJobResponse& message) {
                if (!message.terminal()) {
                  EndJob();
                }
              }).ok());
  ASSERT_EQ(messages_.size(), 2U);
  EXPECT_EQ(messages_[0].stage(), "training");
  EXPECT_EQ(messages_[0].completed(), 7);
  EXPECT_EQ(messages_[0].epsilon_so_far(), 0.25);
  EXPECT_NEAR(messages_[0].rate(), 1, 0.2);
}

TEST_F(WatchTest, EveryMessageComesAfterTheSequenceTheCallerHas) {
  const int64_t future = absl::ToUnixMicros(absl::Now() + absl::Hours(1));
  EndJob();
  ASSERT_TRUE(Run(future, [](const v1::WatchJobResponse&) {}).ok());
  ASSERT_EQ(messages_.size(), 1U);
  EXPECT_EQ(messages_[0].sequence(), future + 1);
}

TEST_F(WatchTest, AServerThatStopsLetsTheCallerGoAndComeBack) {
  const absl::Status status = Run(0, [&](const v1::WatchJobResponse&) {
    stopping_ = true;
    progress_.Shutdown();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetErrorInfo(status)->reason(), "SERVER_UNAVAILABLE");
  EXPECT_EQ(messages_.size(), 1U);
}

TEST_F(WatchTest, ACallerThatIsGoneIsNotWaitedFor) {
  const absl::Time start = absl::Now();
  EXPECT_EQ(Run(0, [&](const v1::WatchJobResponse&) { gone_ = true; }).code(), absl::StatusCode::kCancelled);
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST_F(WatchTest, AJobThatIsNotThereIsNotFound) {
  EXPECT_EQ(
      Watch(
          *rooms_, "tenants/acme/jobs/none", 0, [](const v1::WatchJobResponse&) { return true; }, [] { return false; })
          .code(),
      absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace dpar
