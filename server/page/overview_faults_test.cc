// What is told where one budget is not as it must be, and that everything is told in the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/privacy/event.h"
#include "core/privacy/gaussian.h"
#include "core/status_macros.h"
#include "server/page/overviews.h"
#include "server/store/datasets.h"
#include "server/store/testing/lost_budget.h"
#include "server/store/testing/temporary_store.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using testing::Engine;
using ::testing::HasSubstr;
using testing::TemporaryStore;

constexpr double kDelta = 1e-5;
const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const Identity kOperator = {"", v1::OPERATOR, "operator/tokens/o"};

// Datasets a, b and c of a tenant, with budgets of their name, on each of which something is posted.
class OverviewFaultsTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Write([&](Transaction& t) { return InsertTenant(t, "t", "key", kNow); }).ok());
    const std::vector<double> epsilons = {3.8, 3.7, 0.5};
    for (size_t i = 0; i < epsilons.size(); ++i) {
      v1::Dataset stored;
      const std::string id(1, static_cast<char>('a' + i));
      stored.set_population("tenants/t/populations/" + id);
      stored.set_name("tenants/t/datasets/" + id);
      stored.set_content_digest("digest");
      const double epsilon = epsilons[i];
      const Price price =
          *MakePrice(*MakeGaussianEvent(1, 1 / *GaussianMu(epsilon, kDelta), 1), epsilon, kDelta, terms_);
      const std::string job = "tenants/t/jobs/" + id;
      ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                    DPAR_RETURN_IF_ERROR(OpenBudget(t, stored.population(), terms_, {"server", kNow}));
                    DPAR_RETURN_IF_ERROR(Reserve(t, stored.population(), job, price, {"token", kNow}).status());
                    DPAR_RETURN_IF_ERROR(Post(t, stored.population(), job, 1, {"worker", kNow}).status());
                    return InsertDataset(t, stored, 100);
                  }).ok());
    }
  }
  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }
  void Change(const std::string& sql) {
    ASSERT_TRUE(Write([&](Transaction& t) { return t.Execute(sql, {}).status(); }).ok());
  }
  // Each call computes what is missing of one row at least.
  v1::ListUsageResponse UsageInTheEnd() {
    v1::ListUsageResponse usage;
    for (int i = 0; i < 4; ++i) {
      usage = overviews_.ListUsage({}, 0, 10, kNow).value();
    }
    return usage;
  }
  static std::vector<std::string> Names(const v1::ListUsageResponse& response) {
    std::vector<std::string> names;
    for (const v1::PopulationUsage& usage : response.usage()) {
      names.push_back(absl::StrCat(usage.budget().name(), usage.equivalent_pending() ? " pending" : ""));
    }
    return names;
  }
  std::vector<std::string> Broken(const v1::Overview& overview) {
    std::vector<std::string> broken;
    for (const v1::Attention& attention : overview.attention()) {
      for (const v1::AttentionItem& item : attention.items()) {
        if (attention.kind() == v1::Attention::CHAIN_BROKEN) {
          broken.push_back(absl::StrCat(item.resource(), ": ", item.detail()));
        }
      }
    }
    return broken;
  }
  v1::Overview Verified() {
    EXPECT_TRUE(spend_.Refresh().ok());
    for (int i = 0; i < 3; ++i) {
      chains_.VerifyNext(kNow);
    }
    const absl::StatusOr<v1::Overview> overview = overviews_.Get(kOperator, "", kNow);
    EXPECT_TRUE(overview.ok()) << overview.status();
    return overview.value_or(v1::Overview());
  }

  TemporaryStore store_{GetParam()};
  const BudgetTerms terms_ = *MakeBudgetTerms(4, kDelta);
  SpendLog spend_{store_.database()};
  ChainChecker chains_{store_.database()};
  Refusals refusals_;
  std::atomic<bool> stopping_ = false;
  Overviews overviews_{{store_.database(), spend_, chains_, refusals_, stopping_},
                       {"1.2.3", kNow, 3, [] { return kNow + absl::Hours(24 * 365); }}};
};

