// Ledgers that are older than their marks.
#include "server/witness/rollback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/certificate/digest.h"
#include "server/files.h"
#include "server/witness/testing/witness_fixture.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;
using testing::kPopulation;
using testing::Reason;
using ::testing::StartsWith;
namespace fs = std::filesystem;

class RollbackTest : public testing::WitnessFixture {
 protected:
  // A ledger of one marked job, as it was backed up; another is marked since.
  Account BackUpAndSpendMore() {
    Spend("first");
    EXPECT_TRUE(Cover("first").ok());
    Account backup = AccountNow();
    Spend("second");
    EXPECT_TRUE(Cover("second").ok());
    spent_ = AccountNow().posted_units;
    return backup;
  }
  v1::LedgerEntry LastEntry() {
    const auto entries =
        ReadFrom(store_.database(), [](Transaction& t) { return ListEntries(t, kPopulation, 0, 100); }).value();
    return entries.back();
  }
  void SpoilMark(const std::string& text) {
    ASSERT_TRUE(WriteFileDurably(witness_->marks().File(kPopulation), text, 0600).ok());
  }

  int64_t spent_ = 0;
};

TEST_P(RollbackTest, ARestoredOlderLedgerIsFrozenWithTheReasonAndItsResultsStayReadable) {
  RollBackTo(BackUpAndSpendMore());
  Restart();
  const Account account = AccountNow();
  EXPECT_THAT(account.frozen_reason, StartsWith("results were released up to entry 5 of this budget's ledger"));
  EXPECT_THAT(account.frozen_reason, HasSubstr("dpard thaw"));
  const absl::Status refused = Submit("third");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Reason(refused), "BUDGET_FROZEN");
  EXPECT_EQ(refused.message(), account.frozen_reason);
  EXPECT_TRUE(Cover("first").ok());
  EXPECT_EQ(MarkNow()->last().sequence, 5);
  // Another start finds the same.
  Restart();
  EXPECT_EQ(AccountNow().frozen_reason, account.frozen_reason);
}

TEST_P(RollbackTest, AReservationThatComesBackNeverRunsAgain) {
  Spend("first");
  ASSERT_TRUE(Submit("second").ok());
  const Account backup = AccountNow();
  ASSERT_TRUE(Finish("second").ok());
  ASSERT_TRUE(Cover("second").ok());
  RollBackTo(backup);
  ASSERT_EQ(Job("second").state(), v1::Job::QUEUED);
  ASSERT_EQ(AccountNow().reserved_units, PriceOf(0.5).cost.units);
  Restart();
  EXPECT_EQ(Job("second").state(), v1::Job::FAILED);
  EXPECT_THAT(Job("second").failure(), HasSubstr("budget of its data was frozen"));
  EXPECT_EQ(AccountNow().reserved_units, 0);
  EXPECT_EQ(LastEntry().kind(), v1::LedgerEntry::VOID);
  ExpectIntact();
}

TEST_P(RollbackTest, AJobThatRunsWhenItsBudgetIsFrozenCannotPost) {
  Spend("first");
  ASSERT_TRUE(Submit("second").ok());
  ASSERT_TRUE(Write([](Transaction& t) { return SetFrozen(t, kPopulation, "for a test"); }).ok());
  EXPECT_EQ(Reason(Finish("second")), "BUDGET_FROZEN");
}

