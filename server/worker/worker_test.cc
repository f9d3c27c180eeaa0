#include "server/worker/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <vector>

#include "absl/time/clock.h"
#include "core/certificate/certificate.h"
#include "core/error.h"
#include "core/graph/generate.h"
#include "core/graph/sealed_format.h"
#include "core/graph/sealed_graph.h"
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
    dpar::testing::FixedRandom random(1);
    GeneratorOptions options;
    options.nodes = 300;
    options.features = 40;
    const Graph graph = *GenerateGraph(options, random);
    const std::string file = store_.directory().DatasetFile(kDataset);
    ASSERT_TRUE(MakeParentDirectory(file).ok());
    ASSERT_TRUE(WriteSealedGraph(file, graph).ok());
    StoredDataset dataset;
    dataset.dataset.set_name(kDataset);
    dataset.dataset.set_node_count(graph.sizes.node_count);
    dataset.dataset.set_feature_count(graph.sizes.feature_count);
    dataset.dataset.set_class_count(graph.sizes.class_count);
    dataset.dataset.set_content_digest(std::string(64, 'a'));
    dataset.budget_id = kBudget;
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_RETURN_IF_ERROR(InsertTenant(t, "acme", "k", absl::Now()));
                  DPAR_RETURN_IF_ERROR(OpenBudget(t, kBudget, *MakeBudgetTerms(8, 1e-5), {"server", absl::Now()}));
                  return InsertDataset(t, dataset, 10);
                }).ok());
  }

  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }

  absl::StatusOr<v1::Job> Submit(int64_t steps, double epsilon = 1) {
    v1::TrainingSpec spec;
    spec.set_dataset(kDataset);
    spec.set_epsilon(epsilon);
    spec.mutable_options()->set_steps(steps);
    absl::StatusOr<v1::Job> job;
    const absl::Status status = Write([&](Transaction& t) {
      job = SubmitJob(t, spec, kJob, 10, {"token", absl::Now()});
      return job.status();
    });
    return status.ok() ? job : status;
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
  // Waits, at most a minute, until the job is as asked.
  v1::Job Await(const std::function<bool(const v1::Job&)>& reached) {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    v1::Job job = Job();
    while (!reached(job) && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(5));
      job = Job();
    }
    EXPECT_TRUE(reached(job)) << job.ShortDebugString();
    return job;
  }
  v1::Job AwaitState(v1::Job::State state) {
    return Await([state](const v1::Job& job) { return job.state() == state; });
  }
  void AwaitTraining() {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    int64_t seen = 0;
    while (absl::Now() < deadline) {
      const ProgressBoard::Snapshot snapshot = board_.Wait(kJob, seen, absl::Now() + absl::Seconds(1));
      seen = snapshot.sequence;
      if (snapshot.progress.has_value() && snapshot.progress->completed > 0) {
        return;
      }
    }
    FAIL() << "training never began";
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

TEST_F(WorkerTest, AJobEndsWithAModelACertificateAndOnePostedEntry) {
  ASSERT_TRUE(Submit(5).ok());
  ASSERT_TRUE(worker_.Start().ok());
  const v1::Job job = AwaitState(v1::Job::SUCCEEDED);
  EXPECT_EQ(job.attempts(), 1);
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN, Entry::RESERVE, Entry::POST));
  JobOutput output;
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(output, GetOutput(t, kJob));
                return absl::OkStatus();
              }).ok());
  const auto verification =
      VerifyCertificate(output.envelope, {key_.verifying_key()},
                        {store_.directory().WeightsFile(kJob), store_.directory().ScriptFile(kJob)});
  ASSERT_TRUE(verification.ok()) << verification.status();
  for (const Check& check : verification->checks) {
    EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
  }
  EXPECT_LE(verification->recomputed_epsilon, 1);
  EXPECT_EQ(verification->statement.ledger_sequence, 3);
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
  v1::TrainingSpec spec;
  spec.set_dataset(kDataset);
  spec.set_epsilon(1);
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                DPAR_ASSIGN_OR_RETURN(const v1::Job job, PlanJob(t, spec));
                EXPECT_EQ(job.name(), "");
                EXPECT_EQ(job.spec().delta(), 1e-5) << "the cap's delta is the default";
                EXPECT_GT(job.plan().price_units(), 0);
                return absl::OkStatus();
              }).ok());
  EXPECT_THAT(Kinds(), ElementsAre(Entry::OPEN));
}

TEST_F(WorkerTest, ARefusedJobIsNotQueued) {
  const absl::Status status = Submit(5, 50).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(status)->reason(), "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_EQ(Write([](Transaction& t) { return GetJob(t, kJob).status(); }).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace dpar
