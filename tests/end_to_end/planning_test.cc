// What planning may cost: a ceiling, a fair place in line, and an end when its caller goes.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

class PlanningTest : public SharedServerTest {
 protected:
  void SetUp() override {
    SharedServerTest::SetUp();
    tenant_ = server().NewTenant();
    dataset_ = UploadGraph(server().Owner(tenant_), tenant_.name,
                           MakeGraph(971, {.nodes = 1000, .classes = 3, .features = 30}));
  }

  // A dry run whose calibration asks the accountant about mixtures of `occurrences` rows, again and again.
  v1::CreateJobRequest DryRun(int64_t occurrences) const {
    v1::CreateJobRequest request = JobRequest(dataset_, 1);
    request.set_validate_only(true);
    request.mutable_spec()->set_method(v1::DPAR_EM0);
    v1::TrainingOptions& options = *request.mutable_spec()->mutable_options();
    options.set_max_occurrence(occurrences);
    options.set_top_k(150);
    options.set_batch_size(20);
    options.set_steps(9'999);
    return request;
  }

  grpc::Status Plan(const v1::CreateJobRequest& request, absl::Duration timeout) const {
    const auto context = MakeContext(tenant_.owner_token, timeout);
    v1::Job job;
    return server().Owner(tenant_).stub<v1::TrainingService::Stub>().CreateJob(context.get(), request, &job);
  }

  TenantAccess tenant_;
  std::string dataset_;
};

TEST_F(PlanningTest, APlanBeyondTheCeilingIsRefusedBeforeItIsMade) {
  const absl::Time start = absl::Now();
  const grpc::Status status = Plan(DryRun(400), absl::Seconds(30));
  EXPECT_THAT(status, IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));
  EXPECT_EQ(ErrorMetadata(status, "limit"), "max_planning_seconds");
  EXPECT_EQ(ErrorMetadata(status, "maximum"), "60");
  EXPECT_EQ(ErrorMetadata(status, "estimate"), "122");
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST_F(PlanningTest, APlanStopsWhenItsCallerGoes) {
  EXPECT_EQ(Plan(DryRun(150), absl::Seconds(2)).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  const absl::Time deadline = absl::Now() + absl::Seconds(8);
  const auto ended = [] {
    return absl::StrContains(server().log(), "method=TrainingService/CreateJob code=CANCELLED");
  };
  while (!ended() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(50));
  EXPECT_TRUE(ended());
}

TEST_F(PlanningTest, ManyPlansOfATenantDelayNoOtherAndTakeBoundedMemory) {
  ASSERT_TRUE(ForgetPeakMemory(server().pid()));
  const int64_t before = MemoryOf(server().pid(), "VmRSS");
  std::vector<grpc::Status> statuses(88);
  std::vector<std::thread> callers;
  for (grpc::Status& status : statuses) {
    callers.emplace_back([&] { status = Plan(DryRun(150), absl::Seconds(8)); });
  }
  absl::SleepFor(absl::Seconds(2));
  const TenantAccess other = server().NewTenant();
  const std::string dataset = UploadGraph(server().Owner(other), other.name, MakeGraph(972));
  v1::CreateJobRequest cheap = JobRequest(dataset, 1);
  cheap.set_validate_only(true);
  const absl::Time start = absl::Now();
  EXPECT_THAT(CreateJob(server().Owner(other), cheap).status, IsOk());
  EXPECT_LT(absl::Now() - start, absl::Seconds(4));
  for (std::thread& caller : callers) caller.join();
  int refused = 0;
  for (const grpc::Status& status : statuses) {
    if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
      ++refused;
      EXPECT_EQ(ErrorMetadata(status, "limit"), "max_plans");
    } else {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
    }
  }
  EXPECT_EQ(refused, 24);
  EXPECT_LT(MemoryOf(server().pid(), "VmHWM") - before, int64_t{512} << 20);
}

TEST_F(PlanningTest, AStoppingServerWaitsForNoPlan) {
  TestServer stopping;
  ASSERT_TRUE(stopping.Start());
  const TenantAccess tenant = stopping.NewTenant();
  v1::CreateJobRequest request = DryRun(150);
  request.set_parent(tenant.name);
  request.mutable_spec()->set_dataset(
      UploadGraph(stopping.Owner(tenant), tenant.name, MakeGraph(973, {.nodes = 1000, .classes = 3, .features = 30})));
  grpc::Status status;
  std::thread caller([&] { status = CreateJob(stopping.Owner(tenant), request).status; });
  absl::SleepFor(absl::Seconds(2));
  EXPECT_EQ(stopping.Terminate(), std::optional<int>(0));
  caller.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
}

}  // namespace
}  // namespace dpar::e2e
