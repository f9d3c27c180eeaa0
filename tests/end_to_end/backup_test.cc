// Back up, spend more, restore, try to spend again: refused, with the reason; and what an operator does then. On both
// engines, with the real binaries over TLS.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/http/testing/http_client.h"
#include "server/store/testing/private_postgres.h"
#include "server/store/testing/temporary_store.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using dpar::testing::Engine;
using dpar::testing::PrivatePostgres;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr absl::Duration kPatience = absl::Seconds(90);

class BackupTest : public ::testing::TestWithParam<Engine> {
 protected:
  static void SetUpTestSuite() { postgres_ = PrivatePostgres::Start(); }
  static void TearDownTestSuite() { postgres_.reset(); }

  void SetUp() override {
    if (GetParam() == Engine::kPostgres) {
      store_ = {"--store", postgres_->NewDatabase()};
    }
    server_ = std::make_unique<TestServer>(store_);
    ASSERT_TRUE(server_->Start());
    tenant_ = server_->NewTenant();
  }

  Client Owner() const { return server_->Owner(tenant_); }
  // `dpard` with these arguments on the server's store.
  CommandResult Dpard(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), BinaryPath("dpard"));
    arguments.insert(arguments.end(), {"--data-dir", server_->data_directory()});
    arguments.insert(arguments.end(), store_.begin(), store_.end());
    return RunCommand(arguments, {}, kPatience);
  }
  void ThawAfterRestore(const std::string& dataset) {
    const CommandResult thawed =
        Dpard({"thaw", PopulationOf(Owner(), dataset), "--reason", "the backup of last night was restored"});
    ASSERT_EQ(thawed.exit_code, 0) << thawed.err;
    EXPECT_THAT(thawed.out, HasSubstr("admits jobs again"));
  }
  // Trains to the end; the job's name.
  std::string Train(const std::string& dataset, double epsilon) {
    const auto job = CreateJob(Owner(), JobRequest(dataset, epsilon));
    EXPECT_THAT(job.status, IsOk());
    EXPECT_EQ(WaitForJob(Owner(), job.value.name()).state(), v1::Job::SUCCEEDED);
    return job.value.name();
  }
  grpc::Status CertificateStatus(const std::string& job) {
    v1::GetCertificateRequest request;
    request.set_name(job);
    return Owner().Call(&v1::TrainingService::Stub::GetCertificate, request).status;
  }
  std::string Metrics() const { return SendHttp({.address = server_->metrics_address(), .path = "/metrics"}).body; }
  // Waits until the metrics say so.
  void AwaitMetric(const std::string& line) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (Metrics().find(line) == std::string::npos) {
      ASSERT_LT(absl::Now(), deadline) << line << " is not among\n" << Metrics();
      absl::SleepFor(absl::Milliseconds(100));
    }
  }

  static std::unique_ptr<PrivatePostgres> postgres_;
  // Refuses while the server runs, and without --replace; the server is stopped then.
  void ExpectNotRestoredOverAStoreInUse(const std::string& backup) {
    const CommandResult served = Dpard({"restore", backup, "--replace"});
    EXPECT_EQ(served.exit_code, 1);
    EXPECT_THAT(served.err, HasSubstr(GetParam() == Engine::kSqlite ? "another dpard uses" : "other sessions use"));
    ASSERT_EQ(server_->Terminate(), std::optional<int>(0));
    const CommandResult taken = Dpard({"restore", backup});
    EXPECT_EQ(taken.exit_code, 1);
    EXPECT_THAT(taken.err, HasSubstr("is not empty; nothing was restored"));
  }

  std::vector<std::string> store_;
  std::unique_ptr<TestServer> server_;
  TenantAccess tenant_;
};

std::unique_ptr<PrivatePostgres> BackupTest::postgres_;

// What does not depend on the engine.
class EmbeddedBackupTest : public BackupTest {};

