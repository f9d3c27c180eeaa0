#include "server/worker/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "absl/time/clock.h"
#include "core/certificate/certificate.h"
#include "core/error.h"
#include "core/graph/generate.h"
#include "core/graph/sealed_format.h"
#include "core/graph/sealed_graph.h"
#include "core/plan/plan_event.h"
#include "core/random/testing/fixed_random.h"
#include "core/status_macros.h"
#include "server/ledger/ledger.h"
#include "server/store/datasets.h"
#include "server/store/testing/temporary_store.h"
#include "server/worker/submit.h"

namespace dpar {
namespace {

using ::dpar::testing::TemporaryStore;

constexpr char kDataset[] = "tenants/acme/datasets/d";
constexpr char kJob[] = "tenants/acme/jobs/j";
constexpr char kBudget[] = "b";

class WorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_RETURN_IF_ERROR(InsertTenant(t, "acme", "k", absl::Now()));
                  return OpenBudget(t, kBudget, *MakeBudgetTerms(8, 1e-5), {"server", absl::Now()});
                }).ok());
    AddDataset(kDataset, {.nodes = 300, .features = 40}, /*is_public=*/false);
  }

  void AddDataset(const std::string& name, const GeneratorOptions& options, bool is_public) {
    dpar::testing::FixedRandom random(1);
    const Graph graph = *GenerateGraph(options, random);
    const std::string file = store_.directory().DatasetFile(name);
    ASSERT_TRUE(MakeParentDirectory(file).ok());
    ASSERT_TRUE(WriteSealedGraph(file, graph).ok());
    StoredDataset dataset;
    dataset.dataset.set_name(name);
    dataset.dataset.set_is_public(is_public);
    dataset.dataset.set_node_count(graph.sizes.node_count);
    dataset.dataset.set_feature_count(graph.sizes.feature_count);
    dataset.dataset.set_class_count(graph.sizes.class_count);
    dataset.dataset.set_content_digest(std::string(64, 'a'));
    dataset.budget_id = is_public ? "" : kBudget;
    ASSERT_TRUE(Write([&](Transaction& t) { return InsertDataset(t, dataset, 10); }).ok());
  }

  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }

  static v1::TrainingSpec Spec(double epsilon = 1) {
    v1::TrainingSpec spec;
    spec.set_dataset(kDataset);
    spec.set_epsilon(epsilon);
    return spec;
  }
  absl::StatusOr<v1::Job> Submit(const PlannedJob& planned) {
    absl::StatusOr<v1::Job> job;
    const absl::Status status = Write([&](Transaction& t) {
      job = SubmitJob(t, planned, kJob, 10, {"token", absl::Now()});
      return job.status();
    });
    return status.ok() ? job : status;
  }
  absl::StatusOr<v1::Job> Submit(const v1::TrainingSpec& spec) {
    DPAR_ASSIGN_OR_RETURN(const PlannedJob planned, PlanJob(store_.database(), spec));
    return Submit(planned);
  }
  absl::StatusOr<v1::Job> Submit(int64_t steps, double epsilon = 1) {
    v1::TrainingSpec spec = Spec(epsilon);
    spec.mutable_options()->set_steps(steps);
    return Submit(spec);
  }
  absl::StatusOr<v1::Job> Cancel() {
    absl::StatusOr<v1::Job> job;
    const absl::Status status = Write([&](Transaction& t) {
      job = CancelJob(t, kJob, {"token", absl::Now()});
      return job.status();
    });
    return status.ok() ? job : status;
  }
  v1::Job Job() {
    v1::Job job;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const StoredJob stored, GetJob(t, kJob));
                  job = stored.job;
                  return absl::OkStatus();
                }).ok());
    return job;
  }
  // Waits, at most a minute, until the job is as asked or has ended.
  v1::Job Await(const std::function<bool(const v1::Job&)>& reached) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    v1::Job job = Job();
    while (!reached(job) && !job.has_end_time() && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(5));
      job = Job();
    }
    EXPECT_TRUE(reached(job)) << job.ShortDebugString();
    return job;
  }
  v1::Job AwaitState(v1::Job::State state) {
    return Await([state](const v1::Job& job) { return job.state() == state; });
  }
  // Waits, at most a minute, until the job shows progress as asked.
  Progress AwaitProgress(const std::function<bool(const Progress&)>& reached) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    int64_t seen = 0;
    while (absl::Now() < deadline) {
      const ProgressBoard::Snapshot snapshot = board_.Wait(kJob, seen, absl::Now() + absl::Seconds(1));
      seen = snapshot.sequence;
      if (snapshot.progress.has_value() && reached(*snapshot.progress)) {
        return *snapshot.progress;
      }
    }
    ADD_FAILURE() << "the job never got there";
    return {};
  }
  void AwaitTraining() {
    AwaitProgress([](const Progress& progress) { return progress.completed > 0; });
  }
  Progress AwaitStage(const std::string& stage) {
    return AwaitProgress([&](const Progress& progress) { return progress.stage == stage; });
  }
  // Cancels the running job and expects it to end within a second, before it completed anything of its stage.
  void ExpectPromptCancel(const std::string& stage) {
    const std::optional<Progress> last = board_.Wait(kJob, 0, absl::InfinitePast()).progress;
    const absl::Time asked = absl::Now();
    ASSERT_TRUE(Cancel().ok());
    worker_.Notify();
    AwaitState(v1::Job::CANCELLED);
    EXPECT_LT(absl::Now() - asked, absl::Seconds(1));
    ASSERT_TRUE(last.has_value());
    EXPECT_EQ(last->stage, stage);
    EXPECT_EQ(last->completed, 0);
    EXPECT_THAT(Kinds(),
                ::testing::ElementsAre(v1::LedgerEntry::OPEN, v1::LedgerEntry::RESERVE, v1::LedgerEntry::VOID));
  }
  // The job's certificate, every check of which must pass.
  Statement VerifiedStatement() {
    JobOutput output;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(output, GetOutput(t, kJob));
                  return absl::OkStatus();
                }).ok());
    const auto verification =
        VerifyCertificate(output.envelope, {key_.verifying_key()},
                          {store_.directory().WeightsFile(kJob), store_.directory().ScriptFile(kJob)});
    EXPECT_TRUE(verification.ok()) << verification.status();
    if (!verification.ok()) {
      return {};
    }
    for (const Check& check : verification->checks) {
      EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    }
    EXPECT_LE(verification->recomputed_epsilon, verification->statement.plan.epsilon());
    return verification->statement;
  }
  std::vector<v1::LedgerEntry::Kind> Kinds() {
    std::vector<v1::LedgerEntry::Kind> kinds;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const std::vector<v1::LedgerEntry> entries, ListEntries(t, kBudget, 0, 100));
                  for (const v1::LedgerEntry& entry : entries) {
                    kinds.push_back(entry.kind());
                  }
                  DPAR_ASSIGN_OR_RETURN(const v1::VerifyChainResponse chain, VerifyChain(t, kBudget));
                  EXPECT_TRUE(chain.intact()) << chain.fault();
                  return absl::OkStatus();
                }).ok());
    return kinds;
  }

  TemporaryStore store_;
  ProgressBoard board_;
  SigningKey key_ = *SigningKey::Generate();
  Worker worker_{store_.database(), store_.directory(), key_, board_, {.max_attempts = 2, .device = "cpu"}};
};

