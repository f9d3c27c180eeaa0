// A disk that is full: nothing is accepted that cannot be kept, and nothing that was accepted is lost.
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/crash/crash_site.h"
#include "tests/crash/small_disk.h"

namespace dpar::crash {
namespace {

constexpr int64_t kDiskBytes = 24 << 20;
constexpr absl::Duration kFullFor = absl::Seconds(3);

class DiskFullTest : public ::testing::Test {
 protected:
  void StartOn(dpar::testing::PrivatePostgres* postgres, const std::string& lease_seconds) {
    site_ = std::make_unique<CrashSite>(postgres, std::vector<std::string>{"--lease-seconds", lease_seconds});
    disk_ = SmallDisk::Mount(site_->server().data_directory(), kDiskBytes);
    if (disk_ == nullptr) {
      GTEST_SKIP() << "needs a mount of its own";
    }
    ASSERT_TRUE(site_->Start("dpard_seams", {{"DPAR_TEST_HALT", "trained"}}));
    tenant_ = site_->NewTenant(/*seed=*/5);
  }

  // A job that has trained and not saved its model yet when the disk gets full.
  std::string FillUnderJob() {
    // The server may halt before it has answered.
    std::future<std::string> submitted =
        std::async(std::launch::async, [&] { return site_->Submit(tenant_, QuickJob(tenant_.dataset)); });
    site_->AwaitHalt();
    disk_->Fill();
    site_->server().Signal(SIGCONT);
    return submitted.get();
  }

  v1::Job Get(const std::string& job) {
    const auto answer = e2e::GetJob(site_->ClientOf(tenant_.access), job);
    EXPECT_THAT(answer.status, e2e::IsOk()) << "what is stored can be read, whatever the disk";
    return answer.value;
  }

  void ExpectSucceeded(const std::string& job) {
    const v1::Job& ended = site_->snapshot().jobs.at(job).stored.job;
    EXPECT_EQ(ended.state(), v1::Job::SUCCEEDED) << ended.failure();
  }

