#include "server/page/overviews.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/privacy/event.h"
#include "core/privacy/gaussian.h"
#include "core/random/secure_random.h"
#include "core/status_macros.h"
#include "server/auth/token.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/testing/temporary_store.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using testing::Engine;
using ::testing::HasSubstr;
using testing::TemporaryStore;

constexpr double kDelta = 1e-5;
const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

Identity Operator() { return {"", v1::OPERATOR, "operator/tokens/o"}; }
Identity Of(const std::string& tenant, v1::Role role) { return {tenant, role, tenant + "/tokens/own"}; }

class OverviewsTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    for (const char* tenant : {"acme", "other"}) {
      ASSERT_TRUE(Write([&](Transaction& t) { return InsertTenant(t, tenant, "key", kNow); }).ok());
    }
    AddDataset("acme", "a");
    AddDataset("acme", "b");
    AddDataset("other", "c");
  }
  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }
  void AddDataset(const std::string& tenant, const std::string& id) {
    v1::Dataset stored;
    stored.set_name(absl::StrCat("tenants/", tenant, "/datasets/", id));
    stored.set_content_digest("digest");
    stored.set_population(absl::StrCat("tenants/", tenant, "/populations/", id));
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_RETURN_IF_ERROR(OpenBudget(t, stored.population(), terms_, {"server", kNow - absl::Hours(240)}));
                  return InsertDataset(t, stored, 100);
                }).ok());
  }
  // A job that reserved `epsilon` on a dataset, and posted it if so.
  void Spend(const std::string& tenant, const std::string& id, const std::string& job, double epsilon, absl::Time time,
             bool posts = true) {
    const Price price = *MakePrice(*MakeGaussianEvent(1, 1 / *GaussianMu(epsilon, kDelta), 1), epsilon, kDelta, terms_);
    const std::string name = absl::StrCat("tenants/", tenant, "/jobs/", job);
    const std::string population = absl::StrCat("tenants/", tenant, "/populations/", id);
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_RETURN_IF_ERROR(Reserve(t, population, name, price, {"token", time}).status());
                  return posts ? Post(t, population, name, 1, {"worker", time}).status() : absl::OkStatus();
                }).ok());
  }
  void AddJob(const std::string& tenant, const std::string& job, absl::Time created) {
    StoredJob stored;
    stored.job.set_name(absl::StrCat("tenants/", tenant, "/jobs/", job));
    stored.job.mutable_spec()->set_dataset(
        absl::StrCat("tenants/", tenant, "/datasets/", tenant == "acme" ? "a" : "c"));
    // A message that is not empty, as every plan is.
    stored.job.mutable_plan()->set_learning_rate(1.0 / 3.0);
    *stored.job.mutable_create_time() = ToTimestamp(absl::ToUnixMicros(created));
    ASSERT_TRUE(Write([&](Transaction& t) { return Enqueue(t, stored); }).ok());
  }
  void LeaseNext(absl::Time now) {
    ASSERT_TRUE(Write([&](Transaction& t) {
                  return Lease(t, {"server", now, absl::Seconds(30), 100, 1000, 1000}).status();
                }).ok());
  }
  void EndJob(const std::string& name, v1::Job::State state) {
    ASSERT_TRUE(Write([&](Transaction& t) {
                  return End(t, name, state, state == v1::Job::FAILED ? "it broke" : "", kNow);
                }).ok());
  }
  v1::Overview Get(const Identity& caller, const std::string& tenant, absl::Time now = kNow) {
    EXPECT_TRUE(spend_.Refresh().ok());
    return overviews_.Get(caller, tenant, now).value();
  }
  static std::vector<std::string> Resources(const v1::Overview& overview, v1::Attention::Kind kind) {
    std::vector<std::string> resources;
    for (const v1::Attention& attention : overview.attention()) {
      for (const v1::AttentionItem& item : attention.items()) {
        if (attention.kind() == kind) resources.push_back(item.resource());
      }
    }
    return resources;
  }
  v1::ListUsageResponse Usage(const UsageFilter& filter, int64_t skip = 0, int64_t size = 10) {
    EXPECT_TRUE(spend_.Refresh().ok());
    // A slow machine may need several calls for all that the accountant is asked; each answers one more at least.
    v1::ListUsageResponse response = overviews_.ListUsage(filter, skip, size, kNow).value();
    for (int i = 0; i < 10; ++i) {
      response = overviews_.ListUsage(filter, skip, size, kNow).value();
    }
    return response;
  }
  static std::vector<std::string> Names(const v1::ListUsageResponse& response) {
    std::vector<std::string> names;
    for (const v1::PopulationUsage& usage : response.usage()) names.push_back(usage.budget().name());
    return names;
  }

  TemporaryStore store_{GetParam()};
  const BudgetTerms terms_ = *MakeBudgetTerms(4, kDelta);
  SpendLog spend_{store_.database()};
  ChainChecker chains_{store_.database()};
  Refusals refusals_;
  std::atomic<bool> stopping_ = false;
  Overviews overviews_{{store_.database(), spend_, chains_, refusals_, stopping_},
                       {"1.2.3", kNow - absl::Hours(1), 3, [] { return kNow + absl::Hours(24 * 13); }}};
};

