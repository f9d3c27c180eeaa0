// Two servers on one PostgreSQL and one data directory: what one begins the other can see, stop and finish, and a job
// is paid once whatever becomes of the server that runs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/certificate/certificate.h"
#include "core/certificate/digest.h"
#include "server/store/testing/private_postgres.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

constexpr absl::Duration kLease = absl::Seconds(2);
// Of a job that is to be interrupted: some seconds of work.
constexpr int64_t kManySteps = 400;

class FleetTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { postgres_ = dpar::testing::PrivatePostgres::Start(); }
  static void TearDownTestSuite() { postgres_.reset(); }

  void SetUp() override {
    if (postgres_ == nullptr) GTEST_SKIP() << "PostgreSQL is not installed";
    const std::vector<std::string> flags = {"--store",           postgres_->NewDatabase(),
                                            "--concurrent-jobs", "1",
                                            "--lease-seconds",   absl::StrCat(absl::ToInt64Seconds(kLease))};
    first_ = std::make_unique<TestServer>(flags, directory_.File("data"));
    second_ = std::make_unique<TestServer>(flags, directory_.File("data"));
    ASSERT_TRUE(first_->Start());
    ASSERT_TRUE(second_->Start());
    tenant_ = first_->NewTenant();
  }

  std::string UploadSlowGraph(uint64_t seed) {
    return UploadGraph(first_->Owner(tenant_), tenant_.name, MakeSlowGraph(seed));
  }

  // A job in the middle of its training, the server that runs it and the other one.
  struct RunningJob {
    std::string dataset;
    std::string name;
    TestServer* runner = nullptr;
    TestServer* other = nullptr;
  };
  // Whichever server runs it, its progress is seen through the one that does not.
  RunningJob StartTraining(uint64_t seed) {
    RunningJob job;
    job.dataset = UploadSlowGraph(seed);
    v1::CreateJobRequest request = JobRequest(job.dataset, 1);
    request.mutable_spec()->mutable_options()->set_steps(kManySteps);
    const auto created = CreateJob(first_->Owner(tenant_), request);
    EXPECT_THAT(created.status, IsOk());
    job.name = created.value.name();
    EXPECT_TRUE(AwaitStart(job.name));
    const bool by_first = Runs(*first_, job.name);
    job.runner = by_first ? first_.get() : second_.get();
    job.other = by_first ? second_.get() : first_.get();
    const Watched watched = WatchUntil(job.other->Owner(tenant_), job.name, IsTraining);
    EXPECT_THAT(watched.status, IsOk());
    EXPECT_TRUE(!watched.messages.empty() && IsTraining(watched.messages.back()))
        << "the job ended before its progress was seen";
    return job;
  }

  // Whether the server has started an attempt of the job.
  static bool Runs(const TestServer& server, const std::string& job) {
    return absl::StrContains(server.log(), absl::StrCat(job, " starts, attempt"));
  }
  bool AwaitStart(const std::string& job) const {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (!Runs(*first_, job) && !Runs(*second_, job) && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    return Runs(*first_, job) || Runs(*second_, job);
  }

  void ExpectPaidOnce(const TestServer& server, const RunningJob& job, int attempt) {
    const Client owner = server.Owner(tenant_);
    const std::vector<v1::LedgerEntry> entries = LedgerEntries(owner, job.dataset);
    ASSERT_EQ(entries.size(), 3U) << "OPEN, RESERVE, POST";
    EXPECT_EQ(entries[2].kind(), v1::LedgerEntry::POST);
    EXPECT_EQ(entries[2].job(), job.name);
    EXPECT_EQ(entries[2].attempt(), attempt);
    const v1::VerifyChainResponse chain = VerifyChain(owner, job.dataset);
    EXPECT_TRUE(chain.intact()) << chain.fault();
    const v1::Budget budget = GetBudget(owner, job.dataset);
    EXPECT_EQ(budget.posted_units(), entries[1].units());
    EXPECT_EQ(budget.reserved_units(), 0);
  }

  // The model that is served is the one that the certificate was signed for.
  void ExpectModelAsCertified(const TestServer& server, const std::string& job) {
    const Client owner = server.Owner(tenant_);
    v1::GetCertificateRequest ask;
    ask.set_name(job);
    const auto certificate = owner.Call(&v1::TrainingService::Stub::GetCertificate, ask);
    ASSERT_THAT(certificate.status, IsOk());
    const auto key = VerifyingKey::FromPem(ReadFile(server.data_directory() + "/keys/signing.pub"));
    ASSERT_TRUE(key.ok()) << key.status();
    const auto statement = OpenSigned(certificate.value.envelope(), {*key});
    ASSERT_TRUE(statement.ok()) << statement.status();
    const std::map<std::string, std::string> served = {
        {"model.npz", Sha256Hex(Download(owner, job, v1::DownloadModelRequest::WEIGHTS))},
        {"model.safetensors", Sha256Hex(Download(owner, job, v1::DownloadModelRequest::SAFETENSORS))},
        {"model.onnx", Sha256Hex(Download(owner, job, v1::DownloadModelRequest::ONNX))},
        {"model.pt", Sha256Hex(Download(owner, job, v1::DownloadModelRequest::TORCHSCRIPT))}};
    EXPECT_EQ(served, statement->subjects);
  }

  static std::string Download(const Client& client, const std::string& job,
                              v1::DownloadModelRequest::Artifact artifact) {
    const std::unique_ptr<grpc::ClientContext> context = MakeContext(client.token());
    v1::DownloadModelRequest request;
    request.set_name(job);
    request.set_artifact(artifact);
    const auto reader = client.stub<v1::TrainingService::Stub>().DownloadModel(context.get(), request);
    v1::DownloadModelResponse chunk;
    std::string bytes;
    while (reader->Read(&chunk)) bytes += chunk.data();
    EXPECT_THAT(reader->Finish(), IsOk());
    return bytes;
  }

  static std::unique_ptr<dpar::testing::PrivatePostgres> postgres_;
  TemporaryDirectory directory_;
  std::unique_ptr<TestServer> first_;
  std::unique_ptr<TestServer> second_;
  TenantAccess tenant_;
};

