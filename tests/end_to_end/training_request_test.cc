// Requests for jobs that must be refused, and those that must be taken once.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

class TrainingRequestTest : public SharedServerTest {
 protected:
  void SetUp() override {
    SharedServerTest::SetUp();
    if (HasFatalFailure()) return;
    tenant_ = server().NewTenant();
    owner_ = std::make_unique<Client>(server().Owner(tenant_));
    dataset_ = UploadGraph(*owner_, tenant_.name, MakeGraph(300));
    ASSERT_FALSE(dataset_.empty());
  }

  void TearDown() override {
    SharedServerTest::TearDown();
    if (owner_ != nullptr) {
      EXPECT_TRUE(VerifyChain(*owner_, dataset_).intact());
    }
  }

  void ExpectUntouched() {
    EXPECT_EQ(LedgerEntries(*owner_, dataset_).size(), 1U);
    EXPECT_EQ(GetBudget(*owner_, dataset_).reserved_units(), 0);
    v1::ListJobsRequest list;
    list.set_parent(tenant_.name);
    EXPECT_EQ(owner_->Call(&v1::TrainingService::Stub::ListJobs, list).value.jobs_size(), 0);
  }

  TenantAccess tenant_;
  std::unique_ptr<Client> owner_;
  std::string dataset_;
};