TEST_P(OverviewsTest, HealthIsOfTheTenantThatIsAskedFor) {
  Spend("acme", "a", "j", 0.5, kNow - absl::Minutes(1));
  AddJob("acme", "one", kNow - absl::Seconds(50));
  AddJob("acme", "two", kNow - absl::Seconds(40));
  AddJob("other", "three", kNow - absl::Seconds(60));
  chains_.VerifyNext(kNow);
  const v1::Health all = Get(Operator(), "").health();
  EXPECT_TRUE(all.serving());
  EXPECT_TRUE(all.ledgers_read());
  EXPECT_EQ(all.version(), "1.2.3");
  EXPECT_EQ(all.concurrent_jobs(), 3);
  EXPECT_EQ(all.queued_jobs(), 3);
  EXPECT_EQ(ToMicroseconds(all.oldest_queued_time()), absl::ToUnixMicros(kNow - absl::Seconds(60)));
  EXPECT_EQ(all.ledger_entry_count(), 5);
  EXPECT_EQ(all.budget_count(), 3);
  EXPECT_EQ(all.verified_budget_count(), 1);
  EXPECT_EQ(ToMicroseconds(all.chain_verify_time()), absl::ToUnixMicros(kNow));
  const v1::Health own = Get(Of("tenants/other", v1::OWNER), "tenants/other").health();
  EXPECT_FALSE(own.has_concurrent_jobs());
  EXPECT_FALSE(own.has_start_time());
  EXPECT_EQ(own.queued_jobs(), 1);
  EXPECT_EQ(own.ledger_entry_count(), 1);
  EXPECT_EQ(own.budget_count(), 1);
  stopping_ = true;
  EXPECT_FALSE(Get(Operator(), "").health().serving());
}