TEST_P(RollbackTest, AJobOfAFrozenBudgetIsNotLeased) {
  ASSERT_TRUE(Submit("waiting").ok());
  const auto lease = [&] {
    std::optional<StoredJob> leased;
    const absl::Status status = Write([&](Transaction& t) -> absl::Status {
      DPAR_ASSIGN_OR_RETURN(leased, Lease(t, {"server", absl::Now(), absl::Minutes(1), 100, 1000, 1000}));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return leased.has_value();
  };
  ASSERT_TRUE(Write([](Transaction& t) { return SetFrozen(t, kPopulation, "for a test"); }).ok());
  EXPECT_FALSE(lease());
  ASSERT_TRUE(Write([](Transaction& t) { return SetFrozen(t, kPopulation, ""); }).ok());
  EXPECT_TRUE(lease());
}

TEST_P(RollbackTest, AThawDebitsExactlyWhatTheLedgerLacksAndAdmitsTheRest) {
  const Account backup = BackUpAndSpendMore();
  const int64_t left = AccountNow().left_units();
  RollBackTo(backup);
  Restart();
  const absl::StatusOr<Thawed> thawed = ThawNow();
  ASSERT_TRUE(thawed.ok()) << thawed.status();
  EXPECT_EQ(thawed->debited_units, spent_ - backup.posted_units);
  EXPECT_EQ(thawed->left_units, left);
  const Account account = AccountNow();
  EXPECT_EQ(account.frozen_reason, "");
  EXPECT_EQ(account.posted_units, spent_);
  EXPECT_EQ(LastEntry().kind(), v1::LedgerEntry::DEBIT);
  EXPECT_THAT(LastEntry().reason(),
              ::testing::AllOf(StartsWith("thawed past entry 5 ("), HasSubstr("restored a backup")));
  ExpectIntact();
  EXPECT_EQ(MarkNow()->last().hash, account.head_hash);
  EXPECT_EQ(MarkNow()->checkpoints.size(), 2U);
  Restart();
  EXPECT_EQ(AccountNow().frozen_reason, "");
  Spend("third");
  EXPECT_TRUE(Cover("third").ok());
  const absl::Status again = ThawNow().status();
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(RollbackTest, AThawRemembersThePromiseThatWhatItDebitsRestsOn) {
  const auto narrow = [&](int64_t max_degree) {
    return Write([&](Transaction& t) { return NarrowToDegree(t, kPopulation, max_degree); });
  };
  const Account before = AccountNow();
  ASSERT_TRUE(narrow(50).ok());
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  EXPECT_EQ(MarkNow()->terms.max_degree, 50);
  RollBackTo(before);
  ASSERT_TRUE(
      Write([](Transaction& t) { return t.Execute("UPDATE populations SET max_degree = NULL", {}).status(); }).ok());
  Restart();
  ASSERT_TRUE(ThawNow().ok());
  EXPECT_EQ(AccountNow().max_degree, 50);
  EXPECT_EQ(MarkNow()->terms.max_degree, 50);
}

TEST_P(RollbackTest, AReservationThatWasAlteredKeepsNoServerFromStarting) {
  Spend("first");
  const Account backup = AccountNow();
  ASSERT_TRUE(Submit("open").ok());
  const Account with_reservation = AccountNow();
  ASSERT_TRUE(Finish("open").ok());
  ASSERT_TRUE(Cover("open").ok());
  RollBackTo(with_reservation);
  ASSERT_TRUE(
      Write([](Transaction& t) {
        return t.Execute("UPDATE ledger_entries SET units = 1 WHERE job = 'tenants/acme/jobs/open'", {}).status();
      }).ok());
  Restart();
  EXPECT_THAT(AccountNow().frozen_reason, StartsWith("results were released up to entry"));
  EXPECT_EQ(Job("open").state(), v1::Job::QUEUED);
  EXPECT_EQ(AccountNow().posted_units, backup.posted_units);
}

TEST_P(RollbackTest, AThawOfABudgetThatIsNotFrozenEndsNoJob) {
  ASSERT_TRUE(Submit("live").ok());
  const absl::Status refused = ThawNow().status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("not frozen"));
  EXPECT_EQ(Job("live").state(), v1::Job::QUEUED);
  EXPECT_EQ(AccountNow().reserved_units, PriceOf(0.5).cost.units);
}

TEST_P(RollbackTest, AThawThatWasCutOffDebitsNothingTwice) {
  RollBackTo(BackUpAndSpendMore());
  const Mark before = *MarkNow();
  Restart();
  ASSERT_TRUE(ThawNow().ok());
  // As if it had died before the mark was replaced.
  SpoilMark(FormatMark(before));
  Restart();
  EXPECT_NE(AccountNow().frozen_reason, "");
  const absl::StatusOr<Thawed> again = ThawNow();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->debited_units, 0);
  EXPECT_EQ(AccountNow().posted_units, spent_);
  Restart();
  EXPECT_EQ(AccountNow().frozen_reason, "");
}

TEST_P(RollbackTest, WhatARolledBackLedgerSpentWhereNobodyComparedIsCountedToo) {
  RollBackTo(BackUpAndSpendMore());
  // Longer than the marked ledger, and without its entries.
  Spend("third");
  Spend("fourth");
  const int64_t forked = AccountNow().posted_units;
  Restart();
  EXPECT_NE(AccountNow().frozen_reason, "");
  EXPECT_EQ(Reason(Cover("fourth")), "BUDGET_FROZEN");
  const absl::StatusOr<Thawed> thawed = ThawNow();
  ASSERT_TRUE(thawed.ok()) << thawed.status();
  const int64_t price = PriceOf(0.5).cost.units;
  EXPECT_EQ(thawed->debited_units, price);
  EXPECT_EQ(AccountNow().posted_units, forked + price);
  EXPECT_TRUE(Cover("fourth").ok());
}

TEST_P(RollbackTest, ACapThatWasLoweredDoesNotComeBack) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  const Account backup = AccountNow();
  ASSERT_TRUE(Write([](Transaction& t) { return SetCap(t, kPopulation, 2, "less", {"op", absl::Now()}); }).ok());
  ASSERT_TRUE(witness_->CoverAll(kPopulation).ok());
  const int64_t left = AccountNow().left_units();
  RollBackTo(backup);
  Restart();
  ASSERT_TRUE(ThawNow().ok());
  EXPECT_EQ(AccountNow().left_units(), left);
}