TEST_P(BackupTest, WhatWasSpentAfterTheBackupCannotBeSpentAgain) {
  const std::string backup = server_->Scratch("backup");
  const std::string known = UploadGraph(Owner(), tenant_.name, MakeGraph(911));
  const std::string before = Train(known, 0.5);
  // While the server runs.
  const CommandResult made = Dpard({"backup", backup});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("Backed up"));
  const std::string after = Train(known, 0.5);
  const v1::Budget spent = GetBudget(Owner(), known);
  ASSERT_EQ(spent.live_events(), 2);
  // A dataset that the backup does not know at all.
  const std::string unknown = UploadGraph(Owner(), tenant_.name, MakeGraph(912));
  Train(unknown, 0.5);
  const v1::Budget unknown_spent = GetBudget(Owner(), unknown);

  ExpectNotRestoredOverAStoreInUse(backup);
  const CommandResult restored = Dpard({"restore", backup, "--replace"});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out,
              AllOf(HasSubstr("ledgers: 1 ok, 0 broken\n"),
                    HasSubstr(absl::StrCat("FROZEN: ", OwnPopulation(known), ": results were released up to entry 5")),
                    HasSubstr("marks: 0 ok, 1 ahead of their ledgers or unreadable, 1 of populations that the "
                              "store does not know\n")));
  const CommandResult checked = Dpard({"check"});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.out, AllOf(HasSubstr(absl::StrCat(OwnPopulation(known), ": results were released")),
                                 HasSubstr("frozen: 1\n")));

  ASSERT_TRUE(server_->Start());
  const auto refused = CreateJob(Owner(), JobRequest(known, 0.5));
  EXPECT_THAT(refused.status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::BUDGET_FROZEN));
  EXPECT_THAT(refused.status.error_message(),
              AllOf(HasSubstr("the ledger does not have that entry"), HasSubstr("dpard thaw")));
  // What is known can be read.
  EXPECT_THAT(GetJob(Owner(), before).status, IsOk());
  EXPECT_THAT(CertificateStatus(before), IsOk());
  EXPECT_THAT(GetJob(Owner(), after).status, IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_EQ(GetBudget(Owner(), known).frozen_reason(), refused.status.error_message());
  EXPECT_TRUE(VerifyChain(Owner(), known).intact());
  EXPECT_THAT(server_->Dpar(tenant_.owner_token, {"population", "show", known}).out, HasSubstr("FROZEN"));
  AwaitMetric("dpar_budgets_frozen 1\n");

  // The same data again, under any name.
  const std::string again = UploadGraph(Owner(), tenant_.name, MakeGraph(912));
  EXPECT_THAT(CreateJob(Owner(), JobRequest(again, 0.5)).status,
              IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::BUDGET_FROZEN));
  AwaitMetric("dpar_budgets_frozen 2\n");

  ThawAfterRestore(known);
  ThawAfterRestore(again);
  const v1::Budget settled = GetBudget(Owner(), known);
  EXPECT_EQ(settled.frozen_reason(), "");
  EXPECT_EQ(settled.posted_units(), spent.posted_units());
  EXPECT_EQ(settled.left_units(), spent.left_units());
  EXPECT_EQ(GetBudget(Owner(), again).posted_units(), unknown_spent.posted_units());
  EXPECT_THAT(LedgerEntries(Owner(), known).back().reason(), HasSubstr("the backup of last night was restored"));
  Train(known, 0.5);
  Train(again, 0.5);
  EXPECT_TRUE(VerifyChain(Owner(), known).intact());
  const CommandResult well = Dpard({"check"});
  EXPECT_EQ(well.exit_code, 0) << well.out << well.err;
  EXPECT_THAT(well.out,
              HasSubstr("marks: 2 ok, 0 ahead of their ledgers or unreadable, 0 of populations that the store does "
                        "not know; frozen: 0\n"));
  const CommandResult no_need = Dpard({"thaw", PopulationOf(Owner(), known), "--reason", "once more"});
  EXPECT_EQ(no_need.exit_code, 1);
  EXPECT_THAT(no_need.err, HasSubstr("not frozen"));
}

