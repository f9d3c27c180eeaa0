// A server that dies or is stopped in the middle of a job: no job is lost, none is paid twice.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

class CrashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.Start());
    tenant_ = server_.NewTenant();
    dataset_ = UploadGraph(server_.Owner(tenant_), tenant_.name, MakeSlowGraph(500));
    ASSERT_FALSE(dataset_.empty());
  }

  // Creates a job and returns its name once training has made a step.
  std::string StartTraining() {
    const Client owner = server_.Owner(tenant_);
    const auto created = CreateJob(owner, JobRequest(dataset_, 1));
    EXPECT_THAT(created.status, IsOk());
    const Watched watched = WatchUntil(owner, created.value.name(), IsTraining);
    EXPECT_THAT(watched.status, IsOk());
    EXPECT_TRUE(!watched.messages.empty() && IsTraining(watched.messages.back()))
        << "the job ended before it could be interrupted";
    return created.value.name();
  }

  void ExpectPaidOnce(const std::string& job, int attempt) {
    const Client owner = server_.Owner(tenant_);
    const std::vector<v1::LedgerEntry> entries = LedgerEntries(owner, dataset_);
    EXPECT_EQ(CountEntries(entries, v1::LedgerEntry::RESERVE), 1);
    EXPECT_EQ(CountEntries(entries, v1::LedgerEntry::POST), 1);
    EXPECT_EQ(CountEntries(entries, v1::LedgerEntry::VOID), 0);
    EXPECT_EQ(entries.back().kind(), v1::LedgerEntry::POST);
    EXPECT_EQ(entries.back().job(), job);
    EXPECT_EQ(entries.back().attempt(), attempt);
    const v1::VerifyChainResponse chain = VerifyChain(owner, dataset_);
    EXPECT_TRUE(chain.intact()) << chain.fault();
    const v1::Budget budget = GetBudget(owner, dataset_);
    EXPECT_EQ(budget.posted_units(), entries.back().units());
    EXPECT_EQ(budget.reserved_units(), 0);
    v1::GetCertificateRequest certificate;
    certificate.set_name(job);
    EXPECT_THAT(owner.Call(&v1::TrainingService::Stub::GetCertificate, certificate).status, IsOk());
  }

  TestServer server_;
  TenantAccess tenant_;
  std::string dataset_;
};

TEST_F(CrashTest, AJobWhoseServerIsKilledRunsToItsEndAfterTheRestartAndIsPostedOnce) {
  const std::string job = StartTraining();
  server_.Kill();
  ASSERT_TRUE(server_.Start());
  const Client owner = server_.Owner(tenant_);
  const v1::Job ended = WaitForJob(owner, job);
  EXPECT_EQ(ended.state(), v1::Job::SUCCEEDED) << ended.failure();
  EXPECT_EQ(ended.attempts(), 2);
  ExpectPaidOnce(job, 2);
}

TEST_F(CrashTest, AJobWhoseServerIsStoppedIsPutBackAndRunsToItsEndAfterTheRestart) {
  const std::string job = StartTraining();
  const absl::Time stopped = absl::Now();
  EXPECT_EQ(server_.Terminate(), std::optional<int>(0));
  EXPECT_LT(absl::Now() - stopped, absl::Seconds(10));
  EXPECT_FALSE(std::filesystem::exists(server_.data_directory() + "/address"));
  ASSERT_TRUE(server_.Start());
  const Client owner = server_.Owner(tenant_);
  EXPECT_THAT(GetJob(owner, job).value.state(), ::testing::AnyOf(v1::Job::QUEUED, v1::Job::RUNNING));
  const v1::Job ended = WaitForJob(owner, job);
  EXPECT_EQ(ended.state(), v1::Job::SUCCEEDED) << ended.failure();
  // Only crashes use up attempts: restarting a server often must not end its jobs.
  EXPECT_EQ(ended.attempts(), 1);
  ExpectPaidOnce(job, 1);
}

TEST_F(CrashTest, AJobThatKeepsCrashingTheServerEndsAfterItsAttemptsWithItsPriceGivenBack) {
  const Client first = server_.Owner(tenant_);
  v1::GetServerInfoRequest ask;
  const int max_attempts = first.Call(&v1::ServerService::Stub::GetServerInfo, ask).value.limits().max_attempts();
  ASSERT_EQ(max_attempts, 3);
  const std::string job = StartTraining();
  for (int attempt = 1; attempt < max_attempts; ++attempt) {
    server_.Kill();
    ASSERT_TRUE(server_.Start());
    const Watched watched = WatchUntil(server_.Owner(tenant_), job, IsTraining);
    ASSERT_THAT(watched.status, IsOk());
    ASSERT_TRUE(IsTraining(watched.messages.back()));
  }
  server_.Kill();
  ASSERT_TRUE(server_.Start());
  const Client owner = server_.Owner(tenant_);
  const v1::Job ended = WaitForJob(owner, job);
  EXPECT_EQ(ended.state(), v1::Job::FAILED);
  EXPECT_EQ(ended.attempts(), max_attempts);
  EXPECT_NE(ended.failure(), "");
  const std::vector<v1::LedgerEntry> entries = LedgerEntries(owner, dataset_);
  EXPECT_EQ(CountEntries(entries, v1::LedgerEntry::VOID), 0);
  EXPECT_EQ(CountEntries(entries, v1::LedgerEntry::POST), 1) << "its data was opened";
  EXPECT_EQ(GetBudget(owner, dataset_).posted_units(), entries[1].units());
  EXPECT_TRUE(VerifyChain(owner, dataset_).intact());
}

TEST_F(CrashTest, AnUploadGoesOnWhereAKilledServerLeftIt) {
  const Graph graph = MakeGraph(501, {.nodes = 3000, .classes = 3, .features = 100});
  const std::string bytes = GraphBytes(graph);
  std::string upload;
  {
    const Client owner = server_.Owner(tenant_);
    const auto opened =
        owner.Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest(tenant_.name, bytes, graph.sizes));
    ASSERT_THAT(opened.status, IsOk());
    upload = opened.value.name();
    ASSERT_THAT(WriteBytes(owner, upload, 0, bytes.substr(0, 70'000)).status, IsOk());
  }
  server_.Kill();
  ASSERT_TRUE(server_.Start());
  const Client owner = server_.Owner(tenant_);
  v1::GetUploadRequest get;
  get.set_name(upload);
  const auto held = owner.Call(&v1::DatasetService::Stub::GetUpload, get);
  ASSERT_THAT(held.status, IsOk());
  const int64_t committed = held.value.committed_offset();
  EXPECT_EQ(committed, 70'000);
  ASSERT_THAT(WriteBytes(owner, upload, committed, bytes.substr(static_cast<size_t>(committed))).status, IsOk());
  EXPECT_THAT(Finish(owner, upload, bytes, NewRequestId()).status, IsOk());
}

}  // namespace
}  // namespace dpar::e2e