TEST_P(RollbackTest, AMarkThatCannotBeReadFreezesAndAThawTakesAllThatIsLeft) {
  const std::string good = [&] {
    Spend("first");
    EXPECT_TRUE(Cover("first").ok());
    return FormatMark(*MarkNow());
  }();
  for (const std::string& bad :
       {std::string(), good.substr(0, good.size() / 2), std::string(200, '\0'), std::string("not a mark\n")}) {
    ASSERT_TRUE(Write([](Transaction& t) { return SetFrozen(t, kPopulation, ""); }).ok());
    SpoilMark(bad);
    Restart();
    EXPECT_THAT(AccountNow().frozen_reason, StartsWith("the mark of what was spent cannot be read (not a mark: "));
    EXPECT_EQ(Reason(Submit("second")), "BUDGET_FROZEN");
  }
  const int64_t left = AccountNow().left_units();
  const absl::StatusOr<Thawed> thawed = ThawNow();
  ASSERT_TRUE(thawed.ok()) << thawed.status();
  EXPECT_EQ(thawed->debited_units, left);
  EXPECT_EQ(thawed->left_units, 0);
  // No raised cap brings back what nobody can count.
  EXPECT_TRUE(thawed->closed);
  EXPECT_EQ(Reason(Submit("second")), "POPULATION_CLOSED");
  EXPECT_EQ(Reason(Write([](Transaction& t) {
              return SetCap(t, kPopulation, 8, "more", {"op", absl::Now()});
            })),
            "POPULATION_CLOSED");
  EXPECT_TRUE(MarkNow()->terms.closed);
  ExpectIntact();
  EXPECT_EQ(MarkNow()->last().spent_units, AccountNow().posted_units);
}

TEST_P(RollbackTest, AMarkOfANewerVersionEndsTheStartAndFreezesNothing) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  std::string text = absl::StrReplaceAll(FormatMark(*MarkNow()), {{"dpar-mark 1", "dpar-mark 2"}});
  text.resize(text.rfind("sha256 "));
  SpoilMark(absl::StrCat(text, "sha256 ", Sha256Hex(text), "\n"));
  const absl::Status begun = NewWitness()->Begin();
  EXPECT_EQ(begun.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(begun.message()),
              ::testing::AllOf(HasSubstr(witness_->marks().File(kPopulation)), HasSubstr("newer version")));
  Spend("second");
  EXPECT_EQ(Cover("second").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(AccountNow().frozen_reason, "");
}