TEST_P(EmbeddedBackupTest, ABackupRestoredWithoutSpendingInBetweenGoesOnAsIfNothingHappened) {
  const std::string backup = server_->Scratch("backup");
  const std::string dataset = UploadGraph(Owner(), tenant_.name, MakeGraph(913));
  const std::string job = Train(dataset, 0.5);
  ASSERT_EQ(Dpard({"backup", backup}).exit_code, 0);
  ASSERT_EQ(server_->Terminate(), std::optional<int>(0));
  const CommandResult restored = Dpard({"restore", backup, "--replace"});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, AllOf(HasSubstr("marks: 1 ok, 0 ahead"), Not(HasSubstr("FROZEN"))));
  // The same without the marks, as on another machine.
  const CommandResult elsewhere = Dpard({"check", "--witness-dir", server_->Scratch("elsewhere")});
  EXPECT_EQ(elsewhere.exit_code, 1) << elsewhere.err;
  EXPECT_THAT(elsewhere.out, HasSubstr("marks: this store has a witness directory, and"));
  ASSERT_TRUE(server_->Start());
  EXPECT_EQ(GetBudget(Owner(), dataset).frozen_reason(), "");
  EXPECT_THAT(CertificateStatus(job), IsOk());
  Train(dataset, 0.5);
}

TEST_P(BackupTest, NothingIsShownThatCannotBeMarked) {
  const std::string dataset = UploadGraph(Owner(), tenant_.name, MakeGraph(914));
  const std::string marks = absl::StrCat(server_->data_directory(), ".witness/", tenant_.id);
  fs::rename(marks, marks + "-aside");
  WriteFile(marks, "in the way");
  const auto job = CreateJob(Owner(), JobRequest(dataset, 0.5));
  ASSERT_THAT(job.status, IsOk());
  const std::string& name = job.value.name();
  AwaitMetric("dpar_jobs_ended_total{state=\"succeeded\"} 1\n");
  // Whoever asks, however.
  const auto unmarked = IsError(grpc::StatusCode::UNAVAILABLE, v1::SERVER_UNAVAILABLE);
  EXPECT_THAT(GetJob(Owner(), name).status, unmarked);
  EXPECT_THAT(CertificateStatus(name), unmarked);
  EXPECT_THAT(CancelJob(Owner(), name).status, unmarked);
  v1::ListJobsRequest list;
  list.set_parent(tenant_.name);
  EXPECT_THAT(Owner().Call(&v1::TrainingService::Stub::ListJobs, list).status, unmarked);
  const Watched watched = WatchUntil(Owner(), name, IsTerminal, absl::Seconds(20));
  EXPECT_THAT(watched.status, unmarked);
  EXPECT_TRUE(watched.messages.empty());
  EXPECT_THAT(Metrics(), Not(HasSubstr("dpar_witness_failures_total 0\n")));
  // What was not released is shown.
  EXPECT_EQ(GetBudget(Owner(), dataset).live_events(), 1);
  fs::remove(marks);
  fs::rename(marks + "-aside", marks);
  EXPECT_EQ(GetJob(Owner(), name).value.state(), v1::Job::SUCCEEDED);
  EXPECT_THAT(CertificateStatus(name), IsOk());
  EXPECT_EQ(server_->Terminate(), std::optional<int>(0));
  EXPECT_EQ(Dpard({"check"}).exit_code, 0);
}

