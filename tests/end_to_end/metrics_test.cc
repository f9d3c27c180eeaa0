// Metrics and health over HTTP, as a Prometheus, promtool and a prober see them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "server/http/testing/http_client.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(90);
constexpr absl::Duration kPoll = absl::Milliseconds(100);
constexpr char kPrometheus[] = "/usr/bin/prometheus";
constexpr char kPromtool[] = "/usr/bin/promtool";

HttpReply Get(const std::string& address, const std::string& path) {
  return SendHttp({.address = address, .path = path});
}

// As a part of a query.
std::string Encoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) absl::StrAppend(&encoded, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
  return encoded;
}

// Asks until the body holds `text`, and returns it.
std::string AwaitBody(const std::string& address, const std::string& path, const std::string& text) {
  const absl::Time deadline = absl::Now() + kPatience;
  std::string body;
  while (!absl::StrContains(body = Get(address, path).body, text) && absl::Now() < deadline) absl::SleepFor(kPoll);
  EXPECT_THAT(body, HasSubstr(text));
  return body;
}

// Without -: what the metric is of.
struct Described {
  std::string type;
  std::set<std::string> labels;

  bool operator==(const Described&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Described& described) {
  out << described.type;
  for (const std::string& label : described.labels) out << " " << label;
  return out;
}

// What the table of METRICS.md says: | `name` | type | `label`, `label` | meaning |
std::map<std::string, Described> DocumentedMetrics() {
  const char* source = std::getenv("DPAR_SOURCE_DIR");
  std::istringstream text(ReadFile(absl::StrCat(source != nullptr ? source : ".", "/deploy/METRICS.md")));
  std::map<std::string, Described> metrics;
  for (std::string line; std::getline(text, line);) {
    if (!absl::StartsWith(line, "| `dpar_")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    EXPECT_EQ(cells.size(), 6U) << line;
    if (cells.size() != 6) continue;
    const std::vector<std::string> name = absl::StrSplit(cells[1], '`');
    Described& described = metrics[name.at(1)];
    EXPECT_EQ(described.type, "") << "twice: " << line;
    described.type = std::string(absl::StripAsciiWhitespace(cells[2]));
    const std::vector<std::string> labels = absl::StrSplit(cells[3], '`');
    for (size_t i = 1; i < labels.size(); i += 2) described.labels.insert(labels[i]);
    EXPECT_FALSE(absl::StripAsciiWhitespace(cells[4]).empty()) << line;
  }
  return metrics;
}

// What an answer in the Prometheus format has: every family with its type and the labels of its samples.
std::map<std::string, Described> ServedMetrics(const std::string& body) {
  std::map<std::string, Described> metrics;
  std::string family;
  std::istringstream text(body);
  for (std::string line; std::getline(text, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (absl::StartsWith(line, "# TYPE ")) {
      family = words.at(2);
      metrics[family].type = words.at(3);
    }
    if (absl::StartsWith(line, "#")) continue;
    EXPECT_TRUE(absl::StartsWith(line, family)) << line;
    const size_t open = line.find('{');
    if (open == std::string::npos) continue;
    for (const absl::string_view pair : absl::StrSplit(line.substr(open + 1, line.rfind('}') - open - 1), "\",")) {
      const std::string label(pair.substr(0, pair.find('=')));
      if (label != "le") metrics[family].labels.insert(label);
    }
  }
  return metrics;
}

// A tenant with one job that succeeded on its dataset.
struct World {
  TenantAccess tenant;
  std::string dataset;
};
World RunOneJob(TestServer& server) {
  World world{server.NewTenant(), ""};
  const Client owner = server.Owner(world.tenant);
  world.dataset = UploadGraph(owner, world.tenant.name, MakeGraph(5));
  v1::CreateJobRequest request = JobRequest(world.dataset, 1);
  request.mutable_spec()->mutable_options()->set_steps(2);
  const auto created = CreateJob(owner, request);
  EXPECT_THAT(created.status, IsOk());
  EXPECT_EQ(WaitForJob(owner, created.value.name()).state(), v1::Job::SUCCEEDED);
  return world;
}

// One server that has run one job, and does nothing more.
class MetricsTest : public SharedServerTest {
 protected:
  static void SetUpTestSuite() {
    SharedServerTest::SetUpTestSuite();
    if (!HasFailure()) world_ = RunOneJob(server());
  }

  static World world_;
};

World MetricsTest::world_;

// A Prometheus that scrapes one address, with everything in a directory of its own.
class Prometheus {
 public:
  explicit Prometheus(const std::string& target) {
    WriteFile(directory_.File("prometheus.yml"),
              absl::StrCat("global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: dpar\n    static_configs:\n"
                           "      - targets: [\"",
                           target, "\"]\n"));
    const std::string log = directory_.File("log");
    process_ = std::make_unique<Process>(
        std::vector<std::string>{kPrometheus, "--config.file=" + directory_.File("prometheus.yml"),
                                 "--storage.tsdb.path=" + directory_.File("data"), "--storage.tsdb.retention.time=1h",
                                 "--web.listen-address=127.0.0.1:0"},
        Environment{}, log, log);
    const absl::Time deadline = absl::Now() + kPatience;
    while (address_.empty() && absl::Now() < deadline) {
      process_->Wait(kPoll);
      const std::string text = ReadFile(log);
      const std::string mark = "msg=\"Listening on\" address=";
      const size_t found = text.find(mark);
      const size_t end = found == std::string::npos ? found : text.find('\n', found);
      if (end != std::string::npos) address_ = text.substr(found + mark.size(), end - found - mark.size());
    }
    EXPECT_NE(address_, "") << ReadFile(log);
  }

  // The value of a query that gives one series; nothing when it gives none or several.
  [[nodiscard]] std::optional<std::string> Query(const std::string& query) const {
    const HttpReply reply = Get(address_, "/api/v1/query?query=" + Encoded(query));
    const nlohmann::json answer = nlohmann::json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
    if (reply.status != 200 || !answer.is_object()) return std::nullopt;
    const nlohmann::json& result = answer["data"]["result"];
    if (result.size() != 1) return std::nullopt;
    return result[0]["value"][1].get<std::string>();
  }

  // Asks until the query gives that number.
  void Expect(const std::string& query, double value) const {
    const absl::Time deadline = absl::Now() + kPatience;
    std::optional<std::string> last;
    double number = 0;
    do {
      last = Query(query);
      if (last.has_value() && absl::SimpleAtod(*last, &number) && number == value) return;
      absl::SleepFor(kPoll);
    } while (absl::Now() < deadline);
    ADD_FAILURE() << query << " gives " << last.value_or("nothing") << ", not " << value;
  }

  [[nodiscard]] std::string TargetsText() const { return Get(address_, "/api/v1/targets").body; }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<Process> process_;
  std::string address_;
};

TEST_F(MetricsTest, APrometheusScrapesWhatTheLedgerAndTheQueueSay) {
  if (!std::filesystem::exists(kPrometheus)) GTEST_SKIP() << "there is no " << kPrometheus;
  const v1::Budget budget = GetBudget(server().Owner(world_.tenant), world_.dataset);
  ASSERT_GT(budget.posted_units(), 0);
  const Prometheus prometheus(server().metrics_address());
  prometheus.Expect("up{job=\"dpar\"}", 1);
  prometheus.Expect("dpar_jobs_ended_total{state=\"succeeded\"}", 1);
  prometheus.Expect("dpar_jobs_ended_total{state=\"failed\"}", 0);
  prometheus.Expect("dpar_store_up", 1);
  prometheus.Expect("dpar_queue_jobs{state=\"queued\"}", 0);
  prometheus.Expect("dpar_ledger_commit_seconds_count{transaction=\"release\"}", 1);
  prometheus.Expect("dpar_rpc_requests_total{method=\"TrainingService/CreateJob\",code=\"OK\"}", 1);
  prometheus.Expect("dpar_job_stage_seconds_count{stage=\"training\"}", 1);
  const std::string population = world_.dataset.substr(world_.dataset.rfind('/') + 1);
  const std::string labels = absl::StrCat("{tenant=\"", world_.tenant.id, "\",population=\"", population, "\"}");
  prometheus.Expect("dpar_budget_cap_epsilon" + labels, budget.cap_epsilon());
  prometheus.Expect("dpar_budget_cap_units" + labels, static_cast<double>(budget.cap_units()));
  prometheus.Expect("dpar_budget_posted_units" + labels, static_cast<double>(budget.posted_units()));
  prometheus.Expect("dpar_budget_reserved_units" + labels, 0);
  prometheus.Expect("dpar_budget_equivalent_epsilon" + labels, budget.equivalent_epsilon());
  EXPECT_THAT(prometheus.TargetsText(), HasSubstr("\"lastError\":\"\""));
}

TEST_F(MetricsTest, TheTableOfMetricsIsWhatIsServed) {
  AwaitBody(server().metrics_address(), "/metrics", "dpar_budget_equivalent_epsilon{");
  const HttpReply reply = Get(server().metrics_address(), "/metrics");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  const std::map<std::string, Described> documented = DocumentedMetrics();
  const std::map<std::string, Described> served = ServedMetrics(reply.body);
  ASSERT_FALSE(documented.empty());
  for (const auto& [name, described] : served) {
    ASSERT_TRUE(documented.contains(name)) << name << " is served but not documented";
    EXPECT_EQ(documented.at(name), described) << name;
  }
  for (const auto& [name, described] : documented) {
    EXPECT_TRUE(served.contains(name)) << name << " is documented but not served";
  }
}

TEST_F(MetricsTest, PromtoolFindsNoFault) {
  if (!std::filesystem::exists(kPromtool)) GTEST_SKIP() << "there is no " << kPromtool;
  const std::string file = server().Scratch("metrics");
  WriteFile(file, AwaitBody(server().metrics_address(), "/metrics", "dpar_budget_equivalent_epsilon{"));
  const CommandResult result =
      RunCommand({"/bin/sh", "-c", absl::StrCat(kPromtool, " check metrics < '", file, "'")}, {});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.out + result.err, "");
}

TEST(QueueMetricsTest, RefusedCallersAndCancelledJobsAreCountedOnce) {
  // Without a worker a job waits until it is cancelled.
  TestServer server({"--no-worker"});
  ASSERT_TRUE(server.Start());
  EXPECT_FALSE(server.MakeClient("").Call(&v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest()).status.ok());
  const TenantAccess tenant = server.NewTenant();
  const Client owner = server.Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(6));
  const auto created = CreateJob(owner, JobRequest(dataset, 1));
  ASSERT_THAT(created.status, IsOk());
  std::string body = AwaitBody(server.metrics_address(), "/metrics", "dpar_queue_jobs{state=\"queued\"} 1\n");
  EXPECT_THAT(body, HasSubstr("dpar_auth_failures_total{reason=\"TOKEN_MISSING\"} 1\n"));
  EXPECT_THAT(body, HasSubstr("dpar_rpc_requests_total{code=\"UNAUTHENTICATED\",method=\"ServerService/WhoAmI\"} 1\n"));
  const v1::Budget budget = GetBudget(owner, dataset);
  ASSERT_GT(budget.reserved_units(), 0);
  AwaitBody(server.metrics_address(), "/metrics",
            absl::StrCat("dpar_budget_reserved_units{tenant=\"", tenant.id, "\",population=\"",
                         dataset.substr(dataset.rfind('/') + 1), "\"} ", budget.reserved_units(), "\n"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(CancelJob(owner, created.value.name()).value.state(), v1::Job::CANCELLED);
  }
  body = AwaitBody(server.metrics_address(), "/metrics", "dpar_queue_jobs{state=\"queued\"} 0\n");
  EXPECT_THAT(body, HasSubstr("dpar_jobs_ended_total{state=\"cancelled\"} 1\n"));
}

TEST(HealthTest, AServerIsAliveAndReadyAndOtherPathsAreNotThere) {
  TestServer server;
  ASSERT_TRUE(server.Start());
  EXPECT_EQ(Get(server.metrics_address(), "/livez").body, "ok\n");
  AwaitBody(server.metrics_address(), "/readyz", "ok\n");
  EXPECT_EQ(Get(server.metrics_address(), "/readyz").status, 200);
  EXPECT_EQ(Get(server.metrics_address(), "/").status, 404);
  const std::string file = server.data_directory() + "/metrics-address";
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(server.Terminate(), std::optional<int>(0));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(HealthTest, AServerThatOnlyRunsJobsHasThemToo) {
  const TemporaryDirectory directory;
  Process worker({BinaryPath("dpard"), "--data-dir", directory.File("data"), "--worker-only", "--metrics-listen",
                  "127.0.0.1:0", "--address-file", directory.File("worker")},
                 {}, directory.File("log"), directory.File("log"));
  const absl::Time deadline = absl::Now() + kPatience;
  std::string address;
  while (address.empty() && absl::Now() < deadline && !worker.Wait(kPoll).has_value()) {
    address = ReadFile(directory.File("worker.metrics"));
  }
  ASSERT_NE(address, "") << ReadFile(directory.File("log"));
  AwaitBody(address, "/readyz", "ok\n");
  EXPECT_THAT(Get(address, "/metrics").body, HasSubstr("dpar_jobs_ended_total{state=\"succeeded\"} 0\n"));
  worker.Signal(SIGTERM);
  EXPECT_EQ(worker.Wait(kPatience), std::optional<int>(0));
}

TEST(HealthTest, APortThatIsTakenStopsTheStart) {
  TestServer server;
  ASSERT_TRUE(server.Start());
  const TemporaryDirectory directory;
  const CommandResult second =
      RunCommand({BinaryPath("dpard"), "--data-dir", directory.File("data"), "--listen", "127.0.0.1:0", "--page-listen",
                  "", "--metrics-listen", server.metrics_address()},
                 {});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.err, HasSubstr(absl::StrCat("cannot listen for HTTP on ", server.metrics_address())));
  EXPECT_EQ(Get(server.metrics_address(), "/livez").status, 200);
}

}  // namespace
}  // namespace dpar::e2e