using Entry = v1::LedgerEntry;
using ::testing::ElementsAre;

// Long enough to be interrupted, short enough to end.
constexpr int64_t kLongRun = 20'000;

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

TEST_F(WorkerTest, PrivateDataIsNeverTrainedWithoutNoise) {
  v1::TrainingSpec spec = Spec(0);
  spec.set_non_private(true);
  const absl::Status status = Submit(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(status)->reason(), "INVALID_FIELD");
  EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "non_private");
  EXPECT_EQ(Write([](Transaction& t) { return GetJob(t, kJob).status(); }).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN));
}

TEST_F(WorkerTest, CancellingAQueuedJobVoidsIt) {
  ASSERT_TRUE(Submit(5).ok());
  EXPECT_EQ(Cancel()->state(), v1::Job::CANCELLED);
  EXPECT_EQ(Cancel()->state(), v1::Job::CANCELLED) << "cancelling again changes nothing";
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::VOID));
}

TEST_F(WorkerTest, CancellingARunningJobStopsAndVoidsIt) {
  ASSERT_TRUE(Submit(kLongRun).ok());
  ASSERT_TRUE(worker_.Start().ok());
  AwaitTraining();
  ASSERT_TRUE(Cancel().ok());
  worker_.Notify();
  AwaitState(v1::Job::CANCELLED);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::VOID));
  EXPECT_FALSE(std::filesystem::exists(store_.directory().WeightsFile(kJob)));
}

