// What comes from the store: gauges of budgets, queue and uploads, and readiness.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error.h"
#include "core/privacy/event.h"
#include "core/status_macros.h"
#include "prometheus/text_serializer.h"
#include "server/http/testing/http_client.h"
#include "server/ledger/ledger.h"
#include "server/observe/budget_metrics.h"
#include "server/observe/metrics.h"
#include "server/observe/monitor.h"
#include "server/observe/store_probe.h"
#include "server/queue/queue.h"
#include "server/store/datasets.h"
#include "server/store/testing/temporary_store.h"

namespace dpar {
namespace {

using testing::Engine;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryStore;

constexpr double kDelta = 1e-5;
const EntryContext kContext = {"worker", absl::FromUnixSeconds(1'800'000'000)};

// A store that can be made to fail.
class FlakyDatabase : public Database {
 public:
  explicit FlakyDatabase(Database& real) : real_(real) {}
  absl::Status Write(const Body& body) override { return real_.Write(body); }
  absl::Status Read(const Body& body) override {
    return fails ? MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, "gone") : real_.Read(body);
  }
  absl::StatusOr<std::unique_ptr<NameHold>> Hold(const std::string& name, absl::Duration patience) override {
    return real_.Hold(name, patience);
  }
  void Listen(Listener listener) override { real_.Listen(std::move(listener)); }
  [[nodiscard]] bool shared() const override { return real_.shared(); }

  std::atomic<bool> fails = false;

 private:
  Database& real_;
};

class StoreMetricsTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    for (const char* tenant : {"acme", "other"}) {
      ASSERT_TRUE(
          Write([&](Transaction& t) { return InsertTenant(t, tenant, std::string(32, 'k'), absl::Now()); }).ok());
    }
  }

  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }

  // A private dataset with a population of its own, unless one is named to share.
  void AddDataset(const std::string& tenant, const std::string& id, const std::string& shared = "") {
    const std::string population = shared.empty() ? absl::StrCat("tenants/", tenant, "/populations/", id) : shared;
    v1::Dataset stored;
    stored.set_name(absl::StrCat("tenants/", tenant, "/datasets/", id));
    stored.set_node_count(10);
    stored.set_feature_count(3);
    stored.set_class_count(2);
    stored.set_content_digest("digest");
    stored.set_population(population);
    ASSERT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  if (shared.empty()) {
                    DPAR_RETURN_IF_ERROR(OpenBudget(t, population, terms_, kContext));
                  }
                  return InsertDataset(t, stored, 100);
                }).ok());
  }
  void ReserveFor(const std::string& budget, const std::string& job, double noise) {
    const Price price = *MakePrice(*MakeGaussianEvent(1, noise, 1), 1, kDelta, terms_);
    ASSERT_TRUE(Write([&](Transaction& t) { return Reserve(t, budget, job, price, kContext).status(); }).ok());
  }
  void PostFor(const std::string& budget, const std::string& job) {
    ASSERT_TRUE(Write([&](Transaction& t) { return Post(t, budget, job, 1, kContext).status(); }).ok());
  }
  v1::Budget BudgetOf(const std::string& id) {
    v1::Budget budget;
    EXPECT_TRUE(Write([&](Transaction& t) -> absl::Status {
                  DPAR_ASSIGN_OR_RETURN(budget, GetBudget(t, id));
                  return absl::OkStatus();
                }).ok());
    return budget;
  }
  static std::string Text(const std::vector<prometheus::MetricFamily>& families) {
    return prometheus::TextSerializer().Serialize(families);
  }
  // A gauge's line.
  static std::string Line(const std::string& name, const std::string& labels, double value) {
    prometheus::MetricFamily family{name, "", prometheus::MetricType::Gauge, {}};
    family.metric.emplace_back().gauge.value = value;
    const std::string text = Text({family});
    const size_t space = text.rfind(' ');
    return absl::StrCat(name, labels, text.substr(space));
  }

  TemporaryStore store_{GetParam()};
  const BudgetTerms terms_ = *MakeBudgetTerms(4, kDelta);
};

