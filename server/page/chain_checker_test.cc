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

constexpr char kA[] = "tenants/a/populations/p";
constexpr char kB[] = "tenants/b/populations/p";
constexpr char kC[] = "tenants/c/populations/p";

// Tenants a, b and c with a dataset d and a population p.
class LedgerFaultsTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    for (const char* tenant : {"a", "b", "c"}) {
      v1::Dataset stored;
      stored.set_name(absl::StrCat("tenants/", tenant, "/datasets/d"));
      stored.set_content_digest("digest");
      stored.set_population(absl::StrCat("tenants/", tenant, "/populations/p"));
      ASSERT_TRUE(
          Write([&](Transaction& t) -> absl::Status {
            DPAR_RETURN_IF_ERROR(InsertTenant(t, tenant, "key", kNow));
            DPAR_RETURN_IF_ERROR(OpenBudget(t, stored.population(), *MakeBudgetTerms(4, 1e-5), {"server", kNow}));
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
  testing::LoseBudget(store_, GetParam(), kA);
  ChainChecker watch(store_.database());
  VerifyAll(watch, kNow);
  const ChainChecker::Summary all = watch.Summarise("");
  EXPECT_EQ(all.verified, 3);
  ASSERT_EQ(all.faults.size(), 1U);
  EXPECT_EQ(all.faults[0].population, kA);
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
      store_.database().Read([&](Transaction& t) { return VerifyChain(t, kA, {}, &stop).status(); })));
  stop = false;
  EXPECT_TRUE(store_.database().Read([&](Transaction& t) { return VerifyChain(t, kA, {}, &stop).status(); }).ok());
}

TEST_P(LedgerFaultsTest, SpendIsFollowedBehindALedgerThatCannotBeRead) {
  // A kind that needs more bits than any has.
  Change("UPDATE ledger_entries SET kind = 99999999999 WHERE population = $1", kA);
  DebitOne(kC);
  SpendLog log(store_.database());
  ASSERT_TRUE(log.Refresh().ok());
  EXPECT_TRUE(log.Summarise("", kNow).complete);
  EXPECT_EQ(log.Summarise("", kNow).budgets, 3);
  EXPECT_TRUE(log.Points(kA).empty());
  ASSERT_EQ(log.Points(kC).size(), 2U);
  EXPECT_EQ(log.Points(kC)[1].posted_units, 1);
  // It is read once it grows after somebody has put it right.
  Change("UPDATE ledger_entries SET kind = 1 WHERE population = $1", kA);
  DebitOne(kA);
  ASSERT_TRUE(log.Refresh().ok());
  EXPECT_EQ(log.Points(kA).size(), 2U);
}

TEST_P(LedgerFaultsTest, ALedgerOfSeveralPagesIsReadToItsEnd) {
  ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                for (int i = 0; i < 2'100; ++i) {
                  DPAR_RETURN_IF_ERROR(Debit(t, kB, 1, "why", {"token", kNow + absl::Seconds(i)}).status());
                }
                return absl::OkStatus();
              }).ok());
  DebitOne(kC);
  SpendLog log(store_.database());
  ASSERT_TRUE(log.Refresh().ok());
  EXPECT_EQ(log.Points(kB).back().posted_units, 2'100);
  EXPECT_EQ(log.Points(kC).back().posted_units, 1);
  const SpendLog::Summary all = log.Summarise("", kNow);
  EXPECT_EQ(all.entries, 3 + 2'100 + 1);
  EXPECT_EQ(all.adjustments, 2'101) << "all of them count, also those that are not kept";
  EXPECT_EQ(all.newest.size(), 20U);
}

INSTANTIATE_TEST_SUITE_P(Engines, LedgerFaultsTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
