#include "server/worker/submit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "server/worker/testing/worker_fixture.h"

namespace dpar {
namespace {

using testing::kBudget;
using testing::kDataset;
using testing::kJob;
using testing::kLimits;

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
  ASSERT_TRUE(Write([&](Transaction& t) {
                return Reserve(t, kBudget, "tenants/acme/jobs/other", *planned.price, {"token", absl::Now()}).status();
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

}  // namespace
}  // namespace dpar