std::unique_ptr<dpar::testing::PrivatePostgres> FleetTest::postgres_;

TEST_F(FleetTest, AJobWhoseServerIsKilledIsFinishedByTheOtherAndPostedOnce) {
  const RunningJob job = StartTraining(800);
  job.runner->Kill();
  const v1::Job ended = WaitForJob(job.other->Owner(tenant_), job.name);
  EXPECT_EQ(ended.state(), v1::Job::SUCCEEDED) << ended.failure();
  EXPECT_EQ(ended.attempts(), 2);
  ExpectPaidOnce(*job.other, job, 2);
  ExpectModelAsCertified(*job.other, job.name);
}

TEST_F(FleetTest, AServerThatStoodStillPastItsLeaseCannotPostAndGoesOnWorking) {
  const RunningJob job = StartTraining(801);
  job.runner->Signal(SIGSTOP);
  const v1::Job ended = WaitForJob(job.other->Owner(tenant_), job.name);
  EXPECT_EQ(ended.state(), v1::Job::SUCCEEDED) << ended.failure();
  EXPECT_EQ(ended.attempts(), 2);
  ExpectPaidOnce(*job.other, job, 2);

  job.runner->Signal(SIGCONT);
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  const std::string lost = absl::StrCat(job.name, " ended without a model; its lease was lost");
  while (!absl::StrContains(job.runner->log(), lost) && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_THAT(job.runner->log(), ::testing::HasSubstr(lost));
  ExpectPaidOnce(*job.runner, job, 2);
  ExpectModelAsCertified(*job.runner, job.name);
  EXPECT_EQ(GetJob(job.runner->Owner(tenant_), job.name).value.SerializeAsString(), ended.SerializeAsString());

  // Alone, it has to do the next one itself.
  EXPECT_EQ(job.other->Terminate(), std::optional<int>(0));
  const Client owner = job.runner->Owner(tenant_);
  const std::string dataset = UploadGraph(owner, tenant_.name, MakeGraph(802));
  const auto next = CreateJob(owner, JobRequest(dataset, 1));
  ASSERT_THAT(next.status, IsOk());
  EXPECT_EQ(WaitForJob(owner, next.value.name()).state(), v1::Job::SUCCEEDED);
  ExpectModelAsCertified(*job.runner, next.value.name());
}

TEST_F(FleetTest, ACancelThroughTheServerThatDoesNotRunTheJobTakesEffectAtOnce) {
  const RunningJob job = StartTraining(803);
  const Client owner = job.other->Owner(tenant_);
  const absl::Time asked = absl::Now();
  ASSERT_THAT(CancelJob(owner, job.name).status, IsOk());
  const v1::Job ended = WaitForJob(owner, job.name);
  EXPECT_LT(absl::Now() - asked, absl::Seconds(2));
  EXPECT_EQ(ended.state(), v1::Job::CANCELLED);
  const std::vector<v1::LedgerEntry> entries = LedgerEntries(owner, job.dataset);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[2].kind(), v1::LedgerEntry::VOID);
  EXPECT_EQ(GetBudget(owner, job.dataset).left_units(), GetBudget(owner, job.dataset).cap_units());
}

