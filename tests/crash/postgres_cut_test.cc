// PostgreSQL that dies or is stopped under a server: in the middle of its transactions, and under load.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "core/mutex.h"
#include "core/random/testing/fixed_random.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/store/message_text.h"
#include "tests/crash/crash_site.h"
#include "tests/crash/load.h"

namespace dpar::crash {
namespace {

constexpr int kCutsUnderLoad = 4;
// Longer than a server takes to start.
constexpr absl::Duration kSlowCommit = absl::Seconds(5);

using dpar::testing::PrivatePostgres;

// A PostgreSQL that no other test needs meanwhile.
class PostgresCutTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { Postgres() = PrivatePostgres::Start(kPostgresSettings); }
  static void TearDownTestSuite() { Postgres().reset(); }

  static std::unique_ptr<PrivatePostgres>& Postgres() {
    static auto* postgres = new std::unique_ptr<PrivatePostgres>;
    return *postgres;
  }

  void SetUp() override {
    if (Postgres() == nullptr) {
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
  }
};

enum class Cut { kKilled, kStopped };
struct CutPlace {
  std::string seam;
  Cut cut = Cut::kKilled;
};

// The server halts inside a transaction, or right before or after it; PostgreSQL goes; the server goes on without it.
class CutPlaceTest : public PostgresCutTest, public ::testing::WithParamInterface<CutPlace> {};

TEST_P(CutPlaceTest, TheJobEndsOnceAndInItsFirstAttempt) {
  CrashSite site(Postgres().get(), {"--lease-seconds", "60"});
  ASSERT_TRUE(site.Start("dpard_seams", {{"DPAR_TEST_HALT", GetParam().seam}}));
  const CrashSite::Tenant tenant = site.NewTenant(/*seed=*/3);
  // It may be the submission itself that halts.
  std::future<std::string> submitted =
      std::async(std::launch::async, [&] { return site.Submit(tenant, QuickJob(tenant.dataset)); });
  site.AwaitHalt();
  if (GetParam().cut == Cut::kKilled) {
    Postgres()->Kill();
  } else {
    Postgres()->Stop();
  }
  site.server().Signal(SIGCONT);
  absl::SleepFor(absl::Milliseconds(700));
  Postgres()->Restart();
  const std::string job = submitted.get();
  site.Settle(absl::StrCat("PostgreSQL went at ", GetParam().seam));
  ASSERT_EQ(site.snapshot().jobs.size(), 1U);
  EXPECT_EQ(site.snapshot().jobs.at(job).stored.job.state(), v1::Job::SUCCEEDED);
  EXPECT_EQ(site.snapshot().jobs.at(job).stored.job.attempts(), 1);
}

INSTANTIATE_TEST_SUITE_P(At, CutPlaceTest,
                         ::testing::Values(CutPlace{"reserved"}, CutPlace{"saved"}, CutPlace{"saved", Cut::kStopped},
                                           CutPlace{"posted"}, CutPlace{"posted", Cut::kStopped}, CutPlace{"succeeded"},
                                           CutPlace{"committed"}),
                         [](const ::testing::TestParamInfo<CutPlace>& place) {
                           return absl::StrCat(absl::StrReplaceAll(place.param.seam, {{"-", "_"}}),
                                               place.param.cut == Cut::kKilled ? "_killed" : "_stopped");
                         });

// The worst moment of all: PostgreSQL commits and dies before it says so.
class UnansweredCommitTest : public PostgresCutTest, public ::testing::WithParamInterface<CutPlace> {};

TEST_P(UnansweredCommitTest, WhatWasCommittedIsFoundAndNotDoneAgain) {
  CrashSite site(Postgres().get(), {"--lease-seconds", "60"});
  ASSERT_TRUE(site.Start("dpard_seams", {{"DPAR_TEST_HALT", GetParam().seam}}));
  const CrashSite::Tenant tenant = site.NewTenant(/*seed=*/10);
  std::future<std::string> submitted =
      std::async(std::launch::async, [&] { return site.Submit(tenant, QuickJob(tenant.dataset)); });
  site.AwaitHalt();
  Postgres()->WithholdAnswers();
  absl::SleepFor(absl::Milliseconds(500));
  site.server().Signal(SIGCONT);
  absl::SleepFor(absl::Milliseconds(500));
  const absl::Time killed = absl::Now();
  Postgres()->Kill();
  Postgres()->Restart();
  const std::string job = submitted.get();
  site.Settle(absl::StrCat("the commit after ", GetParam().seam, " was not answered"));
  ASSERT_EQ(site.snapshot().jobs.size(), 1U);
  const JobRecord& record = site.snapshot().jobs.at(job);
  EXPECT_EQ(record.stored.job.state(), v1::Job::SUCCEEDED);
  EXPECT_EQ(record.stored.job.attempts(), 1);
  // Had it been done again, it would have been later.
  const bool submission = GetParam().seam == "queued";
  const v1::LedgerEntry& entry = submission ? record.entries.front() : record.entries.back();
  EXPECT_EQ(entry.kind(), submission ? v1::LedgerEntry::RESERVE : v1::LedgerEntry::POST);
  EXPECT_LT(absl::FromUnixMicros(ToMicroseconds(entry.time())), killed);
}

INSTANTIATE_TEST_SUITE_P(At, UnansweredCommitTest, ::testing::Values(CutPlace{"queued"}, CutPlace{"succeeded"}),
                         [](const ::testing::TestParamInfo<CutPlace>& place) { return place.param.seam; });

TEST_F(PostgresCutTest, KillsOfPostgresUnderLoadLoseNothingAndDoubleNothing) {
  dpar::testing::FixedRandom random(4);
  CrashSite site(Postgres().get(), {"--lease-seconds", "3"});
  ASSERT_TRUE(site.Start());
  Load load(site, random);
  for (int cut = 1; cut <= kCutsUnderLoad && !HasFailure(); ++cut) {
    absl::SleepFor(absl::Milliseconds(500 + UniformBelow(random, 1500)));
    Postgres()->Kill();
    absl::SleepFor(absl::Milliseconds(UniformBelow(random, 1000)));
    EXPECT_FALSE(site.server().AwaitEnd(absl::ZeroDuration()).has_value()) << "the server ended with PostgreSQL";
    Postgres()->Restart();
    // Every second time both go.
    if (cut % 2 == 0) {
      site.server().Kill();
      site.Check(Rest::kInterrupted, absl::StrCat("after cut ", cut));
      ASSERT_TRUE(site.Start());
    }
  }
  load.Stop();
  site.Settle("after PostgreSQL was killed under load");
  std::cout << kCutsUnderLoad << " kills of PostgreSQL; " << load.Describe() << std::endl;
}

// PostgreSQL carries out a COMMIT that it was sent, whatever became of the server that sent it.
TEST_F(PostgresCutTest, ADatasetWhoseCommitOutlivesItsServerKeepsItsFile) {
  CrashSite site(Postgres().get());
  ASSERT_TRUE(site.Start());
  const CrashSite::Tenant tenant = site.NewTenant(/*seed=*/9);
  site.server().Kill();
  const DataDirectory directory(site.server().data_directory());
  const std::string late = absl::StrCat(tenant.access.name, "/datasets/late");
  ASSERT_TRUE(MakeParentDirectory(directory.DatasetFile(late)).ok());
  std::filesystem::copy_file(directory.DatasetFile(tenant.dataset), directory.DatasetFile(late));
  const absl::StatusOr<std::unique_ptr<Database>> database = OpenPostgres(site.postgres_uri());
  ASSERT_TRUE(database.ok()) << database.status();
  Notification written;
  std::future<absl::Status> committed = std::async(std::launch::async, [&] {
    return (*database)->Write([&](Transaction& transaction) -> absl::Status {
      DPAR_RETURN_IF_ERROR(transaction.Lock(Guard::kTenant, tenant.access.name));
      DPAR_RETURN_IF_ERROR(
          transaction
              .Execute(
                  "INSERT INTO datasets (name, tenant, create_time, node_count, feature_count, class_count, "
                  "is_public, content_digest, population, edge_bound, entry_bound) SELECT $1, tenant, create_time + 1, "
                  "node_count, feature_count, class_count, is_public, content_digest, population, edge_bound, "
                  "entry_bound FROM datasets WHERE name = $2",
                  {late, tenant.dataset})
              .status());
      written.Notify();
      absl::SleepFor(kSlowCommit);
      return absl::OkStatus();
    });
  });
  written.WaitForNotification();
  ASSERT_TRUE(site.Start());
  ASSERT_TRUE(committed.get().ok());
  site.promises().Sealed(late);
  site.Settle("after a commit that outlived its server");
}

}  // namespace
}  // namespace dpar::crash
