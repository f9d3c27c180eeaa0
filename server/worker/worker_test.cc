#include "server/worker/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "core/graph/sealed_format.h"
#include "core/plan/plan_event.h"
#include "prometheus/text_serializer.h"
#include "server/files.h"
#include "server/observe/metrics.h"
#include "server/witness/witness.h"
#include "server/worker/testing/worker_fixture.h"

namespace dpar {
namespace {

using testing::kDataset;
using testing::kJob;
using testing::kLongRun;
using testing::kPopulation;

using Entry = v1::LedgerEntry;
using ::testing::ElementsAre;

class WorkerTest : public testing::WorkerFixture {};

constexpr char kLarge[] = "tenants/acme/datasets/large";
constexpr GeneratorOptions kLargeGraph = {.nodes = 20'000, .features = 200, .features_per_node = 50};

TEST_F(WorkerTest, AJobEndsWithAModelACertificateAndOnePostedEntry) {
  ASSERT_TRUE(Submit(5).ok());
  ASSERT_TRUE(worker_.Start().ok());
  const v1::Job job = AwaitState(v1::Job::SUCCEEDED);
  EXPECT_EQ(job.attempts(), 1);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
  const Statement statement = VerifiedStatement();
  EXPECT_EQ(statement.plan.epsilon(), 1);
  EXPECT_EQ(statement.ledger_sequence, 3);
  EXPECT_FALSE(statement.evaluation.has_value());
  EXPECT_FALSE(job.has_evaluation());
}

TEST_F(WorkerTest, AnEvaluationStandsInTheJobAndInItsCertificate) {
  v1::TrainingSpec spec = Spec();
  spec.mutable_evaluation()->set_held_out_share(0.2);
  spec.mutable_evaluation()->set_budget_share(0.2);
  ASSERT_TRUE(Submit(spec).ok());
  ASSERT_TRUE(worker_.Start().ok());
  const v1::Job job = AwaitState(v1::Job::SUCCEEDED);
  ASSERT_TRUE(job.has_evaluation());
  EXPECT_EQ(job.evaluation().held_out_slots(), 60);
  EXPECT_LE(job.evaluation().low(), job.evaluation().accuracy());
  EXPECT_LE(job.evaluation().accuracy(), job.evaluation().high());
  const Statement statement = VerifiedStatement();
  ASSERT_TRUE(statement.evaluation.has_value());
  EXPECT_EQ(statement.evaluation->SerializeAsString(), job.evaluation().SerializeAsString());
}

TEST_F(WorkerTest, AStructureMethodPostsBothItsStages) {
  v1::TrainingSpec spec = Spec();
  spec.set_method(v1::DPAR_GM);
  ASSERT_TRUE(Submit(spec).ok());
  ASSERT_TRUE(worker_.Start().ok());
  AwaitState(v1::Job::SUCCEEDED);
  std::vector<std::string> stages;
  for (const Stage& stage : StagesOf(VerifiedStatement().plan.event())) {
    stages.push_back(stage.name);
  }
  EXPECT_THAT(stages, ::testing::IsSupersetOf({"dp-appr", "dp-sgd"}));
}

TEST_F(WorkerTest, AMethodThatReadsEdgesIsRefusedWithoutADegreePromiseAndCertifiedUnderOne) {
  for (const v1::Method method : {v1::SAGE, v1::GAP}) {
    v1::TrainingSpec spec = Spec();
    spec.set_method(method);
    const absl::Status refused = Submit(spec).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  }
  // As an upload with a promise leaves them.
  ASSERT_TRUE(Write([](Transaction& t) -> absl::Status {
                DPAR_RETURN_IF_ERROR(t.Execute("UPDATE datasets SET max_degree = 200", {}).status());
                DPAR_ASSIGN_OR_RETURN(const v1::Dataset dataset, GetDataset(t, kDataset));
                return NarrowToDegree(t, dataset.population(), 200);
              }).ok());
  v1::TrainingSpec spec = Spec();
  spec.set_method(v1::GAP);
  spec.mutable_options()->set_steps(10);
  const absl::StatusOr<v1::Job> submitted = Submit(spec);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  ASSERT_TRUE(worker_.Start().ok());
  AwaitState(v1::Job::SUCCEEDED);
  const Statement statement = VerifiedStatement();
  EXPECT_EQ(statement.plan.max_degree(), 200);
  EXPECT_EQ(statement.max_degree, 200);
  EXPECT_EQ(statement.cap_max_degree, 200);
  std::vector<std::string> stages;
  for (const Stage& stage : StagesOf(statement.plan.event())) {
    stages.push_back(stage.name);
  }
  EXPECT_THAT(stages, ElementsAre("encoder", "aggregation", "dp-sgd"));
}

TEST_F(WorkerTest, PublicDataIsTrainedWithoutNoiseWhenAskedTo) {
  AddDataset("tenants/acme/datasets/public", {.nodes = 300, .features = 40}, /*is_public=*/true);
  v1::TrainingSpec spec;
  spec.set_dataset("tenants/acme/datasets/public");
  spec.set_non_private(true);
  const absl::StatusOr<v1::Job> submitted = Submit(spec);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_FALSE(submitted->spec().has_delta());
  EXPECT_EQ(submitted->plan().price_units(), 0);
  ASSERT_TRUE(worker_.Start().ok());
  AwaitState(v1::Job::SUCCEEDED);
  EXPECT_TRUE(VerifiedStatement().is_public);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN));
}

// The count, too, says how a job ended.
TEST_F(WorkerTest, AJobsEndIsCountedOnlyOnceItIsMarked) {
  std::atomic<int> failures = 0;
  Witness witness(store_.database(), store_.directory().root() + "/witness", [&failures] { ++failures; });
  ASSERT_TRUE(witness.Begin().ok());
  Metrics metrics;
  const auto counted = [&metrics] {
    return absl::StrContains(prometheus::TextSerializer().Serialize(metrics.Collect()),
                             "dpar_jobs_ended_total{state=\"succeeded\"} 1\n");
  };
  WorkerOptions options = Options();
  options.metrics = &metrics;
  options.witness = &witness;
  Worker worker(store_.database(), store_.directory(), Key(), board_, options);
  {
    const auto lock = witness.marks().Lock("tenants/acme");
    ASSERT_TRUE(lock.ok()) << lock.status();
    ASSERT_TRUE(Submit(5).ok());
    ASSERT_TRUE(worker.Start().ok());
    AwaitState(v1::Job::SUCCEEDED);
    const bool early = counted();
    // The mark waits some seconds for the lock. If this took longer, it was given up, and nothing is shown here.
    EXPECT_TRUE(!early || failures > 0);
    EXPECT_EQ(witness.marks().Read(kPopulation).value(), std::nullopt);
  }
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (!counted() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_TRUE(counted());
  EXPECT_TRUE(failures > 0 || witness.marks().Read(kPopulation).value().has_value());
}

TEST_F(WorkerTest, CancellingARunningJobStopsAndVoidsIt) {
  ASSERT_TRUE(Submit(kLongRun).ok());
  ASSERT_TRUE(worker_.Start().ok());
  AwaitTraining();
  ASSERT_TRUE(Cancel().ok());
  worker_.Notify(kJob);
  AwaitState(v1::Job::CANCELLED);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::VOID));
  EXPECT_FALSE(HasFiles());
}