TEST_P(OverviewsTest, WhatNeedsAttentionIsToldToThoseWhomItConcerns) {
  Spend("acme", "a", "j", 3.8, kNow - absl::Minutes(1));
  AddJob("acme", "failed", kNow - absl::Minutes(5));
  LeaseNext(kNow - absl::Minutes(4));
  EndJob("tenants/acme/jobs/failed", v1::Job::FAILED);
  AddJob("acme", "lost", kNow - absl::Minutes(3));
  LeaseNext(kNow - absl::Minutes(2));
  refusals_.Note("tenants/acme", {"tenants/acme/datasets/a", kNow, "too much"});
  ASSERT_TRUE(Write([&](Transaction& t) {
                return SetCap(t, "tenants/acme/populations/b", 6, "agreed", {"token", kNow - absl::Hours(1)});
              }).ok());
  const v1::Overview all = Get(Operator(), "");
  EXPECT_THAT(Resources(all, v1::Attention::BUDGET_NEARLY_SPENT), ElementsAre("tenants/acme/populations/a"));
  EXPECT_THAT(Resources(all, v1::Attention::JOB_FAILED), ElementsAre("tenants/acme/jobs/failed"));
  EXPECT_THAT(Resources(all, v1::Attention::LEASE_EXPIRED), ElementsAre("tenants/acme/jobs/lost"));
  EXPECT_THAT(Resources(all, v1::Attention::JOB_REFUSED), ElementsAre("tenants/acme/datasets/a"));
  EXPECT_THAT(Resources(all, v1::Attention::LEDGER_ADJUSTED), ElementsAre("tenants/acme/populations/b"));
  EXPECT_THAT(Resources(all, v1::Attention::KEY_EXPIRES), ElementsAre("server certificate"));
  EXPECT_EQ(Get(Of("tenants/acme", v1::READER), "tenants/acme").attention_size(), 5);
  EXPECT_EQ(Get(Of("tenants/other", v1::OWNER), "tenants/other").attention_size(), 0);
  // A week later, what failed and was refused is old; the lease is still lost.
  const v1::Overview later = Get(Operator(), "", kNow + absl::Hours(24 * 8));
  EXPECT_TRUE(Resources(later, v1::Attention::JOB_FAILED).empty());
  EXPECT_TRUE(Resources(later, v1::Attention::JOB_REFUSED).empty());
  EXPECT_THAT(Resources(later, v1::Attention::LEASE_EXPIRED), ElementsAre("tenants/acme/jobs/lost"));
}

TEST_P(OverviewsTest, TokensAreToldToThoseWhoCouldListThem) {
  SecureRandom random;
  const auto add = [&](const std::string& id, const std::string& parent, absl::Duration life, bool revoked = false) {
    v1::Token wanted;
    wanted.set_role(parent == "operator" ? v1::OPERATOR : v1::READER);
    *wanted.mutable_expire_time() = ToTimestamp(absl::ToUnixMicros(kNow + life));
    const std::string tenant = parent == "operator" ? std::string(kOperatorParent) : parent;
    const StoredToken stored = SealToken({id, std::string(64, 'a')}, tenant, wanted, kNow, random);
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_RETURN_IF_ERROR(InsertToken(t, stored));
                  return revoked ? RevokeToken(t, id, kNow) : absl::OkStatus();
                }).ok());
  };
  add("soon", "tenants/acme", absl::Hours(24));
  add("late", "tenants/acme", absl::Hours(24 * 15));
  add("gone", "tenants/acme", -absl::Hours(1));
  add("revoked", "tenants/acme", absl::Hours(24), true);
  add("op", "operator", absl::Hours(48));
  const auto keys = [&](const Identity& caller, const std::string& tenant) {
    return Resources(Get(caller, tenant), v1::Attention::KEY_EXPIRES);
  };
  EXPECT_THAT(keys(Operator(), ""),
              ElementsAre("server certificate", "tenants/acme/tokens/soon", "operator/tokens/op"));
  EXPECT_THAT(keys(Of("tenants/acme", v1::OWNER), "tenants/acme"), ElementsAre("tenants/acme/tokens/soon"));
  EXPECT_THAT(keys(Of("tenants/acme", v1::READER), "tenants/acme"), ElementsAre());
  EXPECT_THAT(keys(Of("tenants/other", v1::OWNER), "tenants/other"), ElementsAre());
  Identity scoped = Operator();
  scoped.scopes = {v1::READ};
  EXPECT_THAT(keys(scoped, ""), ElementsAre("server certificate"));
  Identity own = Of("tenants/acme", v1::READER);
  own.expire_time = ToTimestamp(absl::ToUnixMicros(kNow + absl::Hours(1)));
  EXPECT_THAT(keys(own, "tenants/acme"), ElementsAre("tenants/acme/tokens/own"));
}