  // The site's server lives on the disk.
  std::unique_ptr<CrashSite> site_;
  std::unique_ptr<SmallDisk> disk_;
  CrashSite::Tenant tenant_;
};

TEST_F(DiskFullTest, AServerRefusesWhatItCannotKeepAndGoesOnWhenThereIsSpace) {
  StartOn(nullptr, "30");
  if (IsSkipped()) return;
  const std::string running = FillUnderJob();
  const v1::CreateJobRequest request = QuickJob(tenant_.dataset);
  const auto refused = e2e::CreateJob(site_->ClientOf(tenant_.access), request);
  EXPECT_THAT(refused.status, e2e::IsError(grpc::StatusCode::UNAVAILABLE, v1::SERVER_UNAVAILABLE));
  const Graph graph = e2e::MakeGraph(6);
  const std::string bytes = e2e::GraphBytes(graph);
  const v1::OpenUploadRequest open = e2e::OpenRequest(tenant_.access.name, bytes, graph.sizes);
  EXPECT_THAT(e2e::UploadFile(site_->ClientOf(tenant_.access), open, bytes).status,
              e2e::IsError(grpc::StatusCode::UNAVAILABLE, v1::SERVER_UNAVAILABLE));
  absl::SleepFor(kFullFor);
  EXPECT_FALSE(Get(running).has_end_time()) << "it cannot end where its end cannot be stored";
  disk_->Free();
  const std::string job = site_->Submit(tenant_, request);
  const auto sealed = e2e::UploadFile(site_->ClientOf(tenant_.access), open, bytes);
  EXPECT_THAT(sealed.status, e2e::IsOk());
  site_->promises().Sealed(sealed.value.dataset().name());
  site_->Settle("after the disk was full");
  ExpectSucceeded(running);
  ExpectSucceeded(job);
}

TEST_F(DiskFullTest, AJobWhoseLeaseRunsOutOnAFullDiskIsTakenBackAndSucceeds) {
  StartOn(nullptr, "1");
  if (IsSkipped()) return;
  const std::string running = FillUnderJob();
  absl::SleepFor(kFullFor);
  disk_->Free();
  site_->Settle("after leases ran out on a full disk");
  ExpectSucceeded(running);
}

TEST_F(DiskFullTest, AnUploadThatFillsTheDiskGoesOnWhereItStood) {
  StartOn(nullptr, "30");
  if (IsSkipped()) return;
  const Graph graph = e2e::MakeGraph(7, {.nodes = 3000, .classes = 3, .features = 100});
  const std::string bytes = e2e::GraphBytes(graph);
  const e2e::Client owner = site_->ClientOf(tenant_.access);
  const auto opened =
      owner.Call(&v1::DatasetService::Stub::OpenUpload, e2e::OpenRequest(tenant_.access.name, bytes, graph.sizes));
  ASSERT_THAT(opened.status, e2e::IsOk());
  disk_->Fill(/*left=*/static_cast<int64_t>(bytes.size() / 2));
  EXPECT_THAT(e2e::WriteBytes(owner, opened.value.name(), 0, bytes).status,
              e2e::IsError(grpc::StatusCode::UNAVAILABLE, v1::SERVER_UNAVAILABLE));
  disk_->Free();
  v1::GetUploadRequest get;
  get.set_name(opened.value.name());
  const auto held = owner.Call(&v1::DatasetService::Stub::GetUpload, get);
  ASSERT_THAT(held.status, e2e::IsOk());
  const auto offset = static_cast<size_t>(held.value.committed_offset());
  ASSERT_LT(offset, bytes.size());
  EXPECT_THAT(e2e::WriteBytes(owner, opened.value.name(), held.value.committed_offset(), bytes.substr(offset)).status,
              e2e::IsOk());
  const auto sealed = e2e::Finish(owner, opened.value.name(), bytes, e2e::NewRequestId());
  ASSERT_THAT(sealed.status, e2e::IsOk());
  site_->promises().Sealed(sealed.value.dataset().name());
  site_->Settle("after an upload filled the disk");
}

TEST_F(DiskFullTest, AServerThatIsKilledOnAFullDiskRecoversWhenThereIsSpace) {
  StartOn(nullptr, "30");
  if (IsSkipped()) return;
  const std::string running = FillUnderJob();
  absl::SleepFor(absl::Seconds(1));
  site_->server().Kill();
  site_->Check(Rest::kInterrupted, "after a kill on a full disk");
  // It may say no, but not crash.
  site_->server().Launch();
  const std::optional<int> ended = site_->server().AwaitEnd(absl::Seconds(5));
  if (ended.has_value()) {
    EXPECT_EQ(*ended, 1);
  } else {
    site_->server().Kill();
  }
  disk_->Free();
  site_->Settle("after a kill on a full disk, and space");
  ExpectSucceeded(running);
}

TEST_F(DiskFullTest, OnPostgresAModelThatCannotBeSavedIsTrainedAgainAndNoAttemptCounts) {
  if (SharedPostgres() == nullptr) {
    GTEST_SKIP() << "PostgreSQL is not installed";
  }
  StartOn(SharedPostgres(), "30");
  if (IsSkipped()) return;
  const std::string running = FillUnderJob();
  v1::Job seen = Get(running);
  for (const absl::Time deadline = absl::Now() + kPatience; seen.state() == v1::Job::RUNNING && absl::Now() < deadline;
       seen = Get(running)) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_FALSE(seen.has_end_time());
  disk_->Free();
  site_->Settle("after a full disk beside PostgreSQL");
  ExpectSucceeded(running);
  // Running out of disk is no attempt; that it was trained again shows in its leases.
  EXPECT_EQ(site_->snapshot().jobs.at(running).stored.job.attempts(), 1);
  EXPECT_GT(site_->snapshot().jobs.at(running).stored.lease, 1);
}

// The disk has what CheckMachine asks for, so that each run is an attempt, and no space for the model.
TEST_F(DiskFullTest, OnPostgresAJobWhoseModelNeverFitsEndsWithItsAttemptsAndIsPosted) {
  if (SharedPostgres() == nullptr) {
    GTEST_SKIP() << "PostgreSQL is not installed";
  }
  constexpr int64_t kLeft = 18 << 20;
  StartOn(SharedPostgres(), "30");
  if (IsSkipped()) return;
  const e2e::Client owner = site_->ClientOf(tenant_.access);
  const std::string dataset =
      e2e::UploadGraph(owner, tenant_.access.name, e2e::MakeGraph(8, {.nodes = 200, .classes = 3, .features = 1500}));
  site_->promises().Sealed(dataset);
  v1::CreateJobRequest request = QuickJob(dataset);
  request.mutable_spec()->mutable_options()->set_hidden_size(4096);  // a model of 24 MB
  request.mutable_spec()->mutable_options()->set_steps(1);
  std::future<std::string> submitted = std::async(std::launch::async, [&] { return site_->Submit(tenant_, request); });
  site_->AwaitHalt();
  disk_->Fill(kLeft);
  site_->server().Signal(SIGCONT);
  const std::string job = submitted.get();
  v1::Job seen = Get(job);
  for (const absl::Time deadline = absl::Now() + kPatience; !seen.has_end_time() && absl::Now() < deadline;
       seen = Get(job)) {
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_EQ(seen.state(), v1::Job::FAILED);
  EXPECT_EQ(seen.attempts(), kMaxAttempts);
  EXPECT_EQ(e2e::LedgerEntries(owner, dataset).back().kind(), v1::LedgerEntry::POST) << "its data was opened";
  disk_->Free();
  site_->Settle("after a model that never fitted the disk");
}

}  // namespace
}  // namespace dpar::crash