TEST_F(WorkerTest, ACancelInsideDpApprTakesLessThanASecondAndTheStageShowsNoCounters) {
  AddDataset(kLarge, kLargeGraph, /*is_public=*/false);
  v1::TrainingSpec spec = Spec();
  spec.set_dataset(kLarge);
  spec.set_method(v1::DPAR_GM);
  // Minutes of work: every row reaches the whole graph.
  spec.mutable_options()->set_appr_nodes(20'000);
  spec.mutable_options()->set_rho(1e-5);
  spec.mutable_options()->set_gamma(1e-9);
  const absl::StatusOr<v1::Job> submitted = Submit(spec);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  ASSERT_TRUE(worker_.Start().ok());
  const Progress progress = AwaitStage("structure");
  EXPECT_EQ(progress.total, 0);
  EXPECT_EQ(progress.epsilon_so_far, 0);
  absl::SleepFor(absl::Milliseconds(300));
  ExpectPromptCancel("structure");
}

TEST_F(WorkerTest, ACancelInsideALongStepTakesLessThanASecond) {
  AddDataset(kLarge, kLargeGraph, /*is_public=*/false);
  v1::TrainingSpec spec = Spec();
  spec.set_dataset(kLarge);
  // Seconds a step.
  spec.mutable_options()->set_hidden_size(4096);
  const absl::StatusOr<v1::Job> submitted = Submit(spec);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  ASSERT_TRUE(worker_.Start().ok());
  AwaitStage("training");
  absl::SleepFor(absl::Milliseconds(300));
  ExpectPromptCancel("training");
}

TEST_F(WorkerTest, ACancelThatComesBeforeTheReleaseWins) {
  ASSERT_TRUE(Submit(kLongRun).ok());
  ASSERT_TRUE(worker_.Start().ok());
  AwaitTraining();
  // Without a notice the worker finds it when it renews its lease, or when it is about to release.
  ASSERT_TRUE(Cancel().ok());
  AwaitState(v1::Job::CANCELLED);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::VOID));
  EXPECT_FALSE(HasFiles());
}

