// When marks are made, and what is not shown without one.
#include "server/witness/witness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/files.h"
#include "server/witness/pairing.h"
#include "server/witness/testing/witness_fixture.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;
using testing::kPopulation;
using testing::Reason;
namespace fs = std::filesystem;

class WitnessTest : public testing::WitnessFixture {};

TEST_P(WitnessTest, AReservationNeedsNoMarkAndAPostedJobGetsOneWhenItIsAskedFor) {
  ASSERT_TRUE(Submit("j").ok());
  EXPECT_TRUE(Cover("j").ok());
  EXPECT_EQ(MarkNow(), std::nullopt);
  ASSERT_TRUE(Finish("j").ok());
  EXPECT_EQ(MarkNow(), std::nullopt);
  ASSERT_TRUE(Cover("j").ok());
  const Account account = AccountNow();
  const Mark expected{kPopulation, MarkTerms(account), {{3, account.head_hash, account.posted_units}}};
  EXPECT_EQ(account.head_sequence, 3);
  EXPECT_EQ(MarkNow(), expected);
  EXPECT_EQ(failures_, 0);
}

TEST_P(WitnessTest, AJobOfPublicDataAndOneThatIsNotThereSpendNothing) {
  EXPECT_TRUE(witness_->CoverJobs({"tenants/acme/jobs/none", "tenants/other/jobs/none"}).ok());
  EXPECT_TRUE(witness_->CoverJobs({}).ok());
}

TEST_P(WitnessTest, WhatIsMarkedIsKnownWithoutTheDiskAndWhatIsNotIsNotShown) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  // No directory can be made where a file is.
  fs::remove_all(root_ + "/witness/acme");
  ASSERT_TRUE(WriteFileDurably(root_ + "/witness/acme", "in the way", 0600).ok());
  EXPECT_TRUE(Cover("first").ok());
  Spend("second");
  const absl::Status refused = Cover("second");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Reason(refused), "SERVER_UNAVAILABLE");
  EXPECT_THAT(std::string(refused.message()), ::testing::AllOf(HasSubstr("witness directory"), Not(HasSubstr(root_))));
  EXPECT_EQ(failures_, 1);
  EXPECT_TRUE(witness_->Writes());  // the directory itself can be written
  fs::remove(root_ + "/witness/acme");
  EXPECT_TRUE(Cover("second").ok());
  EXPECT_EQ(MarkNow()->last().sequence, 5);
}

TEST_P(WitnessTest, ADirectoryThatCannotBeWrittenIsSaidUntilItCan) {
  Spend("j");
  fs::rename(root_ + "/witness", root_ + "/aside");
  ASSERT_TRUE(WriteFileDurably(root_ + "/witness", "in the way", 0600).ok());
  EXPECT_EQ(Cover("j").code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(witness_->Writes());
  EXPECT_EQ(NewWitness()->Begin().code(), absl::StatusCode::kUnavailable);
  fs::remove(root_ + "/witness");
  fs::rename(root_ + "/aside", root_ + "/witness");
  EXPECT_TRUE(witness_->Writes());
  EXPECT_TRUE(Cover("j").ok());
}

TEST_P(WitnessTest, ManyThatTryTheDirectoryAtOnceDoNotMeet) {
  std::vector<absl::Status> statuses(8);
  std::vector<std::thread> threads;
  for (absl::Status& status : statuses) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10 && status.ok(); ++i) {
        status = witness_->marks().TryWriting();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
  for (const auto& entry : fs::directory_iterator(root_ + "/witness")) {
    EXPECT_THAT(entry.path().filename().string(), ::testing::AnyOf("acme", "store.ids"));
  }
}

TEST_P(WitnessTest, ACrashBetweenCommitAndMarkFreezesNothing) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  Spend("second");
  Restart();
  EXPECT_EQ(AccountNow().frozen_reason, "");
  EXPECT_EQ(MarkNow()->last().sequence, 3);
  EXPECT_TRUE(Cover("second").ok());
  EXPECT_EQ(MarkNow()->last().sequence, 5);
  EXPECT_EQ(MarkNow()->checkpoints.size(), 2U);
}

TEST_P(WitnessTest, AServerThatMeetsSpendingWithoutAMarkMarksItAtItsStart) {
  Spend("j");
  Restart();
  EXPECT_EQ(MarkNow()->last().sequence, 3);
  EXPECT_EQ(MarkNow()->last().spent_units, AccountNow().posted_units);
}