TEST_P(StoreMetricsTest, ABudgetsGaugesAreWhatTheLedgerSays) {
  AddDataset("acme", "people");
  ReserveFor("tenants/acme/populations/people", "tenants/acme/jobs/1", 20);
  ReserveFor("tenants/acme/populations/people", "tenants/acme/jobs/2", 30);
  PostFor("tenants/acme/populations/people", "tenants/acme/jobs/1");
  BudgetMetrics metrics(store_.database());
  ASSERT_TRUE(metrics.RefreshAccounts().ok());
  EXPECT_THAT(Text(metrics.Collect()), Not(HasSubstr("dpar_budget_equivalent_epsilon{"))) << "not computed yet";
  EXPECT_EQ(metrics.RefreshOneEpsilon().value(), true);
  EXPECT_EQ(metrics.RefreshOneEpsilon().value(), false) << "nothing moved since";
  const v1::Budget budget = BudgetOf("tenants/acme/populations/people");
  ASSERT_GT(budget.posted_units(), 0);
  ASSERT_GT(budget.reserved_units(), 0);
  ASSERT_GT(budget.equivalent_epsilon(), 0);
  const std::string labels = "{tenant=\"acme\",population=\"people\"}";
  const std::string text = Text(metrics.Collect());
  EXPECT_THAT(text, HasSubstr(Line("dpar_budget_cap_epsilon", labels, 4)));
  EXPECT_THAT(text, HasSubstr(Line("dpar_budget_cap_units", labels, static_cast<double>(budget.cap_units()))));
  EXPECT_THAT(text, HasSubstr(Line("dpar_budget_posted_units", labels, static_cast<double>(budget.posted_units()))));
  EXPECT_THAT(text,
              HasSubstr(Line("dpar_budget_reserved_units", labels, static_cast<double>(budget.reserved_units()))));
  EXPECT_THAT(text, HasSubstr(Line("dpar_budget_equivalent_epsilon", labels, budget.equivalent_epsilon())));
  EXPECT_THAT(text, HasSubstr("dpar_budgets_omitted 0\n"));
}

TEST_P(StoreMetricsTest, AnEpsilonIsComputedAgainWhenItsLedgerMoved) {
  AddDataset("acme", "people");
  BudgetMetrics metrics(store_.database());
  ASSERT_TRUE(metrics.RefreshAccounts().ok());
  EXPECT_EQ(metrics.RefreshOneEpsilon().value(), true);
  const std::string labels = "{tenant=\"acme\",population=\"people\"}";
  EXPECT_THAT(Text(metrics.Collect()), HasSubstr(Line("dpar_budget_equivalent_epsilon", labels, 0)));
  ReserveFor("tenants/acme/populations/people", "tenants/acme/jobs/1", 20);
  PostFor("tenants/acme/populations/people", "tenants/acme/jobs/1");
  EXPECT_EQ(metrics.RefreshOneEpsilon().value(), false) << "not read yet";
  ASSERT_TRUE(metrics.RefreshAccounts().ok());
  EXPECT_EQ(metrics.RefreshOneEpsilon().value(), true);
  EXPECT_THAT(Text(metrics.Collect()),
              HasSubstr(Line("dpar_budget_equivalent_epsilon", labels,
                             BudgetOf("tenants/acme/populations/people").equivalent_epsilon())));
}

TEST_P(StoreMetricsTest, OnlyTheFullestAreShownAndTheRestIsCounted) {
  for (const char* id : {"a", "b", "c"}) {
    AddDataset("acme", id);
  }
  AddDataset("acme", "b-again", "tenants/acme/populations/b");
  ReserveFor("tenants/acme/populations/b", "tenants/acme/jobs/1", 20);
  ReserveFor("tenants/acme/populations/c", "tenants/acme/jobs/2", 40);
  BudgetMetrics metrics(store_.database(), 2);
  ASSERT_TRUE(metrics.RefreshAccounts().ok());
  EXPECT_EQ(metrics.RefreshOneEpsilon().value(), true);
  EXPECT_EQ(metrics.RefreshOneEpsilon().value(), true);
  EXPECT_EQ(metrics.RefreshOneEpsilon().value(), false) << "one is not shown";
  const std::string text = Text(metrics.Collect());
  for (const char* labels : {"{tenant=\"acme\",population=\"b\"}", "{tenant=\"acme\",population=\"c\"}"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("dpar_budget_posted_units", labels, " 0\n")));
    EXPECT_THAT(text, HasSubstr(absl::StrCat("dpar_budget_equivalent_epsilon", labels, " 0\n")));
  }
  EXPECT_THAT(text, Not(HasSubstr("population=\"a\"")));
  EXPECT_THAT(text, HasSubstr("dpar_budgets_omitted 1\n"));
}