TEST_F(WorkerTest, AFinishedJobCannotBeCancelled) {
  ASSERT_TRUE(Submit(2).ok());
  ASSERT_TRUE(worker_.Start().ok());
  AwaitState(v1::Job::SUCCEEDED);
  EXPECT_EQ(Cancel().status().code(), absl::StatusCode::kFailedPrecondition);
}

// Bits of the header, of every section and of the last byte, and a file that is no graph at all.
TEST_F(WorkerTest, ADamagedDatasetIsPaidBackAndOutOfService) {
  const std::string file = store_.directory().DatasetFile(kDataset);
  const std::string whole = ReadWholeFile(file).value();
  SealedHeader header;
  std::memcpy(&header, whole.data(), sizeof(header));
  std::vector<std::string> damaged = {"not a graph", whole.substr(0, whole.size() / 2)};
  std::vector<size_t> places = {0, offsetof(SealedHeader, node_count), offsetof(SealedHeader, checksum),
                                whole.size() - 1};
  for (const SealedSection& section : header.sections) {
    places.push_back(section.offset);
    places.push_back(section.offset + section.bytes - 1);
  }
  for (const size_t place : places) {
    damaged.push_back(whole);
    damaged.back()[place] = static_cast<char>(damaged.back()[place] ^ 4);
  }
  ASSERT_TRUE(worker_.Start().ok());
  for (size_t i = 0; i < damaged.size(); ++i) {
    SCOPED_TRACE(i);
    job_ = absl::StrCat("tenants/acme/jobs/j", i);
    ASSERT_TRUE(WriteFileDurably(file, damaged[i], 0600).ok());
    ASSERT_TRUE(Submit(5).ok());
    worker_.Notify(job_);
    const v1::Job job = AwaitState(v1::Job::FAILED);
    EXPECT_EQ(job.attempts(), 1);
    EXPECT_THAT(job.failure(), ::testing::StartsWith("the dataset's stored file is damaged; nothing was computed from "
                                                     "it, and the price was given back"));
    EXPECT_EQ(LastEntry().kind(), Entry::VOID);
    EXPECT_EQ(LastEntry().attempt(), 0) << "it does not count as opened, so it uses up no free void";
    EXPECT_FALSE(HasFiles());
    // New jobs are refused before anything is reserved, also once the file is whole again: an operator says when.
    job_ = absl::StrCat(job_, "-next");
    const size_t entries = Kinds().size();
    const absl::Status refused = Submit(5).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(GetErrorInfo(refused)->reason(), "DATASET_OUT_OF_SERVICE");
    EXPECT_EQ(Kinds().size(), entries);
    EXPECT_TRUE(Write([](Transaction& t) { return SetOutOfService(t, kDataset, ""); }).ok());
  }
  job_ = "tenants/acme/jobs/whole";
  ASSERT_TRUE(WriteFileDurably(file, whole, 0600).ok());
  ASSERT_TRUE(Submit(5).ok());
  worker_.Notify(job_);
  AwaitState(v1::Job::SUCCEEDED);
}