TEST_F(FleetTest, ATenantWithManyQueuedJobsDelaysAnotherTenantByAtMostOne) {
  const Client busy = first_->Owner(tenant_);
  const TenantAccess other_tenant = first_->NewTenant();
  const Client other = second_->Owner(other_tenant);
  const GeneratorOptions medium = {.nodes = 3000, .classes = 10, .features = 300, .features_per_node = 20};
  const std::string busy_dataset = UploadGraph(busy, tenant_.name, MakeGraph(804, medium));
  const std::string other_dataset = UploadGraph(other, other_tenant.name, MakeGraph(805, medium));
  std::vector<std::string> many;
  for (int i = 0; i < 12; ++i) {
    // Long enough that some still wait when the other tenant comes, also on a busy machine.
    v1::CreateJobRequest request = JobRequest(busy_dataset, 0.5);
    request.mutable_spec()->mutable_options()->set_steps(3'000);
    const auto created = CreateJob(busy, request);
    ASSERT_THAT(created.status, IsOk());
    many.push_back(created.value.name());
  }
  const auto one = CreateJob(other, JobRequest(other_dataset, 0.5));
  ASSERT_THAT(one.status, IsOk());
  // Its create_time would be too early: until it was committed, nobody could see it.
  const int64_t queued = absl::ToUnixMicros(absl::Now());
  const auto micros = [](const google::protobuf::Timestamp& time) {
    return time.seconds() * 1'000'000 + time.nanos() / 1000;
  };
  const v1::Job ended = WaitForJob(other, one.value.name());
  ASSERT_EQ(ended.state(), v1::Job::SUCCEEDED);
  int64_t overtook = 0;
  int64_t after = 0;
  for (const std::string& name : many) {
    const v1::Job job = WaitForJob(busy, name);
    EXPECT_EQ(job.state(), v1::Job::SUCCEEDED);
    const int64_t start = micros(job.start_time());
    overtook += start > queued && start < micros(ended.start_time()) ? 1 : 0;
    after += start > micros(ended.start_time()) ? 1 : 0;
  }
  EXPECT_LE(overtook, 1);
  EXPECT_GT(after, 0) << "the queue was empty before the other tenant came";
}

TEST_F(FleetTest, AnUploadBegunOnOneServerIsFinishedOnTheOther) {
  const Graph graph = MakeGraph(806, {.nodes = 3000, .classes = 3, .features = 100});
  const std::string bytes = GraphBytes(graph);
  const size_t half = bytes.size() / 2;
  const Client first = first_->Owner(tenant_);
  const Client second = second_->Owner(tenant_);
  const auto opened = first.Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest(tenant_.name, bytes, graph.sizes));
  ASSERT_THAT(opened.status, IsOk());
  ASSERT_THAT(WriteBytes(first, opened.value.name(), 0, bytes.substr(0, half)).status, IsOk());
  v1::GetUploadRequest get;
  get.set_name(opened.value.name());
  const auto held = second.Call(&v1::DatasetService::Stub::GetUpload, get);
  ASSERT_THAT(held.status, IsOk());
  EXPECT_EQ(held.value.committed_offset(), static_cast<int64_t>(half));
  ASSERT_THAT(WriteBytes(second, opened.value.name(), static_cast<int64_t>(half), bytes.substr(half)).status, IsOk());
  const auto finished = Finish(second, opened.value.name(), bytes, NewRequestId());
  ASSERT_THAT(finished.status, IsOk());
  const auto created = CreateJob(first, JobRequest(finished.value.dataset().name(), 1));
  ASSERT_THAT(created.status, IsOk());
  EXPECT_EQ(WaitForJob(second, created.value.name()).state(), v1::Job::SUCCEEDED);
  ExpectModelAsCertified(*first_, created.value.name());
}

}  // namespace
}  // namespace dpar::e2e
