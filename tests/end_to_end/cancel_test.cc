// Cancelling gives the whole price back and leaves nothing behind.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

class CancelTest : public SharedServerTest {
 protected:
  static void ExpectVoided(const Client& owner, const std::string& dataset, const std::string& job) {
    EXPECT_EQ(GetJob(owner, job).value.state(), v1::Job::CANCELLED);
    const std::vector<v1::LedgerEntry> entries = LedgerEntries(owner, dataset);
    ASSERT_EQ(entries.size(), 3U);
    EXPECT_EQ(entries[1].kind(), v1::LedgerEntry::RESERVE);
    EXPECT_EQ(entries[2].kind(), v1::LedgerEntry::VOID);
    EXPECT_EQ(entries[2].job(), job);
    EXPECT_EQ(entries[2].units(), entries[1].units());
    const v1::Budget budget = GetBudget(owner, dataset);
    EXPECT_EQ(budget.reserved_units(), 0);
    EXPECT_EQ(budget.posted_units(), 0);
    EXPECT_EQ(budget.left_units(), budget.cap_units());
    EXPECT_EQ(budget.live_events(), 0);
    EXPECT_TRUE(VerifyChain(owner, dataset).intact());
    v1::GetCertificateRequest certificate;
    certificate.set_name(job);
    EXPECT_THAT(owner.Call(&v1::TrainingService::Stub::GetCertificate, certificate).status,
                IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::JOB_NOT_SUCCEEDED));
  }
};

TEST_F(CancelTest, AQueuedAndARunningJobAreCancelledAndTheirBudgetsComeBack) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string slow = UploadGraph(owner, tenant.name, MakeSlowGraph(600));
  const std::string waiting = UploadGraph(owner, tenant.name, MakeGraph(601));
  const auto running = CreateJob(owner, JobRequest(slow, 1));
  ASSERT_THAT(running.status, IsOk());
  ASSERT_THAT(WatchUntil(owner, running.value.name(), IsTraining).status, IsOk());
  const auto queued = CreateJob(owner, JobRequest(waiting, 1));
  ASSERT_THAT(queued.status, IsOk());
  EXPECT_EQ(queued.value.state(), v1::Job::QUEUED);
  EXPECT_GT(GetBudget(owner, waiting).reserved_units(), 0);

  const auto cancelled = CancelJob(owner, queued.value.name());
  ASSERT_THAT(cancelled.status, IsOk());
  EXPECT_EQ(cancelled.value.state(), v1::Job::CANCELLED);
  ExpectVoided(owner, waiting, queued.value.name());

  v1::DeleteDatasetRequest remove;
  remove.set_name(slow);
  remove.set_request_id(NewRequestId());
  EXPECT_THAT(owner.Call(&v1::DatasetService::Stub::DeleteDataset, remove).status,
              IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::DATASET_IN_USE));

  const absl::Time asked = absl::Now();
  ASSERT_THAT(CancelJob(owner, running.value.name()).status, IsOk());
  const v1::Job ended = WaitForJob(owner, running.value.name());
  EXPECT_EQ(ended.state(), v1::Job::CANCELLED);
  EXPECT_LT(absl::Now() - asked, absl::Seconds(5));
  ExpectVoided(owner, slow, running.value.name());

  // Again changes nothing.
  EXPECT_EQ(CancelJob(owner, running.value.name()).value.state(), v1::Job::CANCELLED);
  EXPECT_EQ(LedgerEntries(owner, slow).size(), 3U);
}

TEST_F(CancelTest, AJobThatSucceededCannotBeCancelled) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(602));
  const auto job = CreateJob(owner, JobRequest(dataset, 1));
  ASSERT_EQ(WaitForJob(owner, job.value.name()).state(), v1::Job::SUCCEEDED);
  const auto refused = CancelJob(owner, job.value.name());
  EXPECT_THAT(refused.status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::JOB_ENDED));
  EXPECT_EQ(CountEntries(LedgerEntries(owner, dataset), v1::LedgerEntry::VOID), 0);
}

TEST_F(CancelTest, AnAbsentJobCannotBeCancelled) {
  const TenantAccess tenant = server().NewTenant();
  EXPECT_THAT(CancelJob(server().Owner(tenant), tenant.name + "/jobs/absent").status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
}

}  // namespace
}  // namespace dpar::e2e
