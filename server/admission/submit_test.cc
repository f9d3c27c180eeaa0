#include "server/admission/submit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "server/store/read_from.h"
#include "server/worker/testing/worker_fixture.h"

namespace dpar {
namespace {

using testing::kDataset;
using testing::kJob;
using testing::kLimits;
using testing::kPopulation;

using Entry = v1::LedgerEntry;
using ::testing::ElementsAre;

class SubmitTest : public testing::WorkerFixture {};

TEST_F(SubmitTest, PrivateDataIsNeverTrainedWithoutNoise) {
  v1::TrainingSpec spec = Spec(0);
  spec.set_non_private(true);
  const absl::Status status = Submit(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(status)->reason(), "INVALID_FIELD");
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "non_private");
  EXPECT_EQ(Write([](Transaction& t) { return GetJob(t, kJob).status(); }).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN));
}

TEST_F(SubmitTest, PrivateDataIsNeverTrainedOnAStreamThatTheCallerKnows) {
  v1::TrainingSpec spec = Spec(1);
  spec.set_seed(0);
  const absl::Status status = Submit(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(status)->reason(), "INVALID_FIELD");
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "seed");
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN));
}

TEST_F(SubmitTest, AJobsDeltaIsAtMostItsCaps) {
  v1::TrainingSpec spec = Spec(0.01);
  spec.set_delta(0.3);
  const absl::Status status = Submit(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(status)->reason(), "INVALID_FIELD");
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "delta");
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("max_delta"), "1e-05");
  EXPECT_EQ(status.message(),
            "delta 0.3 is above 1e-05, the delta of the population's cap; leave it out or ask for less");
  spec.set_delta(std::nextafter(1e-5, 1));
  EXPECT_FALSE(Submit(spec).ok());
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN));
  spec.set_delta(1e-5);
  EXPECT_TRUE(Submit(spec).ok());
}

TEST_F(SubmitTest, CancellingAQueuedJobVoidsIt) {
  ASSERT_TRUE(Submit(5).ok());
  EXPECT_EQ(Cancel()->state(), v1::Job::CANCELLED);
  EXPECT_EQ(Cancel()->state(), v1::Job::CANCELLED) << "cancelling again changes nothing";
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::VOID));
}

TEST_F(SubmitTest, AJobThatCannotFitIsRefusedWithTheEstimate) {
  const absl::Status refused = PlanJob(store_.database(), Spec(), {.max_job_bytes = 1000, .threads = 2}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  const auto metadata = GetErrorInfo(refused)->metadata();
  EXPECT_EQ(metadata.at("limit"), "max_job_bytes");
  EXPECT_EQ(metadata.at("maximum"), "1000");
  EXPECT_EQ(metadata.at("estimate"),
            absl::StrCat(PlanJob(store_.database(), Spec(), kLimits)->stored.job.memory_bytes()));
}

TEST_F(SubmitTest, AJobThatJustFitsIsPlannedAndOneByteLessIsTooLittle) {
  const int64_t needed = PlanJob(store_.database(), Spec(), kLimits)->stored.job.memory_bytes();
  EXPECT_TRUE(PlanJob(store_.database(), Spec(), {.max_job_bytes = needed, .threads = kLimits.threads}).ok());
  EXPECT_EQ(
      PlanJob(store_.database(), Spec(), {.max_job_bytes = needed - 1, .threads = kLimits.threads}).status().code(),
      absl::StatusCode::kResourceExhausted);
}

TEST_F(SubmitTest, PlanningReservesNothing) {
  absl::StatusOr<PlannedJob> planned = PlanJob(store_.database(), Spec(), kLimits);
  ASSERT_TRUE(planned.ok()) << planned.status();
  const v1::Job& job = planned->stored.job;
  EXPECT_EQ(job.name(), "");
  EXPECT_EQ(job.spec().delta(), 1e-5) << "the cap's delta is the default";
  EXPECT_GT(job.plan().price_units(), 0);
  ASSERT_TRUE(Write([&](Transaction& t) { return CheckPlannedJob(t, *planned); }).ok());
  EXPECT_GT(job.plan().left_units(), 0);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN));
}

TEST_F(SubmitTest, AJobIsNotQueuedOnADatasetThatWasDeletedWhileItWasPlanned) {
  const PlannedJob planned = *PlanJob(store_.database(), Spec(), kLimits);
  ASSERT_TRUE(Write([](Transaction& t) { return MarkDatasetDeleted(t, kDataset, absl::Now()); }).ok());
  EXPECT_EQ(Submit(planned).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN));
}

TEST_F(SubmitTest, WhatIsLeftIsCountedWhenTheJobIsQueuedNotWhenItWasPlanned) {
  const PlannedJob planned = *PlanJob(store_.database(), Spec(), kLimits);
  ASSERT_TRUE(
      Write([&](Transaction& t) {
        return Reserve(t, kPopulation, "tenants/acme/jobs/other", *planned.price, {"token", absl::Now()}).status();
      }).ok());
  const v1::Job job = *Submit(planned);
  EXPECT_EQ(job.plan().left_units(), MakeBudgetTerms(8, 1e-5)->cap_units - 2 * job.plan().price_units());
}

