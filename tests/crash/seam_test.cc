// A server that dies at each named step of a job's life, on both engines.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "tests/crash/crash_site.h"

namespace dpar::crash {
namespace {

constexpr absl::Duration kDeathTimeout = absl::Seconds(60);

// How a job is led to a seam, and what becomes of it afterwards.
enum class Way { kSubmit, kCancelRunning, kCancelQueued, kRecover, kMerge };
struct Seam {
  std::string name;
  Way way = Way::kSubmit;
  int attempts = 0;  // that a submitted job needs in all, when the first meets the seam
};

const std::vector<Seam>& Seams() {
  static const auto* seams = new std::vector<Seam>{
      // The submission is lost, and the client repeats it.
      {"reserved", Way::kSubmit, 1},
      {"queued", Way::kSubmit, 1},
      // The attempt is lost, and another follows.
      {"leased", Way::kSubmit, 2},
      {"trained", Way::kSubmit, 2},
      {"model-file-written", Way::kSubmit, 2},
      {"saved", Way::kSubmit, 2},
      {"release-begun", Way::kSubmit, 2},
      {"posted", Way::kSubmit, 2},
      {"succeeded", Way::kSubmit, 2},
      // Nothing is lost.
      {"committed", Way::kSubmit, 1},
      {"marked", Way::kSubmit, 1},
      {"giving-up", Way::kCancelRunning},
      {"voided", Way::kCancelRunning},
      {"given-up", Way::kCancelRunning},
      {"queue-voided", Way::kCancelQueued},
      {"taken-back", Way::kRecover},
      // Merged or not, never half.
      {"merge-inherited", Way::kMerge},
      {"merge-finished", Way::kMerge},
      {"merge-committed", Way::kMerge},
      {"merge-end-marked", Way::kMerge},
  };
  return *seams;
}

enum class Engine { kSqlite, kPostgres };

class SeamTest : public ::testing::TestWithParam<std::tuple<Engine, Seam>> {
 protected:
  // Seams of one engine follow each other on one store, so that a later crash meets what an earlier one left.
  static void SetUpTestSuite() { Sites().clear(); }
  static void TearDownTestSuite() { Sites().clear(); }

  struct Place {
    std::unique_ptr<CrashSite> site;
    CrashSite::Tenant tenant;
  };