TEST_P(OverviewFaultsTest, WhoeverAsksAgainHasEveryEquivalentInTheEnd) {
  const v1::ListUsageResponse first = overviews_.ListUsage({}, 0, 10, kNow).value();
  EXPECT_FALSE(first.usage(0).equivalent_pending()) << "one is always computed";
  const v1::ListUsageResponse last = UsageInTheEnd();
  EXPECT_THAT(Names(last),
              ElementsAre("tenants/t/populations/a", "tenants/t/populations/b", "tenants/t/populations/c"));
  EXPECT_NEAR(last.usage(0).budget().equivalent_epsilon(), 3.8, 1e-6);
  EXPECT_NEAR(last.usage(2).budget().equivalent_epsilon(), 0.5, 1e-6);
  // Only the last one moves: it is the first that needs the accountant.
  ASSERT_TRUE(Write([&](Transaction& t) {
                return Debit(t, "tenants/t/populations/c", 5, "why", {"token", kNow}).status();
              }).ok());
  const v1::ListUsageResponse moved = overviews_.ListUsage({}, 0, 10, kNow).value();
  EXPECT_FALSE(moved.usage(2).equivalent_pending());
  EXPECT_EQ(moved.usage(2).accountant(), "renyi");
}

TEST_P(OverviewFaultsTest, ABudgetWithoutARecordStandsFirstAndTakesNothingElseAway) {
  testing::LoseBudget(store_, GetParam(), "tenants/t/populations/c");
  EXPECT_THAT(Broken(Verified()), ElementsAre("tenants/t/populations/c: the ledger cannot be read: the budget's "
                                              "record is gone from the store"));
  const v1::ListUsageResponse usage = UsageInTheEnd();
  EXPECT_THAT(Names(usage),
              ElementsAre("tenants/t/populations/c", "tenants/t/populations/a", "tenants/t/populations/b"));
  EXPECT_EQ(usage.total_size(), 3);
  EXPECT_EQ(usage.usage(0).fault(), "the budget's record is gone from the store");
  EXPECT_EQ(usage.usage(1).fault(), "");
  EXPECT_EQ(overviews_.Tail("", 10)->entries_size(), 6) << "of a and b";
}

TEST_P(OverviewFaultsTest, ABudgetWithImpossibleSumsTakesNothingElseAway) {
  // Without live events nothing can be reserved.
  Change("UPDATE populations SET reserved_units = 5, live_events = 0 WHERE name = 'tenants/t/populations/a'");
  EXPECT_THAT(Broken(Verified()), ElementsAre(HasSubstr("tenants/t/populations/a: the ledger is broken at entry")));
  const v1::ListUsageResponse usage = UsageInTheEnd();
  ASSERT_THAT(Names(usage),
              ElementsAre("tenants/t/populations/a", "tenants/t/populations/b", "tenants/t/populations/c"));
  EXPECT_EQ(usage.usage(0).fault(), "a budget's sums are impossible");
  EXPECT_NEAR(usage.usage(1).budget().equivalent_epsilon(), 3.7, 1e-6);
  EXPECT_EQ(overviews_.Tail("", 10)->entries_size(), 6) << "of b and c";
}

TEST_P(OverviewFaultsTest, AnEventThatCannotBeReadLeavesTheSumsAndTheOthers) {
  Change("UPDATE ledger_entries SET event = 'nonsense' WHERE population = 'tenants/t/populations/b' AND event <> ''");
  EXPECT_THAT(Broken(Verified()), ElementsAre(HasSubstr("tenants/t/populations/b: the ledger is broken at entry")));
  const v1::ListUsageResponse usage = UsageInTheEnd();
  ASSERT_EQ(usage.usage_size(), 3);
  EXPECT_THAT(usage.usage(1).fault(), HasSubstr("there is no equivalent epsilon"));
  EXPECT_FALSE(usage.usage(1).equivalent_pending());
  EXPECT_GT(usage.usage(1).budget().posted_units(), 0);
  EXPECT_EQ(usage.usage(2).fault(), "");
  EXPECT_FALSE(usage.usage(2).equivalent_pending());
  const v1::ListLedgerTailResponse tail = overviews_.Tail("", 3).value();
  ASSERT_EQ(tail.entries_size(), 3) << "of those that can be read";
  for (const v1::LedgerTailEntry& entry : tail.entries()) {
    EXPECT_NE(entry.budget(), "tenants/t/populations/b");
  }
}

TEST_P(OverviewFaultsTest, ABudgetWithoutUnitsIsListed) {
  Change("UPDATE populations SET cap_units = 0, posted_units = 0 WHERE name = 'tenants/t/populations/c'");
  EXPECT_EQ(overviews_.ListUsage({}, 0, 10, kNow)->total_size(), 3);
  EXPECT_EQ(overviews_.ListUsage({.tenant = "", .text = "", .above_percent = 80.5}, 0, 10, kNow)->total_size(), 2);
}

INSTANTIATE_TEST_SUITE_P(Engines, OverviewFaultsTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
