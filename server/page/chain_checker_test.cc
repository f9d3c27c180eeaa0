// Ledgers that cannot be read, beside others that can.
#include "server/page/chain_checker.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"
#include "server/ledger/ledger.h"
#include "server/page/spend_log.h"
#include "server/store/datasets.h"
#include "server/store/testing/lost_budget.h"
#include "server/store/testing/temporary_store.h"

namespace dpar {
namespace {

using testing::Engine;
using testing::TemporaryStore;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

// Tenants a, b and c with a dataset d and a budget of their name.
class LedgerFaultsTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    for (const char* tenant : {"a", "b", "c"}) {
      StoredDataset stored;
      stored.dataset.set_name(absl::StrCat("tenants/", tenant, "/datasets/d"));
      stored.dataset.set_content_digest("digest");
      stored.budget_id = tenant;
      ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                    DPAR_RETURN_IF_ERROR(InsertTenant(t, tenant, "key", kNow));
                    DPAR_RETURN_IF_ERROR(OpenBudget(t, tenant, *MakeBudgetTerms(4, 1e-5), {"server", kNow}));
                    return InsertDataset(t, stored, 100);
                  }).ok());
    }
  }
  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }
  void Change(const std::string& sql, const std::string& budget) {
    ASSERT_TRUE(Write([&](Transaction& t) { return t.Execute(sql, {budget}).status(); }).ok());
  }
  void DebitOne(const std::string& budget) {
    ASSERT_TRUE(Write([&](Transaction& t) { return Debit(t, budget, 1, "why", {"token", kNow}).status(); }).ok());
  }
  void VerifyAll(ChainChecker& watch, absl::Time now) {
    for (int i = 0; i < 3; ++i) {
      watch.VerifyNext(now);
    }
  }

  TemporaryStore store_{GetParam()};
};

TEST_P(LedgerFaultsTest, AChainWithoutARecordIsAtFaultAndTheOthersAreVerified) {
  testing::LoseBudget(store_, GetParam(), "a");
  ChainChecker watch(store_.database());
  VerifyAll(watch, kNow);
  const ChainChecker::Summary all = watch.Summarise("");
  EXPECT_EQ(all.verified, 3);
  ASSERT_EQ(all.faults.size(), 1U);
  EXPECT_EQ(all.faults[0].dataset, "tenants/a/datasets/d");
  EXPECT_EQ(all.faults[0].time, kNow);
  EXPECT_EQ(all.faults[0].sequence, 0);
  EXPECT_EQ(all.faults[0].what, "the budget's record is gone from the store");
}

TEST_P(LedgerFaultsTest, WhatWasVerifiedInTheFutureIsVerifiedAgain) {
  ChainChecker watch(store_.database());
  VerifyAll(watch, kNow);
  EXPECT_EQ(watch.Summarise("").oldest, kNow);
  const absl::Time earlier = kNow - absl::Hours(24);
  VerifyAll(watch, earlier);
  EXPECT_EQ(watch.Summarise("").oldest, earlier);
  EXPECT_EQ(watch.Summarise("tenants/c").oldest, earlier);
}

TEST_P(LedgerFaultsTest, AVerificationIsLeftWhenTheServerStops) {
  std::atomic<bool> stop = true;
  EXPECT_TRUE(absl::IsCancelled(
      store_.database().Read([&](Transaction& t) { return VerifyChain(t, "a", {}, &stop).status(); })));
  stop = false;
  EXPECT_TRUE(store_.database().Read([&](Transaction& t) { return VerifyChain(t, "a", {}, &stop).status(); }).ok());
}

TEST_P(LedgerFaultsTest, SpendIsFollowedBehindALedgerThatCannotBeRead) {
  // A kind that needs more bits than any has.
  Change("UPDATE ledger_entries SET kind = 99999999999 WHERE budget_id = $1", "a");
  DebitOne("c");
  SpendLog log(store_.database());
  ASSERT_TRUE(log.Refresh().ok());
  EXPECT_TRUE(log.Summarise("", kNow).complete);
  EXPECT_EQ(log.Summarise("", kNow).budgets, 3);
  EXPECT_TRUE(log.Points("a").empty());
  ASSERT_EQ(log.Points("c").size(), 2U);
  EXPECT_EQ(log.Points("c")[1].posted_units, 1);
  // It is read once it grows after somebody has put it right.
  Change("UPDATE ledger_entries SET kind = 1 WHERE budget_id = $1", "a");
  DebitOne("a");
  ASSERT_TRUE(log.Refresh().ok());
  EXPECT_EQ(log.Points("a").size(), 2U);
}

TEST_P(LedgerFaultsTest, ALedgerOfSeveralPagesIsReadToItsEnd) {
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                for (int i = 0; i < 2'100; ++i) {
                  DPAR_RETURN_IF_ERROR(Debit(t, "b", 1, "why", {"token", kNow + absl::Seconds(i)}).status());
                }
                return absl::OkStatus();
              }).ok());
  DebitOne("c");
  SpendLog log(store_.database());
  ASSERT_TRUE(log.Refresh().ok());
  EXPECT_EQ(log.Points("b").back().posted_units, 2'100);
  EXPECT_EQ(log.Points("c").back().posted_units, 1);
  const SpendLog::Summary all = log.Summarise("", kNow);
  EXPECT_EQ(all.entries, 3 + 2'100 + 1);
  EXPECT_EQ(all.adjustments, 2'101) << "all of them count, also those that are not kept";
  EXPECT_EQ(all.newest.size(), 20U);
}

INSTANTIATE_TEST_SUITE_P(Engines, LedgerFaultsTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