TEST_P(OverviewsTest, UsageIsTheLedgersOwnLeastLeftFirst) {
  Spend("acme", "b", "j1", 2, kNow - absl::Hours(30));
  Spend("other", "c", "j2", 1, kNow - absl::Hours(2));
  Spend("other", "c", "j3", 0.5, kNow - absl::Hours(1), false);
  AddJob("other", "j3", kNow);
  v1::ListUsageResponse all = Usage({});
  // On a slow machine the accountant answers for one budget in each call.
  for (int i = 0; i < all.usage_size(); ++i) {
    all = Usage({});
  }
  EXPECT_THAT(Names(all),
              ElementsAre("tenants/acme/populations/b", "tenants/other/populations/c", "tenants/acme/populations/a"));
  EXPECT_EQ(all.total_size(), 3);
  for (const v1::PopulationUsage& usage : all.usage()) {
    v1::Budget budget;
    const std::string& id = usage.budget().name();
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(budget, GetBudget(t, id));
                  return absl::OkStatus();
                }).ok());
    EXPECT_EQ(usage.budget().SerializeAsString(), budget.SerializeAsString());
    EXPECT_EQ(usage.accountant(), "composition");
    EXPECT_FALSE(usage.equivalent_pending());
  }
  EXPECT_EQ(all.usage(0).daily_posted_units(28), all.usage(0).budget().posted_units()) << "yesterday";
  EXPECT_EQ(all.usage(0).last_job().name(), "tenants/acme/jobs/j1");
  EXPECT_EQ(all.usage(1).last_job().name(), "tenants/other/jobs/j3");
  EXPECT_EQ(all.usage(1).last_job().state(), v1::Job::QUEUED);
  EXPECT_TRUE(all.usage(1).has_exhaustion_time());
  EXPECT_FALSE(all.usage(2).has_last_job());
  EXPECT_FALSE(all.usage(2).has_exhaustion_time());
  ASSERT_TRUE(Write([&](Transaction& t) {
                return Debit(t, "tenants/acme/populations/a", 5, "why", {"token", kNow}).status();
              }).ok());
  EXPECT_EQ(Usage({}).usage(2).accountant(), "renyi") << "a debit has no event, and one ledger moved";
}

TEST_P(OverviewsTest, UsageIsFilteredAndPaged) {
  EXPECT_THAT(Names(Usage({.tenant = "tenants/other", .text = ""})), ElementsAre("tenants/other/populations/c"));
  EXPECT_THAT(Names(Usage({.tenant = "", .text = "acme/b"})), ElementsAre("tenants/acme/populations/b"));
  EXPECT_THAT(Names(Usage({.tenant = "", .text = "datasets"})), ElementsAre()) << "that word is in no name";
  EXPECT_THAT(Names(Usage({.tenant = "tenants/other", .text = "acme"})), ElementsAre());
  const v1::ListUsageResponse first = Usage({}, 0, 2);
  EXPECT_THAT(Names(first), ElementsAre("tenants/acme/populations/a", "tenants/acme/populations/b"));
  EXPECT_EQ(first.next_page_token(), "2");
  const v1::ListUsageResponse last = Usage({}, 2, 2);
  EXPECT_THAT(Names(last), ElementsAre("tenants/other/populations/c"));
  EXPECT_EQ(last.next_page_token(), "");
  EXPECT_EQ(last.total_size(), 3);
  EXPECT_EQ(Usage({}, 1000, 2).usage_size(), 0);
}

