// What is followed beside the store: spend over time, chains, refusals.
#include "server/page/spend_log.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/privacy/event.h"
#include "core/status_macros.h"
#include "server/ledger/ledger.h"
#include "server/page/chain_checker.h"
#include "server/page/refusals.h"
#include "server/store/datasets.h"
#include "server/store/testing/temporary_store.h"

namespace dpar {
namespace {

using testing::Engine;
using testing::TemporaryStore;

constexpr double kDelta = 1e-5;
constexpr absl::Duration kDay = absl::Hours(24);
const absl::Time kStart = absl::FromUnixSeconds(20'000 * 86'400LL);  // a midnight
const absl::Time kNow = kStart + absl::Hours(12);

SpendStep Step(int64_t sequence, absl::Time time, v1::LedgerEntry::Kind kind, int64_t units) {
  SpendStep step;
  step.sequence = sequence;
  step.time = time;
  step.kind = kind;
  step.units = units;
  step.job = absl::StrCat("job-", sequence);
  return step;
}

TEST(BudgetSpendTest, EveryKindOfEntryMovesItsOwnSum) {
  BudgetSpend spend;
  const std::vector<v1::LedgerEntry::Kind> kinds = {
      v1::LedgerEntry::OPEN, v1::LedgerEntry::RESERVE, v1::LedgerEntry::POST,   v1::LedgerEntry::RESERVE,
      v1::LedgerEntry::VOID, v1::LedgerEntry::DEBIT,   v1::LedgerEntry::ADJUST, v1::LedgerEntry::RESERVE};
  const std::vector<int64_t> units = {1000, 100, 100, 70, 70, 5, 2000, 40};
  for (size_t i = 0; i < kinds.size(); ++i) {
    spend.Apply(Step(static_cast<int64_t>(i) + 1, kStart + absl::Minutes(static_cast<int64_t>(i)), kinds[i], units[i]));
  }
  ASSERT_EQ(spend.points().size(), 8U);
  const auto at = [&](size_t i) {
    const SpendPoint& point = spend.points()[i];
    return std::vector<int64_t>{point.posted_units, point.reserved_units, point.cap_units};
  };
  EXPECT_EQ(at(0), (std::vector<int64_t>{0, 0, 1000}));
  EXPECT_EQ(at(1), (std::vector<int64_t>{0, 100, 1000}));
  EXPECT_EQ(at(2), (std::vector<int64_t>{100, 0, 1000}));
  EXPECT_EQ(at(3), (std::vector<int64_t>{100, 70, 1000}));
  EXPECT_EQ(at(4), (std::vector<int64_t>{100, 0, 1000}));
  EXPECT_EQ(at(5), (std::vector<int64_t>{105, 0, 1000}));
  EXPECT_EQ(at(7), (std::vector<int64_t>{105, 40, 2000}));
  EXPECT_EQ(spend.head_sequence(), 8);
  EXPECT_EQ(spend.last_reserve()->job, "job-8");
  ASSERT_EQ(spend.adjustments().size(), 2U);
  EXPECT_EQ(spend.adjustments()[0].kind, v1::LedgerEntry::ADJUST) << "newest first";
}

TEST(BudgetSpendTest, DaysAreThoseOfUtcAndOnlyTheLastThirty) {
  BudgetSpend spend;
  spend.Apply(Step(1, kStart - 40 * kDay, v1::LedgerEntry::OPEN, 1000));
  spend.Apply(Step(2, kStart - 30 * kDay, v1::LedgerEntry::DEBIT, 1));
  spend.Apply(Step(3, kStart - 29 * kDay, v1::LedgerEntry::DEBIT, 2));
  spend.Apply(Step(4, kStart - absl::Microseconds(1), v1::LedgerEntry::DEBIT, 3));
  spend.Apply(Step(5, kStart, v1::LedgerEntry::DEBIT, 4));
  spend.Apply(Step(6, kNow, v1::LedgerEntry::DEBIT, 5));
  std::array<int64_t, kSpendDays> expected = {};
  expected[0] = 2;
  expected[28] = 3;
  expected[29] = 9;
  EXPECT_EQ(spend.DailyUnits(kNow), expected);
}

TEST(BudgetSpendTest, ExhaustionFollowsTheRateOfTheseDays) {
  BudgetSpend idle;
  idle.Apply(Step(1, kNow - 90 * kDay, v1::LedgerEntry::OPEN, 1000));
  EXPECT_EQ(idle.Exhaustion(1000, kNow), std::nullopt) << "nothing is posted";
  EXPECT_EQ(idle.Exhaustion(0, kNow), kNow) << "nothing is left";
  BudgetSpend old = idle;
  old.Apply(Step(2, kNow - 2 * kDay, v1::LedgerEntry::DEBIT, 300));
  EXPECT_EQ(old.Exhaustion(600, kNow), kNow + 59 * kDay) << "300 units in 29.5 days";
  EXPECT_EQ(old.Exhaustion(int64_t{1} << 60, kNow), std::nullopt) << "not in a century";
  BudgetSpend young;
  young.Apply(Step(1, kNow - 4 * kDay, v1::LedgerEntry::OPEN, 1000));
  young.Apply(Step(2, kNow - kDay, v1::LedgerEntry::DEBIT, 400));
  EXPECT_EQ(young.Exhaustion(600, kNow), kNow + 6 * kDay) << "100 a day, since it was opened";
  BudgetSpend new_one;
  new_one.Apply(Step(1, kNow - absl::Seconds(1), v1::LedgerEntry::OPEN, 1000));
  new_one.Apply(Step(2, kNow, v1::LedgerEntry::DEBIT, 100));
  EXPECT_EQ(new_one.Exhaustion(900, kNow), kNow + 9 * kDay) << "a day at least";
}

TEST(BudgetSpendTest, ALongHistoryHasFewPointsAndEndsWhereTheLedgerDoes) {
  BudgetSpend spend;
  spend.Apply(Step(1, kStart, v1::LedgerEntry::OPEN, 1'000'000));
  for (int64_t i = 2; i <= 50'000; ++i) {
    spend.Apply(Step(i, kStart + absl::Seconds(i * 10), v1::LedgerEntry::DEBIT, 1));
    ASSERT_LE(spend.points().size(), kMaxSpendPoints);
  }
  EXPECT_GT(spend.points().size(), kMaxSpendPoints / 4);
  EXPECT_EQ(spend.points().front().time, absl::ToUnixMicros(kStart));
  EXPECT_EQ(spend.points().front().posted_units, 0);
  EXPECT_EQ(spend.points().back().posted_units, 49'999);
  for (size_t i = 1; i < spend.points().size(); ++i) {
    ASSERT_LT(spend.points()[i - 1].time, spend.points()[i].time);
    ASSERT_LT(spend.points()[i - 1].posted_units, spend.points()[i].posted_units);
  }
}

class LedgerFollowersTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    for (const char* tenant : {"acme", "other"}) {
      ASSERT_TRUE(Write([&](Transaction& t) { return InsertTenant(t, tenant, "key", kStart); }).ok());
      AddDataset(tenant, "d", absl::StrCat("tenants/", tenant, "/populations/d"));
    }
  }
  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }
  void AddDataset(const std::string& tenant, const std::string& id, const std::string& budget) {
    v1::Dataset stored;
    stored.set_name(absl::StrCat("tenants/", tenant, "/datasets/", id));
    stored.set_content_digest("digest");
    stored.set_population(budget);
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  if (id == "d") {
                    DPAR_RETURN_IF_ERROR(OpenBudget(t, budget, *MakeBudgetTerms(4, kDelta), {"server", kStart}));
                  }
                  return InsertDataset(t, stored, 100);
                }).ok());
  }
  void DebitUnits(const std::string& budget, int64_t units, absl::Time time) {
    ASSERT_TRUE(Write([&](Transaction& t) { return Debit(t, budget, units, "why", {"token", time}).status(); }).ok());
  }

  TemporaryStore store_{GetParam()};
};