TEST_F(SubmitTest, ThePapersPresetIsRefusedForWhatItsNoiseCosts) {
  v1::TrainingSpec spec = Spec(8);
  spec.set_preset(v1::PAPER);
  spec.mutable_options()->set_batch_size(20);
  const absl::Status status = Submit(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  ASSERT_TRUE(GetErrorInfo(status).has_value());
  EXPECT_EQ(GetErrorInfo(status)->reason(), "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("epsilon 8 is the paper's claim"));
}

TEST_F(SubmitTest, ARefusedJobIsNotQueued) {
  const absl::Status status = Submit(5, 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(status)->reason(), "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_EQ(Write([](Transaction& t) { return GetJob(t, kJob).status(); }).code(), absl::StatusCode::kNotFound);
}

// Requests for jobs on a dataset whose budget pays for one of them, on each engine.
class SubmitOnceTest : public ::testing::TestWithParam<testing::Engine> {
 protected:
  void SetUp() override {
    v1::Dataset dataset;
    dataset.set_name(kDataset);
    dataset.set_node_count(300);
    dataset.set_feature_count(40);
    dataset.set_class_count(3);
    dataset.set_content_digest(std::string(64, 'a'));
    dataset.set_population(kPopulation);
    ASSERT_TRUE(
        store_.database()
            .Write([&](Transaction& t) -> absl::Status {
              DPAR_RETURN_IF_ERROR(InsertTenant(t, "acme", "k", absl::Now()));
              DPAR_RETURN_IF_ERROR(OpenBudget(t, kPopulation, *MakeBudgetTerms(1, 1e-5), {"server", absl::Now()}));
              return InsertDataset(t, dataset, 10);
            })
            .ok());
    request_.set_parent("tenants/acme");
    request_.set_request_id("r");
    request_.mutable_spec()->set_dataset(kDataset);
    request_.mutable_spec()->set_epsilon(0.9);
  }

  absl::StatusOr<v1::Job> Submit(const v1::CreateJobRequest& request) {
    DPAR_ASSIGN_OR_RETURN(const PlannedJob planned, PlanJob(store_.database(), request.spec(), kLimits));
    return SubmitOnce(store_.database(), planned, MakeJobRequest(request), 10, {"token", absl::Now()});
  }
  absl::StatusOr<std::optional<v1::Job>> Recalled(const v1::CreateJobRequest& request) {
    return ReadFrom(store_.database(), [&](Transaction& t) { return RecallJob(t, MakeJobRequest(request)); });
  }
  size_t Reservations() {
    return ReadFrom(store_.database(), [](Transaction& t) { return ListEntries(t, kPopulation, 1, 100); })->size();
  }

  testing::TemporaryStore store_{GetParam()};
  v1::CreateJobRequest request_;
};

TEST_P(SubmitOnceTest, ARequestThatIsSentAgainGivesTheFirstAnswerThoughTheBudgetIsUsedUp) {
  EXPECT_FALSE(Recalled(request_)->has_value());
  const v1::Job first = *Submit(request_);
  EXPECT_EQ(first.state(), v1::Job::QUEUED);
  EXPECT_NE(first.plan().left_units(), 0);
  // It may have run meanwhile.
  ASSERT_TRUE(
      store_.database()
          .Write([&](Transaction& t) {
            return Lease(t, {"server", absl::Now(), absl::Minutes(1), 10, int64_t{1} << 40, int64_t{1} << 40}).status();
          })
          .ok());
  const absl::StatusOr<v1::Job> again = Submit(request_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), first.SerializeAsString());
  EXPECT_EQ((*Recalled(request_))->SerializeAsString(), first.SerializeAsString());
  EXPECT_EQ(Reservations(), 1U);
}

TEST_P(SubmitOnceTest, TheSameRequestManyTimesAtOnceMakesOneJob) {
  constexpr size_t kClients = 8;
  const PlannedJob planned = *PlanJob(store_.database(), request_.spec(), kLimits);
  std::vector<absl::StatusOr<v1::Job>> answers(kClients, absl::UnknownError("not sent"));
  std::vector<std::thread> clients;
  for (absl::StatusOr<v1::Job>& answer : answers) {
    clients.emplace_back([&] {
      answer = SubmitOnce(store_.database(), planned, MakeJobRequest(request_), 10, {"token", absl::Now()});
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  for (const absl::StatusOr<v1::Job>& answer : answers) {
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->SerializeAsString(), answers[0]->SerializeAsString());
  }
  EXPECT_EQ(Reservations(), 1U);
}

TEST_P(SubmitOnceTest, AnIdThatWasUsedForAnotherRequestIsRefused) {
  ASSERT_TRUE(Submit(request_).ok());
  v1::CreateJobRequest other = request_;
  other.mutable_spec()->set_epsilon(0.1);
  for (const absl::Status& status : {Submit(other).status(), Recalled(other).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(GetErrorInfo(status)->reason(), "REQUEST_ID_REUSED");
  }
  other.set_parent("tenants/other");
  EXPECT_NE(MakeJobRequest(other).name.substr(sizeof("tenants/other/jobs")),
            MakeJobRequest(request_).name.substr(sizeof("tenants/acme/jobs")))
      << "names of one tenant's jobs say nothing about another's requests";
}

TEST_P(SubmitOnceTest, ARefusalIsNotRemembered) {
  v1::CreateJobRequest large = request_;
  large.mutable_spec()->set_epsilon(50);
  EXPECT_EQ(GetErrorInfo(Submit(large).status())->reason(), "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_FALSE(Recalled(large)->has_value());
  EXPECT_TRUE(Submit(request_).ok());
}

INSTANTIATE_TEST_SUITE_P(Engines, SubmitOnceTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