TEST_P(RollbackTest, UnitsOfAnotherOrderAreNotComparedAndAThawTakesAllThatIsLeft) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  Mark mark = *MarkNow();
  mark.terms.order += 1;
  mark.checkpoints.back().hash = std::string(64, '9');
  SpoilMark(FormatMark(mark));
  Restart();
  ASSERT_NE(AccountNow().frozen_reason, "");
  const int64_t left = AccountNow().left_units();
  ASSERT_GT(left, mark.last().spent_units);
  const absl::StatusOr<Thawed> thawed = ThawNow();
  ASSERT_TRUE(thawed.ok()) << thawed.status();
  EXPECT_EQ(thawed->debited_units, left);
  EXPECT_EQ(thawed->left_units, 0);
  EXPECT_EQ(MarkNow()->terms, MarkTerms(AccountNow()));
}

TEST_P(RollbackTest, AMarkThatCannotBeReadStopsARunningServerToo) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  SpoilMark("garbled");
  Spend("second");
  EXPECT_EQ(Reason(Cover("second")), "BUDGET_FROZEN");
  EXPECT_NE(AccountNow().frozen_reason, "");
}

TEST_P(RollbackTest, AMarkOfAnotherPopulationIsNone) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  Mark mark = *MarkNow();
  mark.population = "tenants/acme/populations/another";
  SpoilMark(FormatMark(mark));
  Restart();
  EXPECT_THAT(AccountNow().frozen_reason, HasSubstr("it is the mark of another population"));
}

TEST_P(RollbackTest, AMarkThatIsGoneWhileItsBudgetIsFrozenTakesAllThatIsLeft) {
  RollBackTo(BackUpAndSpendMore());
  Restart();
  fs::remove(witness_->marks().File(kPopulation));
  EXPECT_EQ(ThawNow().value().left_units, 0);
}

TEST_P(RollbackTest, AMarkOfAPopulationThatTheStoreDoesNotKnowIsReportedAndFreezesNobody) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  Mark mark = *MarkNow();
  mark.population = "tenants/gone/populations/lost";
  const DirectoryLock lock = witness_->marks().Lock("tenants/gone").value();
  ASSERT_TRUE(witness_->marks().Write(mark).ok());
  const WitnessReport report = CompareAll(store_.database(), witness_->marks()).value();
  EXPECT_EQ(report.good, 1);
  EXPECT_EQ(report.unclaimed, 1);
  EXPECT_TRUE(report.rollbacks.empty());
  EXPECT_TRUE(report.unmarked.empty());
}

TEST_P(RollbackTest, ABudgetThatSpentSomethingAndHasNoMarkIsReported) {
  EXPECT_TRUE(CompareAll(store_.database(), witness_->marks()).value().unmarked.empty());
  Spend("first");
  EXPECT_THAT(CompareAll(store_.database(), witness_->marks()).value().unmarked, ::testing::ElementsAre(kPopulation));
  Restart();
  EXPECT_TRUE(CompareAll(store_.database(), witness_->marks()).value().unmarked.empty());
}

TEST_P(RollbackTest, WhatCannotBeReadAtAllIsAnErrorAndNoVerdict) {
  Spend("first");
  ASSERT_TRUE(Cover("first").ok());
  fs::remove(witness_->marks().File(kPopulation));
  fs::create_directory(witness_->marks().File(kPopulation));
  EXPECT_EQ(CompareAll(store_.database(), witness_->marks()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(NewWitness()->Begin().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(AccountNow().frozen_reason, "");
}

INSTANTIATE_TEST_SUITE_P(Engines, RollbackTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