// A cancel posts once the times that it is free are used up, and its answer says so.
TEST_P(BackupTest, ACancelThatPostedIsNotShownUnmarked) {
  const std::string dataset = UploadGraph(Owner(), tenant_.name, MakeSlowGraph(916));
  const std::string marks = absl::StrCat(server_->data_directory(), ".witness/", tenant_.id);
  const auto unmarked = IsError(grpc::StatusCode::UNAVAILABLE, v1::SERVER_UNAVAILABLE);
  for (int i = 1; i <= 4; ++i) {
    const auto job = CreateJob(Owner(), JobRequest(dataset, 0.2));
    ASSERT_THAT(job.status, IsOk());
    ASSERT_THAT(WatchUntil(Owner(), job.value.name(), IsTraining).status, IsOk());
    if (i == 4) {
      fs::rename(marks, marks + "-aside");
      WriteFile(marks, "in the way");
    }
    ASSERT_THAT(CancelJob(Owner(), job.value.name()).status, IsOk());
    AwaitMetric(absl::StrCat("dpar_jobs_ended_total{state=\"cancelled\"} ", i, "\n"));
    const grpc::Status again = CancelJob(Owner(), job.value.name()).status;
    if (i < 4) {
      EXPECT_THAT(again, IsOk());
    } else {
      EXPECT_THAT(again, unmarked);
    }
  }
  fs::remove(marks);
  fs::rename(marks + "-aside", marks);
}

TEST_P(BackupTest, AnotherWitnessDirectoryIsRefusedUntilAnOperatorAdoptsIt) {
  const std::string dataset = UploadGraph(Owner(), tenant_.name, MakeGraph(915));
  Train(dataset, 0.5);
  const std::string backup = server_->Scratch("backup");
  ASSERT_EQ(Dpard({"backup", backup}).exit_code, 0);
  const v1::Budget spent = GetBudget(Owner(), dataset);
  ASSERT_EQ(server_->Terminate(), std::optional<int>(0));
  // As when its disk is lost.
  const std::string witness = server_->data_directory() + ".witness";
  fs::rename(witness, witness + "-lost");
  server_->Launch();
  EXPECT_EQ(server_->AwaitEnd(kPatience), std::optional<int>(1));
  EXPECT_THAT(server_->log(), AllOf(HasSubstr("this store has a witness directory, and"), HasSubstr("adopt-witness")));
  const CommandResult checked = Dpard({"check"});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.out, HasSubstr("marks: this store has a witness directory, and"));
  EXPECT_EQ(Dpard({"thaw", PopulationOf(Owner(), dataset), "--reason", "x"}).exit_code, 1);
  // A backup carries the id.
  const CommandResult restored = Dpard({"restore", backup, "--replace"});
  EXPECT_EQ(restored.exit_code, 1);
  EXPECT_THAT(restored.out, AllOf(HasSubstr("ledgers: 1 ok, 0 broken\n"), HasSubstr("dpard adopt-witness")));

  const CommandResult adopted = Dpard({"adopt-witness", "--reason", "its disk died"});
  ASSERT_EQ(adopted.exit_code, 0) << adopted.err;
  EXPECT_THAT(adopted.out, HasSubstr("is the witness directory of this store now"));
  EXPECT_EQ(Dpard({"adopt-witness", "--reason", "its disk died"}).exit_code, 0) << "it can be repeated";
  const CommandResult well = Dpard({"check"});
  EXPECT_EQ(well.exit_code, 0) << well.out << well.err;
  EXPECT_THAT(well.out, HasSubstr("marks: 1 ok"));
  ASSERT_TRUE(server_->Start());
  EXPECT_EQ(GetBudget(Owner(), dataset).posted_units(), spent.posted_units());
  Train(dataset, 0.5);
  ASSERT_EQ(server_->Terminate(), std::optional<int>(0));
  // The backup is from before the adoption, and finds the directory that took over.
  EXPECT_THAT(Dpard({"restore", backup, "--replace"}).out, HasSubstr(absl::StrCat("FROZEN: ", OwnPopulation(dataset))));
}