TEST_F(TrainingRequestTest, AnEpsilonOutOfRangeIsAnInvalidField) {
  for (const double epsilon : {0.0, -1.0, 1e-4, 100.5, 1e9, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity()}) {
    const auto answer = CreateJob(*owner_, JobRequest(dataset_, epsilon));
    EXPECT_THAT(answer.status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD)) << epsilon;
    EXPECT_THAT(ErrorMetadata(answer.status, "field"), ::testing::HasSubstr("epsilon")) << epsilon;
  }
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, ADeltaOutOfRangeIsAnInvalidField) {
  for (const double delta : {0.0, -0.1, 1.0, 2.0, 1e-16, std::numeric_limits<double>::quiet_NaN()}) {
    v1::CreateJobRequest request = JobRequest(dataset_, 1);
    request.mutable_spec()->set_delta(delta);
    const auto answer = CreateJob(*owner_, request);
    EXPECT_THAT(answer.status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD)) << delta;
    EXPECT_THAT(ErrorMetadata(answer.status, "field"), ::testing::HasSubstr("delta")) << delta;
  }
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, ADeltaAboveTheCapsDoesNotFitTheDataset) {
  v1::CreateJobRequest request = JobRequest(dataset_, 1);
  request.mutable_spec()->set_delta(0.3);
  const auto answer = CreateJob(*owner_, request);
  EXPECT_THAT(answer.status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::INVALID_FIELD));
  EXPECT_EQ(ErrorMetadata(answer.status, "field"), "delta");
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, AnotherTenantsDatasetIsRefusedInTheVeryWordsOfAnAbsentOne) {
  const TenantAccess other_tenant = server().NewTenant();
  const Client other = server().Owner(other_tenant);
  const std::string absent = absl::StrCat(tenant_.name, "/datasets/absent");
  // By its full name, with the stranger's own tenant as parent.
  v1::CreateJobRequest there = JobRequest(dataset_, 1);
  there.set_parent(other_tenant.name);
  v1::CreateJobRequest not_there = JobRequest(absent, 1);
  not_there.set_parent(other_tenant.name);
  const auto existing = CreateJob(other, there);
  const auto missing = CreateJob(other, not_there);
  EXPECT_THAT(existing.status, IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_THAT(missing.status, IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_EQ(absl::StrReplaceAll(existing.status.error_message(), {{dataset_, absent}}), missing.status.error_message());
  // And with the owner's tenant as parent.
  EXPECT_THAT(CreateJob(other, JobRequest(dataset_, 1)).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  v1::GetDatasetRequest get;
  get.set_name(dataset_);
  EXPECT_THAT(other.Call(&v1::DatasetService::Stub::GetDataset, get).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  v1::GetBudgetRequest budget;
  budget.set_name(OwnPopulation(dataset_));
  EXPECT_THAT(other.Call(&v1::BudgetService::Stub::GetBudget, budget).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, AnotherTenantsJobIsNotThere) {
  const auto created = CreateJob(*owner_, JobRequest(dataset_, 1));
  ASSERT_THAT(created.status, IsOk());
  const Client other = server().Owner(server().NewTenant());
  EXPECT_THAT(GetJob(other, created.value.name()).status, IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_THAT(CancelJob(other, created.value.name()).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_THAT(WatchUntil(other, created.value.name(), IsTerminal).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  v1::GetCertificateRequest certificate;
  certificate.set_name(created.value.name());
  EXPECT_THAT(other.Call(&v1::TrainingService::Stub::GetCertificate, certificate).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  WaitForJob(*owner_, created.value.name());
}

TEST_F(TrainingRequestTest, TheSameRequestTwiceIsOneJobAndOneReservation) {
  const v1::CreateJobRequest request = JobRequest(dataset_, 1);
  const auto first = CreateJob(*owner_, request);
  const auto second = CreateJob(*owner_, request);
  ASSERT_THAT(first.status, IsOk());
  ASSERT_THAT(second.status, IsOk());
  EXPECT_EQ(second.value.name(), first.value.name());
  WaitForJob(*owner_, first.value.name());
  const auto third = CreateJob(*owner_, request);
  ASSERT_THAT(third.status, IsOk());
  EXPECT_EQ(third.value.name(), first.value.name());
  const auto entries = LedgerEntries(*owner_, dataset_);
  EXPECT_EQ(CountEntries(entries, v1::LedgerEntry::RESERVE), 1);
  EXPECT_EQ(CountEntries(entries, v1::LedgerEntry::POST), 1);
}

TEST_F(TrainingRequestTest, AnotherRequestUnderTheSameIdIsRefused) {
  v1::CreateJobRequest request = JobRequest(dataset_, 1);
  const auto first = CreateJob(*owner_, request);
  ASSERT_THAT(first.status, IsOk());
  request.mutable_spec()->set_epsilon(2);
  const auto second = CreateJob(*owner_, request);
  EXPECT_THAT(second.status, IsError(grpc::StatusCode::ALREADY_EXISTS, v1::REQUEST_ID_REUSED));
  EXPECT_EQ(ErrorMetadata(second.status, "request_id"), request.request_id());
  WaitForJob(*owner_, first.value.name());
  EXPECT_EQ(CountEntries(LedgerEntries(*owner_, dataset_), v1::LedgerEntry::RESERVE), 1);
}

TEST_F(TrainingRequestTest, AMissingRequestIdIsAnInvalidField) {
  v1::CreateJobRequest request = JobRequest(dataset_, 1);
  request.clear_request_id();
  EXPECT_THAT(CreateJob(*owner_, request).status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, ValidateOnlyPlansAndPricesAndReservesNothing) {
  v1::CreateJobRequest request = JobRequest(dataset_, 1);
  request.set_validate_only(true);
  request.clear_request_id();
  const auto answer = CreateJob(*owner_, request);
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_EQ(answer.value.name(), "");
  EXPECT_EQ(answer.value.plan().method(), v1::FEATURES);
  EXPECT_EQ(answer.value.plan().training_slots(), 120);
  EXPECT_EQ(answer.value.plan().gradient_clip(), 0.3);
  EXPECT_EQ(answer.value.plan().momentum(), 0.9);
  EXPECT_GE(answer.value.plan().steps(), 30);
  EXPECT_LE(answer.value.plan().steps(), 150);
  EXPECT_GT(answer.value.plan().price_units(), 0);
  EXPECT_EQ(answer.value.plan().left_units(),
            GetBudget(*owner_, dataset_).left_units() - answer.value.plan().price_units());
  // 1/(10 N) = 8.33e-4, rounded down to one digit.
  EXPECT_DOUBLE_EQ(answer.value.plan().delta(), 8e-4);
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, AMethodThatReadsEdgesIsRefusedOnADatasetWithoutADegreePromise) {
  for (const v1::Method method : {v1::GAP, v1::SAGE}) {
    v1::CreateJobRequest request = JobRequest(dataset_, 1);
    request.mutable_spec()->set_method(method);
    EXPECT_THAT(CreateJob(*owner_, request).status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::INVALID_FIELD))
        << v1::Method_Name(method);
  }
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, ASeedOnPrivateDataIsRefused) {
  for (const bool validate_only : {false, true}) {
    v1::CreateJobRequest seeded = JobRequest(dataset_, 1);
    seeded.mutable_spec()->set_seed(0);
    seeded.set_validate_only(validate_only);
    const auto answer = CreateJob(*owner_, seeded);
    EXPECT_THAT(answer.status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::INVALID_FIELD));
    EXPECT_EQ(ErrorMetadata(answer.status, "field"), "seed");
  }
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, APreviewSaysWhatEachStageCostsAndHowLongItTakes) {
  v1::CreateJobRequest request = JobRequest(dataset_, 2);
  request.set_validate_only(true);
  request.mutable_spec()->mutable_evaluation()->set_held_out_share(0.2);
  request.mutable_spec()->mutable_evaluation()->set_budget_share(0.1);
  const auto answer = CreateJob(*owner_, request);
  ASSERT_THAT(answer.status, IsOk());
  const v1::Job& job = answer.value;
  int64_t units = 0;
  for (const v1::StagePrice& stage : job.stages()) {
    units += stage.units();
    EXPECT_GT(stage.epsilon(), 0) << stage.stage();
    EXPECT_LT(stage.epsilon(), job.plan().epsilon()) << stage.stage();
  }
  ASSERT_GE(job.stages_size(), 3);
  EXPECT_EQ(job.stages(job.stages_size() - 3).stage(), "dp-sgd");
  EXPECT_EQ(job.stages(job.stages_size() - 2).stage(), "class-shares");
  EXPECT_EQ(job.stages(job.stages_size() - 1).stage(), "evaluation");
  // Each stage is rounded up by itself.
  EXPECT_NEAR(static_cast<double>(units), static_cast<double>(job.plan().price_units()), 5.0);
  EXPECT_GT(job.memory_bytes(), 0);
  EXPECT_GT(job.estimated_time().seconds() + job.estimated_time().nanos(), 0);
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, NoNoiseOnPrivateDataIsRefusedWhateverElseIsAsked) {
  for (const double epsilon : {0.0, 1.0}) {
    for (const bool validate_only : {false, true}) {
      v1::CreateJobRequest noiseless = JobRequest(dataset_, epsilon);
      noiseless.mutable_spec()->set_non_private(true);
      noiseless.set_validate_only(validate_only);
      const auto answer = CreateJob(*owner_, noiseless);
      EXPECT_THAT(answer.status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::INVALID_FIELD));
      EXPECT_EQ(ErrorMetadata(answer.status, "field"), "non_private");
    }
  }
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, OptionsOutOfRangeOrOfAnotherMethodAreInvalidFields) {
  const auto field = [&](v1::Method method, const std::function<void(v1::TrainingOptions&)>& change) {
    v1::CreateJobRequest request = JobRequest(dataset_, 1);
    request.mutable_spec()->set_method(method);
    change(*request.mutable_spec()->mutable_options());
    const auto answer = CreateJob(*owner_, request);
    EXPECT_THAT(answer.status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
    return ErrorMetadata(answer.status, "field");
  };
  EXPECT_EQ(field(v1::FEATURES, [](auto& o) { o.set_batch_size(121); }), "options.batch_size");
  EXPECT_EQ(field(v1::FEATURES, [](auto& o) { o.set_gradient_clip(0); }), "options.gradient_clip");
  EXPECT_EQ(field(v1::FEATURES, [](auto& o) { o.set_top_k(2); }), "options.top_k");
  EXPECT_EQ(field(v1::DPAR_EM0, [](auto& o) { o.set_structure_share(1.5); }), "options.structure_share");
  EXPECT_EQ(field(v1::DPAR_EM0, [](auto& o) { o.set_row_clip(1); }), "options.row_clip");
  EXPECT_EQ(field(v1::DPAR_GM, [](auto& o) { o.set_appr_nodes(121); }), "options.appr_nodes");
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, ThePapersPresetAboveTheCapIsRefusedForItsRealCost) {
  v1::CreateJobRequest request = JobRequest(dataset_, 8);
  request.mutable_spec()->set_preset(v1::PAPER);
  request.mutable_spec()->mutable_options()->set_batch_size(8);
  const auto answer = CreateJob(*owner_, request);
  EXPECT_THAT(answer.status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::PRIVACY_BUDGET_EXHAUSTED));
  EXPECT_THAT(answer.status.error_message(), ::testing::HasSubstr("epsilon 8 is the paper's claim"));
  EXPECT_GT(std::stod(ErrorMetadata(answer.status, "asked_epsilon")), 8);
  ExpectUntouched();
}

TEST_F(TrainingRequestTest, AnAbsentOrMalformedDatasetNameIsRefused) {
  EXPECT_THAT(CreateJob(*owner_, JobRequest(absl::StrCat(tenant_.name, "/datasets/absent"), 1)).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  for (const std::string& name : {std::string(), std::string("absent"), absl::StrCat(tenant_.name, "/datasets/../x"),
                                  absl::StrCat(tenant_.name, "/jobs/x")}) {
    v1::CreateJobRequest request = JobRequest(dataset_, 1);
    request.mutable_spec()->set_dataset(name);
    EXPECT_THAT(CreateJob(*owner_, request).status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD))
        << name;
  }
  ExpectUntouched();
}

}  // namespace
}  // namespace dpar::e2e
