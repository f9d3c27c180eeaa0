// A private dataset with a budget on a real store, and a worker to run its jobs.
#ifndef DPAR_SERVER_WORKER_TESTING_WORKER_FIXTURE_H_
#define DPAR_SERVER_WORKER_TESTING_WORKER_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "core/certificate/certificate.h"
#include "core/graph/generate.h"
#include "core/graph/sealed_graph.h"
#include "core/parallel.h"
#include "core/random/testing/fixed_random.h"
#include "core/status_macros.h"
#include "server/admission/submit.h"
#include "server/files.h"
#include "server/ledger/ledger.h"
#include "server/store/datasets.h"
#include "server/store/testing/temporary_store.h"
#include "server/worker/worker.h"

namespace dpar::testing {

// Long enough to be interrupted, short enough to end.
inline constexpr int64_t kLongRun = 20'000;

inline constexpr char kDataset[] = "tenants/acme/datasets/d";
inline constexpr char kJob[] = "tenants/acme/jobs/j";
inline constexpr char kPopulation[] = "tenants/acme/populations/b";
inline constexpr JobLimits kLimits = {.max_job_bytes = int64_t{8} << 30, .threads = 2};

class WorkerFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_RETURN_IF_ERROR(InsertTenant(t, "acme", "k", absl::Now()));
                  return OpenBudget(t, kPopulation, *MakeBudgetTerms(8, 1e-5), {"server", absl::Now()});
                }).ok());
    AddDataset(kDataset, {.nodes = 300, .features = 40}, /*is_public=*/false);
  }

  void AddDataset(const std::string& name, const GeneratorOptions& options, bool is_public) {
    FixedRandom random(1);
    AddDataset(name, *GenerateGraph(options, random), is_public);
  }
  void AddDataset(const std::string& name, const Graph& graph, bool is_public) {
    const std::string file = store_.directory().DatasetFile(name);
    ASSERT_TRUE(MakeParentDirectory(file).ok());
    ASSERT_TRUE(WriteSealedGraph(file, graph).ok());
    v1::Dataset dataset;
    dataset.set_name(name);
    dataset.set_is_public(is_public);
    dataset.set_node_count(graph.sizes.node_count);
    dataset.set_feature_count(graph.sizes.feature_count);
    dataset.set_class_count(graph.sizes.class_count);
    dataset.set_content_digest(std::string(64, 'a'));
    dataset.set_population(is_public ? "" : kPopulation);
    dataset.set_edge_bound(graph.edge_count() + 1);
    dataset.set_entry_bound(static_cast<int64_t>(graph.features.columns.size()) + 1);
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
      job = SubmitJob(t, planned, {job_, {}}, 10, {"token", absl::Now()});
      return job.status();
    });
    return status.ok() ? job : status;
  }
  absl::StatusOr<v1::Job> Submit(const v1::TrainingSpec& spec) {
    DPAR_ASSIGN_OR_RETURN(const PlannedJob planned, PlanJob(store_.database(), spec, kLimits));
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
      job = CancelJob(t, job_, {"token", absl::Now()});
      return job.status();
    });
    return status.ok() ? job : status;
  }
  v1::Job Job() {
    v1::Job job;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const StoredJob stored, GetJob(t, job_));
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
    while (absl::Now() < deadline) {
      const std::optional<Progress> progress = board_.Get(job_);
      if (progress.has_value() && reached(*progress)) {
        return *progress;
      }
      absl::SleepFor(absl::Milliseconds(1));
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
    const std::optional<Progress> last = board_.Get(job_);
    const absl::Time asked = absl::Now();
    ASSERT_TRUE(Cancel().ok());
    worker_.Notify(job_);
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
    EXPECT_EQ(output.files.size(), 4U);
    std::vector<std::string> files;
    for (const auto& [name, file] : output.files) {
      files.push_back(store_.directory().ModelFile(kJob, output.lease, name));
    }
    const auto verification = VerifyCertificate(output.envelope, {key_.verifying_key()}, files);
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
                  DPAR_ASSIGN_OR_RETURN(const std::vector<v1::LedgerEntry> entries,
                                        ListEntries(t, kPopulation, 0, 100));
                  for (const v1::LedgerEntry& entry : entries) {
                    kinds.push_back(entry.kind());
                  }
                  DPAR_ASSIGN_OR_RETURN(const v1::VerifyChainResponse chain, VerifyChain(t, kPopulation, {}));
                  EXPECT_TRUE(chain.intact()) << chain.fault();
                  return absl::OkStatus();
                }).ok());
    return kinds;
  }

  v1::LedgerEntry LastEntry() {
    v1::LedgerEntry last;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(const std::vector<v1::LedgerEntry> entries,
                                        ListEntriesBefore(t, kPopulation, int64_t{1} << 40, 1));
                  last = entries.at(0);
                  return absl::OkStatus();
                }).ok());
    return last;
  }

  static WorkerOptions Options() {
    WorkerOptions options;
    options.max_attempts = 2;
    options.device = "cpu";
    options.threads = HardwareThreads();
    options.total_bytes = kLimits.max_job_bytes;
    return options;
  }
  // Whether any attempt left files.
  bool HasFiles() const {
    const std::filesystem::path job = std::filesystem::path(store_.directory().AttemptDirectory(job_, 1)).parent_path();
    return std::filesystem::exists(job) && !std::filesystem::is_empty(job);
  }
  // Leases the job as a worker would that then dies.
  StoredJob LeaseAndDie(absl::Duration lease = absl::Seconds(30)) {
    StoredJob leased;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(
                      const std::optional<StoredJob> job,
                      Lease(t, {"dead", absl::Now(), lease, 1, kLimits.max_job_bytes, kLimits.max_job_bytes}));
                  leased = job.value();
                  return absl::OkStatus();
                }).ok());
    return leased;
  }

  SigningKeySource Key() const {
    return [this] { return key_; };
  }

  std::string job_ = kJob;  // that Submit makes and the others ask for
  TemporaryStore store_;
  ProgressBoard board_;
  SigningKey key_ = *SigningKey::Generate();
  Worker worker_{store_.database(), store_.directory(), Key(), board_, Options()};
};

}  // namespace dpar::testing

#endif  // DPAR_SERVER_WORKER_TESTING_WORKER_FIXTURE_H_