TEST_F(WorkerTest, ADatasetThatIsDamagedAfterAnAttemptOpenedItIsPosted) {
  ASSERT_TRUE(Submit(5).ok());
  LeaseAndDie();
  ASSERT_TRUE(WriteFileDurably(store_.directory().DatasetFile(kDataset), "not a graph", 0600).ok());
  ASSERT_TRUE(worker_.Start().ok());
  EXPECT_EQ(AwaitState(v1::Job::FAILED).failure(),
            "the job failed after its data was opened; its price was posted in full");
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
}

TEST_F(WorkerTest, ARunningJobIsCancelledForNothingThreeTimesForABudget) {
  ASSERT_TRUE(worker_.Start().ok());
  for (int i = 0; i < 4; ++i) {
    job_ = absl::StrCat("tenants/acme/jobs/j", i);
    ASSERT_TRUE(Submit(kLongRun, 0.1).ok());
    worker_.Notify(job_);
    AwaitTraining();
    ASSERT_TRUE(Cancel().ok());
    worker_.Notify(job_);
    const v1::Job job = AwaitState(v1::Job::CANCELLED);
    EXPECT_EQ(LastEntry().kind(), i < 3 ? Entry::VOID : Entry::POST);
    EXPECT_EQ(job.failure(), i < 3 ? "" : kPostedAtCancel);
  }
  // A job that never ran is given back all the same.
  worker_.Stop();
  job_ = "tenants/acme/jobs/queued";
  ASSERT_TRUE(Submit(5, 0.1).ok());
  EXPECT_EQ(Cancel().value().state(), v1::Job::CANCELLED);
  EXPECT_EQ(LastEntry().kind(), Entry::VOID);
}

TEST_F(WorkerTest, ADatasetFileThatCannotBeOpenedIsRetriedAndThenVoided) {
  ASSERT_TRUE(Submit(5).ok());
  ASSERT_TRUE(RemoveTree(store_.directory().DatasetFile(kDataset)).ok());
  ASSERT_TRUE(worker_.Start().ok());
  EXPECT_EQ(AwaitState(v1::Job::FAILED).attempts(), 2);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::VOID));
}

TEST_F(WorkerTest, ADatasetSealedByANewerProgramIsRetriedAndThenVoided) {
  ASSERT_TRUE(Submit(5).ok());
  const std::string file = store_.directory().DatasetFile(kDataset);
  std::string bytes = ReadWholeFile(file).value();
  SealedHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.version = kSealedVersion + 1;
  header.checksum = ChecksumOf(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
  ASSERT_TRUE(WriteFileDurably(file, bytes, 0600).ok());
  ASSERT_TRUE(worker_.Start().ok());
  EXPECT_EQ(AwaitState(v1::Job::FAILED).attempts(), 2);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::VOID));
}

TEST_F(WorkerTest, ADeviceThatIsNotThereStopsTheStart) {
  WorkerOptions options = Options();
  options.device = "cuda:99";
  Worker worker(store_.database(), store_.directory(), Key(), board_, options);
  EXPECT_EQ(worker.Start().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(WorkerTest, AFinishedJobWaitsForItsSigningKeyAndIsSignedByTheOneOfThatMoment) {
  ASSERT_TRUE(Submit(5).ok());
  std::atomic<int> asked = 0;
  Worker worker(
      store_.database(), store_.directory(),
      [&]() -> absl::StatusOr<SigningKey> {
        // Asked for before a release and within it: it is gone the first time before, then within.
        const int call = ++asked;
        if (call == 1 || call == 3) {
          return absl::UnavailableError("the key is not there for the moment");
        }
        return key_;
      },
      board_, Options());
  ASSERT_TRUE(worker.Start().ok());
  EXPECT_EQ(AwaitState(v1::Job::SUCCEEDED).attempts(), 1);
  worker.Stop();
  EXPECT_EQ(asked, 5);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
  const Statement statement = VerifiedStatement();
  EXPECT_EQ(statement.ledger_sequence, 3);
  EXPECT_EQ(statement.units_before, 0);
  EXPECT_EQ(statement.entry_attempt, 1);
  EXPECT_EQ(statement.entry_actor, "worker");
}

}  // namespace
}  // namespace dpar