TEST_P(OverviewsTest, TheTailIsTheNewestOfAllOrAllOfOne) {
  for (int i = 0; i < 5; ++i) {
    Spend("acme", "a", absl::StrCat("a", i), 0.1, kNow - absl::Minutes(10 * (5 - i)));
    Spend("other", "c", absl::StrCat("c", i), 0.1, kNow - absl::Minutes(10 * (5 - i) - 5));
  }
  ASSERT_TRUE(spend_.Refresh().ok());
  const v1::ListLedgerTailResponse all = overviews_.Tail("", 6).value();
  std::vector<std::string> shown;
  for (const v1::LedgerTailEntry& tail : all.entries()) {
    shown.push_back(absl::StrCat(tail.budget().substr(8, 5), " ", tail.entry().sequence()));
    EXPECT_FALSE(tail.has_certificate());
  }
  EXPECT_THAT(shown, ElementsAre("other 11", "other 10", "acme/ 11", "acme/ 10", "other 9", "other 8"));
  const v1::ListLedgerTailResponse own = overviews_.Tail("tenants/acme", 100).value();
  EXPECT_EQ(own.entries_size(), 12) << "with the OPEN entries of both";
  for (const v1::LedgerTailEntry& tail : own.entries()) {
    EXPECT_THAT(tail.budget(), HasSubstr("tenants/acme/"));
  }
  const v1::ListLedgerTailResponse one = overviews_.TailOf("tenants/acme/populations/a", 9, 6).value();
  ASSERT_EQ(one.entries_size(), 6);
  EXPECT_EQ(one.entries(0).entry().sequence(), 8);
  EXPECT_EQ(one.next_page_token(), "3");
  EXPECT_EQ(overviews_.TailOf("tenants/acme/populations/a", 3, 6).value().next_page_token(), "");
  EXPECT_TRUE(absl::IsNotFound(overviews_.TailOf("tenants/acme/populations/none", 3, 6).status()));
}

TEST_P(OverviewsTest, HistoryIsOfTheFullestOrOfOne) {
  Spend("other", "c", "j", 1, kNow);
  ASSERT_TRUE(spend_.Refresh().ok());
  const v1::SpendHistory all = overviews_.History("").value();
  ASSERT_EQ(all.budgets_size(), 3);
  EXPECT_EQ(all.budgets(0).budget(), "tenants/other/populations/c");
  EXPECT_EQ(all.budgets(0).points_size(), 3);
  EXPECT_EQ(overviews_.History("tenants/acme").value().budgets_size(), 2);
  EXPECT_EQ(overviews_.HistoryOf("tenants/acme/populations/a").value().budgets(0).points_size(), 1);
  EXPECT_TRUE(absl::IsNotFound(overviews_.HistoryOf("tenants/acme/populations/none").status()));
}

TEST_P(OverviewsTest, RecentJobsAreLiveOnesAndThenTheNewest) {
  for (int i = 0; i < 4; ++i) {
    AddJob(i % 2 == 0 ? "acme" : "other", absl::StrCat("old", i), kNow + absl::Seconds(i));
    EndJob(absl::StrCat("tenants/", i % 2 == 0 ? "acme" : "other", "/jobs/old", i), v1::Job::CANCELLED);
  }
  AddJob("acme", "first", kNow + absl::Seconds(10));
  LeaseNext(kNow + absl::Seconds(11));
  AddJob("other", "second", kNow + absl::Seconds(12));
  const auto recent = [&](const std::string& tenant, int64_t limit) {
    std::vector<std::string> names;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  const absl::StatusOr<std::vector<v1::Job>> listed = ListRecentJobs(t, tenant, limit);
                  EXPECT_TRUE(listed.ok()) << listed.status();
                  DPAR_ASSIGN_OR_RETURN(const std::vector<v1::Job> jobs, listed);
                  for (const v1::Job& job : jobs) names.push_back(job.name().substr(8));
                  return absl::OkStatus();
                }).ok());
    return names;
  };
  EXPECT_THAT(recent("", 10), ElementsAre("acme/jobs/first", "other/jobs/second", "other/jobs/old3", "acme/jobs/old2",
                                          "other/jobs/old1", "acme/jobs/old0"));
  EXPECT_THAT(recent("", 3), ElementsAre("acme/jobs/first", "other/jobs/second", "other/jobs/old3"));
  EXPECT_THAT(recent("tenants/acme", 10), ElementsAre("acme/jobs/first", "acme/jobs/old2", "acme/jobs/old0"));
  EXPECT_THAT(recent("tenants/nobody", 10), ElementsAre());
}

INSTANTIATE_TEST_SUITE_P(Engines, OverviewsTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