// Store and witness directory were rolled back together and went on, and then the true witness directory came back: the
// ledger has entries that nobody marked.
TEST_P(EmbeddedBackupTest, AListLeavesOutWhatAForkedLedgerPosted) {
  const std::string dataset = UploadGraph(Owner(), tenant_.name, MakeGraph(916));
  const std::string other = UploadGraph(Owner(), tenant_.name, MakeGraph(917));
  const std::string first = Train(dataset, 0.5);
  const std::string elsewhere = Train(other, 0.5);
  const std::string data = server_->data_directory();
  const std::string witness = data + ".witness";
  ASSERT_EQ(server_->Terminate(), std::optional<int>(0));
  fs::copy(data, data + "-then", fs::copy_options::recursive);
  fs::copy(witness, witness + "-then", fs::copy_options::recursive);
  ASSERT_TRUE(server_->Start());
  Train(dataset, 0.5);
  ASSERT_EQ(server_->Terminate(), std::optional<int>(0));
  fs::remove_all(data);
  fs::rename(data + "-then", data);
  fs::rename(witness, witness + "-true");
  fs::rename(witness + "-then", witness);
  ASSERT_TRUE(server_->Start());
  const std::string forked = Train(dataset, 0.25);
  ASSERT_EQ(server_->Terminate(), std::optional<int>(0));
  fs::remove_all(witness);
  fs::rename(witness + "-true", witness);

  ASSERT_TRUE(server_->Start());
  v1::ListJobsRequest list;
  list.set_parent(tenant_.name);
  const auto listed = Owner().Call(&v1::TrainingService::Stub::ListJobs, list);
  ASSERT_THAT(listed.status, IsOk());
  std::vector<std::string> names;
  for (const v1::Job& job : listed.value.jobs()) {
    names.push_back(job.name());
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre(first, elsewhere));
  const auto frozen = IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::BUDGET_FROZEN);
  EXPECT_THAT(GetJob(Owner(), forked).status, frozen);
  EXPECT_THAT(CertificateStatus(forked), frozen);
  EXPECT_THAT(CertificateStatus(first), IsOk());
}

TEST_P(EmbeddedBackupTest, ATenantThatIsThereIsRefusedAlsoBesideAKeyFileThatIsNot) {
  const std::string key = absl::StrCat(server_->data_directory(), ".witness/", tenant_.id, "/content.key");
  const std::string kept = ReadFile(key);
  ASSERT_NE(kept, "");
  fs::remove(key);
  v1::CreateTenantRequest request;
  request.set_tenant_id(tenant_.id);
  request.set_request_id("again");
  EXPECT_THAT(server_->Operator().Call(&v1::OperatorService::Stub::CreateTenant, request).status,
              IsError(grpc::StatusCode::ALREADY_EXISTS, v1::RESOURCE_EXISTS));
  // No new key is kept in its place, by which the tenant's data would not be recognised; the next start keeps the old.
  EXPECT_FALSE(fs::exists(key));
  ASSERT_EQ(server_->Terminate(), std::optional<int>(0));
  ASSERT_TRUE(server_->Start());
  EXPECT_EQ(ReadFile(key), kept);
}

TEST_P(EmbeddedBackupTest, WhatCannotBeBackedUpOrRestoredIsSaid) {
  const CommandResult nowhere = Dpard({"restore", server_->Scratch("nothing")});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("is no backup"));
  const std::string backup = server_->Scratch("backup");
  ASSERT_EQ(Dpard({"backup", backup}).exit_code, 0);
  const CommandResult twice = Dpard({"backup", backup});
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_THAT(twice.err, HasSubstr("exists; nothing is written over"));
  EXPECT_EQ(fs::status(backup).permissions(), fs::perms::owner_all);
  const CommandResult stranger = Dpard({"thaw", "tenants/none/populations/none", "--reason", "x"});
  EXPECT_EQ(stranger.exit_code, 1);
  EXPECT_THAT(stranger.err, HasSubstr("there is no tenants/none/populations/none"));
  EXPECT_EQ(Dpard({"thaw", "tenants/none/populations/none"}).exit_code, 2);
  EXPECT_EQ(Dpard({"backup"}).exit_code, 2);
}

INSTANTIATE_TEST_SUITE_P(Embedded, EmbeddedBackupTest, ::testing::Values(Engine::kSqlite), dpar::testing::EngineName);
INSTANTIATE_TEST_SUITE_P(Engines, BackupTest, ::testing::ValuesIn(dpar::testing::Engines()), dpar::testing::EngineName);

}  // namespace
}  // namespace dpar::e2e