TEST_P(WitnessTest, ADirectoryThatIsAdoptedKnowsEveryContentOfTheStore) {
  const auto digest = [](int number) { return absl::StrCat(std::string(60, 'e'), 1000 + number); };
  constexpr int kMany = 1001;  // more than are read at once
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                for (int i = 0; i < kMany; ++i) {
                  DPAR_RETURN_IF_ERROR(i % 2 == 0 ? RememberContent(t, "tenants/acme", digest(i), kPopulation)
                                                  : RememberPublic(t, "tenants/acme", digest(i)));
                }
                return absl::OkStatus();
              }).ok());
  fs::remove_all(root_ + "/witness");
  const MarkDirectory empty(root_ + "/witness");
  ASSERT_TRUE(empty.Make().ok());
  ASSERT_TRUE(Adopt(store_.database(), empty, "its disk died", testing::kWitnessTime).ok());
  Restart();
  const MarkDirectory& marks = witness_->marks();
  EXPECT_EQ(marks.PopulationOf({"tenants/acme", std::string(64, 'a')}).value(), kPopulation);
  for (int i = 0; i < kMany; ++i) {
    const Content content{"tenants/acme", digest(i)};
    EXPECT_EQ(marks.PopulationOf(content).value().value_or("none"), i % 2 == 0 ? kPopulation : "none") << i;
    EXPECT_EQ(marks.WasPublic(content).value(), i % 2 == 1) << i;
  }
}

TEST_P(WitnessTest, AContentsFileThatIsSpoiledIsKeptAndEndsNoStart) {
  const std::string file = absl::StrCat(root_, "/witness/acme/", std::string(64, 'a'), ".population");
  ASSERT_TRUE(WriteFileDurably(file, "garbled", 0600).ok());
  Restart();
  EXPECT_EQ(witness_->marks().PopulationOf({"tenants/acme", std::string(64, 'a')}).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST_P(WitnessTest, WhatAnotherServerMarkedIsNotMarkedAgain) {
  Spend("j");
  ASSERT_TRUE(Cover("j").ok());
  const auto before = fs::last_write_time(witness_->marks().File(kPopulation));
  const std::unique_ptr<Witness> other = NewWitness();
  EXPECT_TRUE(other->CoverJobs({Name("j")}).ok());
  EXPECT_EQ(fs::last_write_time(witness_->marks().File(kPopulation)), before);
}

TEST_P(WitnessTest, TwoServersThatMarkAtOnceNeverMoveAMarkBackwards) {
  const std::unique_ptr<Witness> other = NewWitness();
  for (int i = 0; i < 10; ++i) {
    const std::string job = absl::StrCat("j", i);
    Spend(job, 0.1);
    std::vector<absl::Status> statuses(4);
    std::vector<std::thread> threads;
    for (size_t t = 0; t < statuses.size(); ++t) {
      threads.emplace_back([&, t] { statuses[t] = (t % 2 == 0 ? *witness_ : *other).CoverJobs({Name(job)}); });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_THAT(statuses, ::testing::Each(absl::OkStatus()));
    EXPECT_EQ(MarkNow()->last().sequence, 3 + 2 * i);
    EXPECT_EQ(MarkNow()->last().hash, AccountNow().head_hash);
  }
}

TEST_P(WitnessTest, AnOperatorsChangeIsMarkedAsAWhole) {
  ASSERT_TRUE(Write([](Transaction& t) {
                return Debit(t, kPopulation, 70, "elsewhere", {"op", absl::Now()}).status();
              }).ok());
  ASSERT_TRUE(witness_->CoverAll(kPopulation).ok());
  EXPECT_EQ(MarkNow()->last().spent_units, 70);
  ASSERT_TRUE(Write([](Transaction& t) { return SetCap(t, kPopulation, 2, "less", {"op", absl::Now()}); }).ok());
  ASSERT_TRUE(witness_->CoverAll(kPopulation).ok());
  EXPECT_EQ(MarkNow()->terms, MarkTerms(AccountNow()));
  EXPECT_EQ(MarkNow()->last().sequence, 3);
}

TEST_P(WitnessTest, ALedgerThatIsRolledBackWhileAServerRunsIsNoticedBeforeItShowsMore) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  const Account backup = AccountNow();
  Spend("second");
  Spend("third");
  ASSERT_TRUE(Cover("third").ok());
  RollBackTo(backup);
  Spend("fourth");
  const absl::Status refused = Cover("fourth");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Reason(refused), "BUDGET_FROZEN");
  EXPECT_NE(AccountNow().frozen_reason, "");
  EXPECT_EQ(Reason(Submit("fifth")), "BUDGET_FROZEN");
  // What both know can be read.
  EXPECT_TRUE(Cover("first").ok());
  EXPECT_EQ(failures_, 0);
}

TEST_P(WitnessTest, ALedgerThatWasRolledBackAndGrewToItsOldLengthIsNotTheOneThatWasMarked) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  const Account backup = AccountNow();
  Spend("second");
  Spend("third");
  ASSERT_TRUE(Cover("third").ok());
  RollBackTo(backup);
  Spend("fourth");
  Spend("fifth");
  ASSERT_EQ(AccountNow().head_sequence, MarkNow()->last().sequence);
  EXPECT_EQ(Reason(Cover("fourth")), "BUDGET_FROZEN");
  EXPECT_NE(AccountNow().frozen_reason, "");
}