TEST_P(StoreMetricsTest, WhileTheStoreFailsNoBudgetIsShown) {
  AddDataset("acme", "people");
  FlakyDatabase flaky(store_.database());
  BudgetMetrics metrics(flaky);
  ASSERT_TRUE(metrics.RefreshAccounts().ok());
  flaky.fails = true;
  EXPECT_EQ(metrics.RefreshOneEpsilon().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(metrics.RefreshAccounts().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(metrics.Collect()), Not(HasSubstr("people")));
  flaky.fails = false;
  ASSERT_TRUE(metrics.RefreshAccounts().ok());
  EXPECT_THAT(Text(metrics.Collect()), HasSubstr("people"));
}

TEST_P(StoreMetricsTest, TheProbeShowsWhatWaitsAndForHowLong) {
  const absl::Time now = absl::Now();
  StoreProbe probe(store_.database());
  EXPECT_FALSE(probe.Answers(now));
  EXPECT_EQ(Text(probe.Collect(now)),
            "# HELP dpar_store_up 1 while the store answers, 0 while it does not.\n# TYPE dpar_store_up gauge\n"
            "dpar_store_up 0\n");
  probe.Refresh();
  EXPECT_TRUE(probe.Answers(now));
  EXPECT_THAT(Text(probe.Collect(now)), HasSubstr("dpar_queue_oldest_seconds 0\n"));

  AddDataset("acme", "people");
  const auto submit = [&](const std::string& id, absl::Duration age) {
    StoredJob job;
    job.job.set_name("tenants/acme/jobs/" + id);
    job.job.mutable_spec()->set_dataset("tenants/acme/datasets/people");
    job.job.mutable_plan()->set_steps(1);
    job.job.mutable_create_time()->set_seconds(absl::ToUnixSeconds(now - age));
    return Write([&](Transaction& t) { return Enqueue(t, job); });
  };
  ASSERT_TRUE(submit("old", absl::Seconds(500)).ok());
  ASSERT_TRUE(submit("older", absl::Seconds(900)).ok());
  ASSERT_TRUE(submit("oldest", absl::Seconds(1'000)).ok());
  ASSERT_TRUE(Write([&](Transaction& t) { return Lease(t, {"w", now, absl::Minutes(1), 9, 1, 1}).status(); }).ok());
  StoredUpload upload;
  upload.name = "tenants/acme/uploads/u";
  upload.declared.set_parent("tenants/acme");
  upload.create_time = now;
  ASSERT_TRUE(Write([&](Transaction& t) { return InsertUpload(t, upload, 5); }).ok());
  probe.Refresh();
  const std::string text = Text(probe.Collect(absl::FromUnixSeconds(absl::ToUnixSeconds(now))));
  EXPECT_THAT(text, HasSubstr("dpar_store_up 1\n"));
  EXPECT_THAT(text, HasSubstr("dpar_queue_jobs{state=\"queued\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("dpar_queue_jobs{state=\"running\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dpar_queue_oldest_seconds 900\n"));
  EXPECT_THAT(text, HasSubstr("dpar_uploads_open 1\n"));
}

TEST_P(StoreMetricsTest, AProbeThatFailedOrIsLongPastDoesNotCount) {
  FlakyDatabase flaky(store_.database());
  StoreProbe probe(flaky);
  probe.Refresh();
  EXPECT_TRUE(probe.Answers(absl::Now()));
  EXPECT_FALSE(probe.Answers(absl::Now() + absl::Minutes(1))) << "a store that hangs";
  EXPECT_THAT(Text(probe.Collect(absl::Now() + absl::Minutes(1))), HasSubstr("dpar_store_up 0\n"));
  flaky.fails = true;
  probe.Refresh();
  EXPECT_FALSE(probe.Answers(absl::Now()));
  EXPECT_THAT(Text(probe.Collect(absl::Now())), Not(HasSubstr("dpar_queue_jobs")));
}

TEST_P(StoreMetricsTest, AServerIsReadyWhileItServesAndItsStoreAnswers) {
  FlakyDatabase flaky(store_.database());
  flaky.fails = true;
  const Metrics metrics;
  std::atomic<bool> marks_written = true;
  Monitor monitor(
      flaky, metrics,
      {{"witness", "1 while what is spent can be marked.", [&marks_written] { return marks_written.load(); }}});
  const int port = monitor.Start("127.0.0.1", 0).value();
  const auto get = [&](const std::string& path, const std::string& method = "GET") {
    return SendHttp({.address = absl::StrCat("127.0.0.1:", port), .path = path, .method = method});
  };
  EXPECT_EQ(SendHttp({.address = absl::StrCat("127.0.0.1:", port), .path = "/metrics", .host = "evil.example"}).status,
            421);
  const auto await = [&](const std::string& word, int status) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    HttpReply answer;
    do {
      answer = get("/readyz");
      absl::SleepFor(absl::Milliseconds(20));
    } while (answer.body != word && absl::Now() < deadline);
    EXPECT_EQ(answer.body, word);
    EXPECT_EQ(answer.status, status);
  };
  await("starting\n", 503);
  monitor.Serve();
  await("store\n", 503);
  flaky.fails = false;
  await("ok\n", 200);
  marks_written = false;
  await("witness\n", 503);
  EXPECT_THAT(get("/metrics").body, HasSubstr("dpar_witness_up 0\n"));
  marks_written = true;
  await("ok\n", 200);
  flaky.fails = true;
  await("store\n", 503);
  monitor.Drain();
  await("draining\n", 503);
  EXPECT_EQ(get("/livez").body, "ok\n");
  EXPECT_EQ(get("/livez?x=1").body, "ok\n") << "a query changes no path";
  for (const char* path : {"/", "/livez/", "/livez/../livez", "/.*"}) {
    EXPECT_EQ(get(path).status, 404) << path;
  }
  for (const char* method : {"HEAD", "OPTIONS", "DELETE"}) {
    EXPECT_EQ(get("/livez", method).status, 405) << method;
    EXPECT_EQ(get("/livez", method).header("Allow"), "GET") << method;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, StoreMetricsTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