  void SetUp() override {
    const Engine engine = std::get<0>(GetParam());
    if (engine == Engine::kPostgres && SharedPostgres() == nullptr) {
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
    Place& place = Sites()[engine];
    if (place.site == nullptr) {
      // On PostgreSQL, what a crash left RUNNING is taken back when its lease has run out; on SQLite, at once.
      place.site = engine == Engine::kPostgres
                       ? std::make_unique<CrashSite>(SharedPostgres(), std::vector<std::string>{"--lease-seconds", "3"})
                       : std::make_unique<CrashSite>(nullptr);
      ASSERT_TRUE(place.site->Start());
      place.tenant = place.site->NewTenant(/*seed=*/1);
      ASSERT_EQ(place.site->server().Terminate(), std::optional<int>(0));
    }
    site_ = place.site.get();
    tenant_ = place.tenant;
    seam_ = std::get<1>(GetParam());
  }

  void StartWithSeam() { ASSERT_TRUE(site_->Start("dpard_seams", {{"DPAR_TEST_SEAM", seam_.name}})); }

  void ExpectDeath() {
    ASSERT_EQ(site_->server().AwaitEnd(kDeathTimeout), std::optional<int>(128 + SIGKILL))
        << "the server did not die at the seam " << seam_.name;
    site_->Check(Rest::kInterrupted, absl::StrCat("after the crash at ", seam_.name));
  }

  void AwaitRunning(const std::string& job) {
    for (int poll = 0; poll < 500; ++poll) {
      if (e2e::GetJob(site_->ClientOf(tenant_.access), job).value.state() == v1::Job::RUNNING) {
        return;
      }
      absl::SleepFor(absl::Milliseconds(20));
    }
    FAIL() << job << " does not start";
  }

  v1::CancelJobRequest Cancel(const std::string& job) {
    site_->promises().AsksToCancel(job);
    v1::CancelJobRequest request;
    request.set_name(job);
    request.set_request_id(e2e::NewRequestId());
    return request;
  }
  grpc::Status Send(const v1::CancelJobRequest& request) {
    return site_->ClientOf(tenant_.access).Call(&v1::TrainingService::Stub::CancelJob, request).status;
  }

  const v1::Job& Ended(const std::string& job) { return site_->snapshot().jobs.at(job).stored.job; }

  void CrashAfterSubmitting() {
    StartWithSeam();
    const v1::CreateJobRequest request = QuickJob(tenant_.dataset);
    const auto first = e2e::CreateJob(site_->ClientOf(tenant_.access), request);
    if (first.status.ok()) {
      site_->promises().Accepted(first.value.name());
    }
    ExpectDeath();
    ASSERT_TRUE(site_->Start());
    const std::string job = site_->Submit(tenant_, request);
    if (first.status.ok()) {
      EXPECT_EQ(job, first.value.name());
    }
    site_->Settle(seam_.name);
    EXPECT_EQ(Ended(job).state(), v1::Job::SUCCEEDED);
    EXPECT_EQ(Ended(job).attempts(), seam_.attempts);
  }

  void CrashAfterCancellingARunningJob() {
    StartWithSeam();
    const std::string job = site_->Submit(tenant_, LongJob(tenant_.dataset));
    AwaitRunning(job);
    // The worker may hear of it, and die, before the caller is answered.
    EXPECT_THAT(Send(Cancel(job)).error_code(), ::testing::AnyOf(grpc::StatusCode::OK, grpc::StatusCode::UNAVAILABLE));
    ExpectDeath();
    site_->Settle(seam_.name);
    EXPECT_EQ(Ended(job).state(), v1::Job::CANCELLED);
    EXPECT_EQ(Ended(job).attempts(), 1);
  }

  void CrashAfterCancellingAQueuedJob() {
    StartWithSeam();
    const std::string first = site_->Submit(tenant_, LongJob(tenant_.dataset));
    const std::string second = site_->Submit(tenant_, LongJob(tenant_.dataset));
    AwaitRunning(first);
    AwaitRunning(second);
    const std::string queued = site_->Submit(tenant_, QuickJob(tenant_.dataset));
    const v1::CancelJobRequest request = Cancel(queued);
    EXPECT_EQ(Send(request).error_code(), grpc::StatusCode::UNAVAILABLE);
    ExpectDeath();
    // Nothing of it was committed.
    EXPECT_EQ(Ended(queued).state(), v1::Job::QUEUED);
    ASSERT_TRUE(site_->Start());
    static_cast<void>(Send(request));
    EXPECT_THAT(Send(Cancel(first)), e2e::IsOk());
    EXPECT_THAT(Send(Cancel(second)), e2e::IsOk());
    site_->Settle(seam_.name);
    EXPECT_EQ(Ended(first).state(), v1::Job::CANCELLED);
    EXPECT_EQ(Ended(second).state(), v1::Job::CANCELLED);
  }

  void CrashWhileRecovering() {
    ASSERT_TRUE(site_->Start());
    const std::string job = site_->Submit(tenant_, LongJob(tenant_.dataset));
    AwaitRunning(job);
    site_->server().Kill();
    site_->server().Launch("dpard_seams", {{"DPAR_TEST_SEAM", seam_.name}});
    ExpectDeath();
    ASSERT_TRUE(site_->Start());
    EXPECT_THAT(Send(Cancel(job)), e2e::IsOk());
    site_->Settle(seam_.name);
    EXPECT_EQ(Ended(job).state(), v1::Job::CANCELLED);
  }

  // What all populations of the tenant have spent, each person's once: without those that ended in a merge.
  int64_t SpentByAll() {
    int64_t spent = 0;
    for (const BudgetRecord& budget : site_->snapshot().budgets) {
      spent += budget.account.merged_into.empty() ? budget.account.posted_units : 0;
    }
    return spent;
  }
  const Account& AccountOf(const std::string& population) {
    const auto found = std::find_if(site_->snapshot().budgets.begin(), site_->snapshot().budgets.end(),
                                    [&](const BudgetRecord& budget) { return budget.id == population; });
    return found->account;
  }

  void CrashWhileMerging() {
    ASSERT_TRUE(site_->Start());
    const std::string other = site_->AddDataset(tenant_, std::hash<std::string>()(seam_.name));
    site_->Submit({tenant_.access, other}, QuickJob(other, 0.5));
    site_->Settle("before the merge");
    const std::string from = e2e::OwnPopulation(other);
    const std::string into = e2e::OwnPopulation(tenant_.dataset);
    const int64_t spent = SpentByAll();
    const int64_t spent_by_one = AccountOf(from).posted_units;
    ASSERT_GT(spent_by_one, 0);
    const int64_t spent_before = AccountOf(into).posted_units;
    v1::MergePopulationRequest request;
    request.set_name(from);
    request.set_into(into);
    request.set_reason("the same people");
    request.set_request_id(e2e::NewRequestId());
    const auto merge = [&](const e2e::Client& client) {
      return client.Call(&v1::BudgetService::Stub::MergePopulation, request);
    };
    StartWithSeam();
    EXPECT_EQ(merge(site_->ClientOf(tenant_.access)).status.error_code(), grpc::StatusCode::UNAVAILABLE);
    ExpectDeath();
    EXPECT_EQ(SpentByAll(), spent) << "merged or not, spend never falls";
    ASSERT_TRUE(site_->Start());
    EXPECT_THAT(site_->Persist(tenant_.access, merge).status, e2e::IsOk());
    // Another owner asks once more, for something that is done.
    request.set_request_id(e2e::NewRequestId());
    EXPECT_THAT(site_->Persist(tenant_.access, merge).status, e2e::IsOk());
    site_->Settle(seam_.name);
    EXPECT_EQ(SpentByAll(), spent);
    EXPECT_EQ(AccountOf(into).posted_units, spent_before + spent_by_one);
    EXPECT_EQ(AccountOf(from).merged_into, into);
  }

  static std::map<Engine, Place>& Sites() {
    static auto* sites = new std::map<Engine, Place>;
    return *sites;
  }

  CrashSite* site_ = nullptr;
  CrashSite::Tenant tenant_;
  Seam seam_;
};

TEST_P(SeamTest, ACrashThereLosesNothingAndDoublesNothing) {
  switch (seam_.way) {
    case Way::kSubmit:
      CrashAfterSubmitting();
      break;
    case Way::kCancelRunning:
      CrashAfterCancellingARunningJob();
      break;
    case Way::kCancelQueued:
      CrashAfterCancellingAQueuedJob();
      break;
    case Way::kRecover:
      CrashWhileRecovering();
      break;
    case Way::kMerge:
      CrashWhileMerging();
      break;
  }
}

std::string NameOf(const ::testing::TestParamInfo<std::tuple<Engine, Seam>>& info) {
  return absl::StrCat(std::get<0>(info.param) == Engine::kSqlite ? "Sqlite_" : "Postgres_",
                      absl::StrReplaceAll(std::get<1>(info.param).name, {{"-", "_"}}));
}

INSTANTIATE_TEST_SUITE_P(Every, SeamTest,
                         ::testing::Combine(::testing::Values(Engine::kSqlite, Engine::kPostgres),
                                            ::testing::ValuesIn(Seams())),
                         NameOf);

TEST(SeamListTest, EverySeamOfTheSourcesIsGoneThrough) {
  std::set<std::string> tested;
  for (const Seam& seam : Seams()) {
    tested.insert(seam.name);
  }
  const char* source = std::getenv("DPAR_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  const std::regex use(R"re(DPAR_SEAM\("([^"]+)"\))re");
  std::set<std::string> written;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(absl::StrCat(source, "/server"))) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".cc") && !path.ends_with(".h")) {
      continue;
    }
    const std::string text = e2e::ReadFile(path);
    for (std::sregex_iterator match(text.begin(), text.end(), use); match != std::sregex_iterator(); ++match) {
      EXPECT_TRUE(written.insert((*match)[1]).second) << (*match)[1] << " names two places";
    }
  }
  EXPECT_EQ(tested, written);
}

TEST(SeamListTest, TheProductionServerHasNoSeams) {
  EXPECT_NE(e2e::ReadFile(e2e::BinaryPath("dpard_seams")).find("DPAR_TEST_SEAM"), std::string::npos);
  EXPECT_EQ(e2e::ReadFile(e2e::BinaryPath("dpard")).find("DPAR_TEST_SEAM"), std::string::npos);
  CrashSite site(nullptr);
  ASSERT_TRUE(site.Start("dpard", {{"DPAR_TEST_SEAM", "posted"}, {"DPAR_TEST_HALT", "saved"}}));
  const CrashSite::Tenant tenant = site.NewTenant(/*seed=*/2);
  const std::string job = site.Submit(tenant, QuickJob(tenant.dataset));
  site.Settle("with a seam that is none");
  EXPECT_EQ(site.snapshot().jobs.at(job).stored.job.state(), v1::Job::SUCCEEDED);
  EXPECT_EQ(site.snapshot().jobs.at(job).stored.job.attempts(), 1);
}

}  // namespace
}  // namespace dpar::crash