TEST_P(LedgerFollowersTest, ReadsOnWhereItStoppedAndKeepsTenantsApart) {
  AddDataset("acme", "copy", "tenants/acme/populations/d");
  SpendLog log(store_.database());
  EXPECT_FALSE(log.Summarise("", kStart).complete);
  EXPECT_TRUE(log.Points("tenants/acme/populations/d").empty());
  ASSERT_TRUE(log.Refresh().ok());
  DebitUnits("tenants/acme/populations/d", 7, kStart + absl::Hours(1));
  DebitUnits("tenants/acme/populations/d", 8, kStart + absl::Hours(2));
  ASSERT_TRUE(log.Refresh().ok());
  ASSERT_TRUE(log.Refresh().ok()) << "nothing is read twice";
  EXPECT_EQ(log.Points("tenants/acme/populations/d").back().posted_units, 15);
  EXPECT_TRUE(log.Points("nobody").empty());
  EXPECT_FALSE(log.FindRecent("nobody", 1, kNow).has_value());

  const SpendLog::Summary all = log.Summarise("", kStart + absl::Minutes(90));
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(all.budgets, 2) << "two datasets of one population have one";
  EXPECT_EQ(all.entries, 4);
  EXPECT_EQ(all.commit_time, kStart + absl::Hours(2));
  ASSERT_EQ(all.adjustments, 1) << "the other is too old";
  EXPECT_EQ(all.newest[0].population, "tenants/acme/populations/d");
  EXPECT_EQ(all.newest[0].step.units, 8);
  const SpendLog::Summary other = log.Summarise("tenants/other", kStart);
  EXPECT_EQ(other.budgets, 1);
  EXPECT_EQ(other.entries, 1);
  EXPECT_EQ(other.adjustments, 0);
  ASSERT_EQ(log.NewestBudgets("", 5).size(), 2U);
  EXPECT_EQ(log.NewestBudgets("", 1)[0].population, "tenants/acme/populations/d");
  EXPECT_EQ(log.NewestBudgets("tenants/other", 5)[0].population, "tenants/other/populations/d");
}