TEST_P(WitnessTest, AnEntryThatTheLedgerHasNoLongerIsNotCovered) {
  Spend("first");
  const Account standby = AccountNow();
  Spend("second");
  const auto read = ReadFrom(store_.database(), [](Transaction& t) { return SpendsOf(t, {Name("second")}); });
  ASSERT_EQ(read.value().size(), 1U);
  EXPECT_EQ(read->front().sequence, 5);
  EXPECT_EQ(read->front().hash, AccountNow().head_hash);
  // As when a standby without the last commit takes over after the job was read.
  RollBackTo(standby);
  EXPECT_EQ(witness_->Cover(*read).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(MarkNow(), std::nullopt);
  // Another entry in its place is another one.
  Spend("third");
  EXPECT_EQ(witness_->Cover(*read).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(MarkNow(), std::nullopt);
  EXPECT_EQ(witness_->Cover(dpar::Spend{"x", kPopulation, 7, std::string(64, '7')}).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(failures_, 3);
  EXPECT_EQ(AccountNow().frozen_reason, "");
  EXPECT_TRUE(Cover("third").ok());
  EXPECT_EQ(MarkNow()->last().sequence, 5);
}

TEST_P(WitnessTest, OneThatAFrozenBudgetKeepsBackKeepsNoOtherBack) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  const Account backup = AccountNow();
  Spend("second");
  ASSERT_TRUE(Cover("second").ok());
  RollBackTo(backup);
  Spend("third");
  const auto spends = ReadFrom(store_.database(), [](Transaction& t) {
    return SpendsOf(t, {Name("first"), Name("third")});
  });
  ASSERT_EQ(spends.value().size(), 2U);
  // Another server, which has seen neither.
  const auto kept_back = NewWitness()->CoverEach(*spends);
  ASSERT_TRUE(kept_back.ok()) << kept_back.status();
  EXPECT_THAT(*kept_back, ::testing::ElementsAre(Name("third")));
  EXPECT_TRUE(witness_->CoverEach({}).value().empty());
  fs::remove_all(root_ + "/witness");
  ASSERT_TRUE(WriteFileDurably(root_ + "/witness", "in the way", 0600).ok());
  EXPECT_EQ(NewWitness()->CoverEach(*spends).status().code(), absl::StatusCode::kUnavailable);
}

TEST_P(WitnessTest, AllJobsOfABudgetAreCoveredByOneMark) {
  Spend("first");
  Spend("second");
  ASSERT_TRUE(witness_->CoverJobs({Name("first"), Name("second")}).ok());
  EXPECT_EQ(MarkNow()->checkpoints.size(), 1U);
  fs::remove_all(root_ + "/witness/acme");
  ASSERT_TRUE(WriteFileDurably(root_ + "/witness/acme", "in the way", 0600).ok());
  EXPECT_TRUE(Cover("first").ok());
  EXPECT_TRUE(Cover("second").ok());
}

TEST_P(WitnessTest, ATenantsContentKeyIsKeptAndAnotherOneEndsTheStart) {
  const MarkDirectory& marks = witness_->marks();
  EXPECT_EQ(marks.KeepContentKey("tenants/acme", std::string(32, 'x')).value(), std::string(32, 'k'));
  EXPECT_EQ(marks.KeepContentKey("tenants/new", std::string(32, 'x')).value(), std::string(32, 'x'));
  EXPECT_EQ(marks.KeepContentKey("tenants/new", std::string(32, 'y')).value(), std::string(32, 'x'));
  ASSERT_TRUE(WriteFileDurably(root_ + "/witness/new/content.key", "nonsense\n", 0600).ok());
  EXPECT_EQ(marks.KeepContentKey("tenants/new", std::string(32, 'y')).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_TRUE(WriteFileDurably(root_ + "/witness/acme/content.key", std::string(64, '0') + "\n", 0600).ok());
  const absl::Status begun = NewWitness()->Begin();
  EXPECT_EQ(begun.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(begun.message()), HasSubstr("belongs to another store"));
}

TEST_P(WitnessTest, FilesAreForTheirOwnerOnly) {
  Spend("j");
  ASSERT_TRUE(Cover("j").ok());
  for (const char* path : {"/witness", "/witness/acme"}) {
    EXPECT_EQ(fs::status(root_ + path).permissions(), fs::perms::owner_all) << path;
  }
  for (const std::string& path : {witness_->marks().File(kPopulation), root_ + "/witness/store.ids"}) {
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, WitnessTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