TEST_F(WorkerTest, ACancelInsideDpApprTakesLessThanASecondAndTheStageShowsNoCounters) {
  AddDataset(kLarge, kLargeGraph, /*is_public=*/false);
  v1::TrainingSpec spec = Spec();
  spec.set_dataset(kLarge);
  spec.set_method(v1::DPAR_GM);
  // Minutes of work: every row reaches the whole graph.
  spec.mutable_options()->set_appr_nodes(20'000);
  spec.mutable_options()->set_rho(1e-9);
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
  // Without a notice the worker finds it only when it is about to release.
  ASSERT_TRUE(Cancel().ok());
  AwaitState(v1::Job::CANCELLED);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::VOID));
  EXPECT_FALSE(std::filesystem::exists(store_.directory().WeightsFile(kJob)));
}

TEST_F(WorkerTest, AFinishedJobCannotBeCancelled) {
  ASSERT_TRUE(Submit(2).ok());
  ASSERT_TRUE(worker_.Start().ok());
  AwaitState(v1::Job::SUCCEEDED);
  EXPECT_EQ(Cancel().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(WorkerTest, StoppingPutsTheJobBackWithoutCountingTheAttempt) {
  ASSERT_TRUE(Submit(kLongRun).ok());
  ASSERT_TRUE(worker_.Start().ok());
  AwaitTraining();
  worker_.Stop();
  const v1::Job job = Job();
  EXPECT_EQ(job.state(), v1::Job::QUEUED);
  EXPECT_EQ(job.attempts(), 0);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE));
}

TEST_F(WorkerTest, AJobThatACrashLeftRunningRunsAgainUnderTheSameReservation) {
  ASSERT_TRUE(Submit(5).ok());
  ASSERT_TRUE(Write([](Transaction& t) { return Lease(t, absl::Now()).status(); }).ok());
  ASSERT_TRUE(MakeParentDirectory(store_.directory().WeightsFile(kJob)).ok());
  ASSERT_TRUE(WriteFileDurably(store_.directory().WeightsFile(kJob), "half a model", 0600).ok());
  ASSERT_TRUE(worker_.Start().ok());
  EXPECT_EQ(AwaitState(v1::Job::SUCCEEDED).attempts(), 2);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
}

TEST_F(WorkerTest, AJobThatCrashedTooOftenFailsAndIsVoided) {
  ASSERT_TRUE(Submit(5).ok());
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (attempt > 0) {
      ASSERT_TRUE(Write([](Transaction& t) { return Requeue(t, kJob, true); }).ok());
    }
    ASSERT_TRUE(Write([](Transaction& t) { return Lease(t, absl::Now()).status(); }).ok());
  }
  ASSERT_TRUE(worker_.Start().ok());
  const v1::Job job = AwaitState(v1::Job::FAILED);
  EXPECT_THAT(job.failure(), ::testing::HasSubstr("given back"));
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::VOID));
}