TEST_P(LedgerFollowersTest, AChainIsVerifiedOnceInAnHour) {
  ChainChecker watch(store_.database());
  EXPECT_EQ(watch.Summarise("").oldest, std::nullopt);
  watch.VerifyNext(kNow);
  watch.VerifyNext(kNow + absl::Seconds(10));
  watch.VerifyNext(kNow + absl::Seconds(20));
  EXPECT_EQ(watch.Summarise("").verified, 2);
  EXPECT_EQ(watch.Summarise("").oldest, kNow);
  EXPECT_EQ(watch.Summarise("tenants/other").verified, 1);
  EXPECT_EQ(watch.Summarise("tenants/nobody").verified, 0);
  watch.VerifyNext(kNow + absl::Minutes(61));
  EXPECT_EQ(watch.Summarise("").oldest, kNow + absl::Seconds(10)) << "the oldest first";
}

TEST_P(LedgerFollowersTest, ABrokenChainIsToldToItsTenantAlone) {
  ASSERT_TRUE(Write([&](Transaction& t) {
                return t
                    .Execute("UPDATE ledger_entries SET units = units + 1 WHERE population = $1",
                             {"tenants/acme/populations/d"})
                    .status();
              }).ok());
  ChainChecker watch(store_.database());
  watch.VerifyNext(kNow);
  watch.VerifyNext(kNow);
  const ChainChecker::Summary all = watch.Summarise("");
  EXPECT_EQ(all.verified, 2);
  ASSERT_EQ(all.faults.size(), 1U);
  EXPECT_EQ(all.faults[0].population, "tenants/acme/populations/d");
  EXPECT_EQ(all.faults[0].sequence, 1);
  EXPECT_TRUE(watch.Summarise("tenants/other").faults.empty());
}

INSTANTIATE_TEST_SUITE_P(Engines, LedgerFollowersTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

TEST(RefusalsTest, OneTenantPushesOutNothingOfAnother) {
  Refusals refusals;
  refusals.Note("tenants/quiet", {"tenants/quiet/datasets/d", kStart, "too much"});
  for (int i = 0; i < 1000; ++i) {
    refusals.Note("tenants/loud", {"tenants/loud/datasets/d", kStart + absl::Seconds(i), absl::StrCat("no ", i)});
  }
  EXPECT_EQ(refusals.Summarise("tenants/quiet", kStart).count, 1);
  EXPECT_EQ(refusals.Summarise("tenants/quiet", kStart).newest[0].why, "too much");
  EXPECT_EQ(refusals.Summarise("tenants/loud", kStart).count, 1000);
  EXPECT_EQ(refusals.Summarise("tenants/loud", kStart).newest[0].why, "no 999");
  EXPECT_EQ(refusals.Summarise("", kStart).count, 1001);
  EXPECT_EQ(refusals.Summarise("", kStart).newest.size(), 20U);
  EXPECT_EQ(refusals.Summarise("", kStart + absl::Seconds(999)).count, 1);
  EXPECT_EQ(refusals.Summarise("tenants/nobody", kStart).count, 0);
}

}  // namespace
}  // namespace dpar
