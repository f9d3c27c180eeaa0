// Callers that give up before their answer is there.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

class DeadlineTest : public SharedServerTest {};

// Planning a job of this kind takes seconds: its calibration asks the accountant again and again.
v1::CreateJobRequest SlowPlan(const std::string& dataset) {
  v1::CreateJobRequest request = JobRequest(dataset, 1);
  request.mutable_spec()->set_method(v1::DPAR_EM0);
  v1::TrainingOptions& options = *request.mutable_spec()->mutable_options();
  options.set_node_sampling_rate(0.5);
  options.set_batch_size(20);
  options.set_steps(20'000);
  return request;
}

TEST_F(DeadlineTest, NothingIsReservedForACallerWhoseDeadlinePassedDuringThePlan) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(970));
  const std::string line = "method=TrainingService/CreateJob code=CANCELLED";
  const auto noticed = [&] { return absl::StrContains(server().log(), line); };
  // On a machine that stands still for long enough, a call can be over before the server has seen it.
  for (int attempt = 0; attempt < 4 && !noticed(); ++attempt) {
    const auto context = MakeContext(owner.token(), absl::Milliseconds(200));
    v1::Job job;
    const grpc::Status status =
        owner.stub<v1::TrainingService::Stub>().CreateJob(context.get(), SlowPlan(dataset), &job);
    ASSERT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
    const absl::Time deadline = absl::Now() + absl::Seconds(45);
    while (!noticed() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(50));
  }
  ASSERT_TRUE(noticed());
  EXPECT_EQ(GetBudget(owner, dataset).reserved_units(), 0);
  const std::vector<v1::LedgerEntry> entries = LedgerEntries(owner, dataset);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].kind(), v1::LedgerEntry::OPEN);
  v1::ListJobsRequest list;
  list.set_parent(tenant.name);
  EXPECT_EQ(owner.Call(&v1::TrainingService::Stub::ListJobs, list).value.jobs_size(), 0);
}

}  // namespace
}  // namespace dpar::e2e