TEST_F(WorkerTest, ADatasetThatCannotBeParsedPostsTheFullPriceWithAFixedMessage) {
  ASSERT_TRUE(Submit(5).ok());
  ASSERT_TRUE(WriteFileDurably(store_.directory().DatasetFile(kDataset), "not a graph", 0600).ok());
  ASSERT_TRUE(worker_.Start().ok());
  const v1::Job job = AwaitState(v1::Job::FAILED);
  EXPECT_EQ(job.failure(), "the job failed after its data was opened; its price was posted in full");
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
}

TEST_F(WorkerTest, ADatasetWithOneDamagedByteIsNotTrainedOnAndPostsTheFullPrice) {
  ASSERT_TRUE(Submit(5).ok());
  const std::string file = store_.directory().DatasetFile(kDataset);
  std::string bytes = ReadWholeFile(file).value();
  bytes.back() ^= 1;
  ASSERT_TRUE(WriteFileDurably(file, bytes, 0600).ok());
  ASSERT_TRUE(worker_.Start().ok());
  const v1::Job job = AwaitState(v1::Job::FAILED);
  EXPECT_EQ(job.attempts(), 1);
  EXPECT_EQ(job.failure(), "the job failed after its data was opened; its price was posted in full");
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
  EXPECT_FALSE(std::filesystem::exists(store_.directory().WeightsFile(kJob)));
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
  Worker worker(store_.database(), store_.directory(), key_, board_, {.max_attempts = 2, .device = "cuda:99"});
  EXPECT_EQ(worker.Start().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(WorkerTest, PlanningReservesNothing) {
  absl::StatusOr<PlannedJob> planned = PlanJob(store_.database(), Spec());
  ASSERT_TRUE(planned.ok()) << planned.status();
  const v1::Job& job = planned->stored.job;
  EXPECT_EQ(job.name(), "");
  EXPECT_EQ(job.spec().delta(), 1e-5) << "the cap's delta is the default";
  EXPECT_GT(job.plan().price_units(), 0);
  ASSERT_TRUE(Write([&](Transaction& t) { return CheckPlannedJob(t, *planned); }).ok());
  EXPECT_GT(job.plan().left_units(), 0);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN));
}

TEST_F(WorkerTest, AJobIsNotQueuedOnADatasetThatWasDeletedWhileItWasPlanned) {
  const PlannedJob planned = *PlanJob(store_.database(), Spec());
  ASSERT_TRUE(Write([](Transaction& t) { return MarkDatasetDeleted(t, kDataset, absl::Now()); }).ok());
  EXPECT_EQ(Submit(planned).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN));
}

TEST_F(WorkerTest, WhatIsLeftIsCountedWhenTheJobIsQueuedNotWhenItWasPlanned) {
  const PlannedJob planned = *PlanJob(store_.database(), Spec());
  const Price other = {planned.price.event, 1, 1e-5};
  ASSERT_TRUE(Write([&](Transaction& t) {
                return Reserve(t, kBudget, "tenants/acme/jobs/other", other, {"token", absl::Now()});
              }).ok());
  const v1::Job job = *Submit(planned);
  EXPECT_EQ(job.plan().left_units(), MakeBudgetTerms(8, 1e-5)->cap_units - 2 * job.plan().price_units());
}

TEST_F(WorkerTest, ThePapersPresetIsRefusedForWhatItsNoiseCosts) {
  v1::TrainingSpec spec = Spec(8);
  spec.set_preset(v1::PAPER);
  spec.mutable_options()->set_batch_size(20);
  const absl::Status status = Submit(spec).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  ASSERT_TRUE(GetErrorInfo(status).has_value());
  EXPECT_EQ(GetErrorInfo(status)->reason(), "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("epsilon 8 is the paper's claim"));
}

TEST_F(WorkerTest, ARefusedJobIsNotQueued) {
  const absl::Status status = Submit(5, 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(status)->reason(), "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_EQ(Write([](Transaction& t) { return GetJob(t, kJob).status(); }).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace dpar
