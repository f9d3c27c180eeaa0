// A budget belongs to people: versions of one graph, races over them, and populations that are merged.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/privacy/budget.h"
#include "nlohmann/json.hpp"
#include "server/store/testing/private_postgres.h"
#include "tests/end_to_end/terminal_command.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kClients = 64;
constexpr int kVersions = 8;
constexpr int kAdmitted = 10;
constexpr int kRuns = 20;
constexpr double kJobEpsilon = 0.5;

// Version `number` of the graph of some people: each of them has other features and edges.
std::string UploadVersion(const Client& client, const std::string& tenant, uint64_t number,
                          const std::string& population) {
  const Graph graph = MakeGraph(number);
  const std::string bytes = GraphBytes(graph);
  v1::OpenUploadRequest request = OpenRequest(tenant, bytes, graph.sizes);
  request.set_population(population);
  const auto answer = UploadFile(client, request, bytes);
  EXPECT_THAT(answer.status, IsOk());
  return answer.value.dataset().name();
}

// The price of a job on a dataset, asked for without running it.
int64_t UnitsOf(const Client& client, const std::string& dataset) {
  v1::CreateJobRequest request = JobRequest(dataset, kJobEpsilon);
  request.set_validate_only(true);
  const auto planned = CreateJob(client, request);
  EXPECT_THAT(planned.status, IsOk());
  return planned.value.plan().price_units();
}

// Sets the cap of a dataset's population so that `units` fit and next to nothing more.
void SetRoom(const Client& operating, const Client& client, const std::string& dataset, int64_t units) {
  const v1::Budget budget = GetBudget(client, dataset);
  const BudgetTerms terms = {budget.cap_epsilon(), budget.cap_delta(), budget.order(), budget.cap_units()};
  const auto cap_epsilon = EpsilonOfUnits(terms, units + units / 10'000);
  ASSERT_TRUE(cap_epsilon.ok()) << cap_epsilon.status();
  v1::SetBudgetCapRequest cap;
  cap.set_name(budget.name());
  cap.set_cap_epsilon(*cap_epsilon);
  cap.set_reason("room for some jobs");
  cap.set_request_id(NewRequestId());
  ASSERT_THAT(operating.Call(&v1::OperatorService::Stub::SetBudgetCap, cap).status, IsOk());
}

Answer<v1::Budget> Merge(const Client& client, const std::string& from, const std::string& into,
                         const std::string& request_id = NewRequestId()) {
  v1::MergePopulationRequest request;
  request.set_name(from);
  request.set_into(into);
  request.set_reason("the same customers");
  request.set_request_id(request_id);
  return client.Call(&v1::BudgetService::Stub::MergePopulation, request);
}

class PopulationTest : public SharedServerTest {
 protected:
  void SetUp() override {
    SharedServerTest::SetUp();
    if (HasFatalFailure()) return;
    tenant_ = server().NewTenant();
  }
  Client Owner() const { return server().Owner(tenant_); }
  std::string Train(const std::string& dataset, double epsilon = kJobEpsilon) {
    const auto created = CreateJob(Owner(), JobRequest(dataset, epsilon));
    EXPECT_THAT(created.status, IsOk());
    EXPECT_EQ(WaitForJob(Owner(), created.value.name()).state(), v1::Job::SUCCEEDED);
    return created.value.name();
  }
  // What `dpar` says of a job's certificate, which must verify.
  std::string VerifiedText(const std::string& job) {
    const std::string id = job.substr(job.rfind('/') + 1);
    const std::string files = server().Scratch(absl::StrCat(tenant_.id, "-", id));
    EXPECT_EQ(server().Dpar(tenant_.owner_token, {"download", id, "-o", files}).exit_code, 0);
    const CommandResult verified = server().Dpar(
        tenant_.owner_token, {"certificate", "verify", files + "/certificate.json", "--model", files + "/model.npz",
                              "--ask-server", "--key", server().data_directory() + "/keys/signing.pub"});
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
    return verified.out;
  }

  TenantAccess tenant_;
};

TEST_F(PopulationTest, FiveJobsOverThreeVersionsShareOneLedgerAndTheSixthIsRefused) {
  const std::string january = UploadVersion(Owner(), tenant_.name, 3101, "");
  const std::string population = PopulationOf(Owner(), january);
  EXPECT_EQ(population, OwnPopulation(january));
  const std::vector<std::string> versions = {january, UploadVersion(Owner(), tenant_.name, 3102, population),
                                             UploadVersion(Owner(), tenant_.name, 3103, population)};
  for (const std::string& version : versions) EXPECT_EQ(PopulationOf(Owner(), version), population);
  const v1::Budget opened = GetBudget(Owner(), january);
  EXPECT_EQ(opened.node_total(), 3 * 120);
  EXPECT_EQ(opened.cap_delta(), 2e-4) << "1/(10 * 360), rounded down";
  std::vector<int64_t> alone;
  int64_t sum = 0;
  for (int i = 0; i < 5; ++i) {
    alone.push_back(UnitsOf(Owner(), versions[static_cast<size_t>(i % 3)]));
    sum += alone.back();
  }
  SetRoom(server().Operator(), Owner(), january, sum);
  std::vector<std::string> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(Train(versions[static_cast<size_t>(i % 3)]));
  const v1::Budget spent = GetBudget(Owner(), versions[1]);
  EXPECT_EQ(spent.name(), population);
  EXPECT_EQ(spent.posted_units(), sum);
  EXPECT_EQ(spent.live_events(), 5);
  const std::vector<v1::LedgerEntry> entries = LedgerEntries(Owner(), january);
  EXPECT_EQ(CountEntries(entries, v1::LedgerEntry::POST), 5);
  for (const std::string& version : versions) {
    EXPECT_THAT(CreateJob(Owner(), JobRequest(version, kJobEpsilon)).status,
                IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::PRIVACY_BUDGET_EXHAUSTED));
  }
  for (const std::string& job : jobs) {
    const std::string text = VerifiedText(job);
    EXPECT_THAT(text, HasSubstr(population));
    EXPECT_THAT(text, HasSubstr("VERIFIED"));
  }
  EXPECT_TRUE(VerifyChain(Owner(), january).intact());
  // By tenant, population and dataset.
  const CommandResult spend = server().Dpar(server().operator_token(), {"spend", "--tenant", tenant_.id, "--json"});
  ASSERT_EQ(spend.exit_code, 0) << spend.err;
  const nlohmann::json line = nlohmann::json::parse(spend.out)["populations"].at(0);
  EXPECT_EQ(line["budget"]["name"], population);
  EXPECT_EQ(line["datasets"].size(), 3U);
  const CommandResult table = server().Dpar(server().operator_token(), {"spend", "--tenant", tenant_.id});
  EXPECT_THAT(table.out, HasSubstr("TENANT/POPULATION/DATASET"));
  EXPECT_THAT(table.out, HasSubstr("    " + versions[2].substr(versions[2].rfind('/') + 1)));
}

TEST_F(PopulationTest, MergedPopulationsSpendTogetherAndTheirCertificatesStillVerify) {
  const std::string one = UploadVersion(Owner(), tenant_.name, 3201, "");
  const std::string other = UploadVersion(Owner(), tenant_.name, 3202, "");
  const std::string from = OwnPopulation(one);
  const std::string into = OwnPopulation(other);
  const std::vector<std::string> jobs = {Train(one), Train(one, 0.7), Train(other)};
  const int64_t sum = GetBudget(Owner(), one).posted_units() + GetBudget(Owner(), other).posted_units();
  const std::string id = NewRequestId();
  const auto merged = Merge(Owner(), from, into, id);
  ASSERT_THAT(merged.status, IsOk());
  EXPECT_EQ(merged.value.posted_units(), sum);
  EXPECT_EQ(merged.value.live_events(), 3);
  EXPECT_THAT(Merge(Owner(), from, into, id).status, IsOk()) << "the answer that was lost";
  EXPECT_THAT(Merge(Owner(), from, into).status, IsOk()) << "done before";
  EXPECT_EQ(GetBudget(Owner(), other).posted_units(), sum);
  EXPECT_EQ(PopulationOf(Owner(), one), into);
  Train(one);
  const int64_t later = GetBudget(Owner(), other).posted_units();
  EXPECT_GT(later, sum) << "a job on a dataset of either";
  const auto repeated = Merge(Owner(), from, into, id);
  ASSERT_THAT(repeated.status, IsOk());
  EXPECT_EQ(repeated.value.posted_units(), later) << "the budget as it is now";
  EXPECT_GT(repeated.value.equivalent_epsilon(), 0);
  for (const std::string& job : jobs) EXPECT_THAT(VerifiedText(job), HasSubstr("VERIFIED"));
  EXPECT_TRUE(VerifyChain(Owner(), other).intact());
  // A cycle, and what ended, are named.
  EXPECT_THAT(Merge(Owner(), into, from).status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::POPULATION_CLOSED));
  const CommandResult ended = server().Dpar(tenant_.owner_token, {"population", "show", from});
  EXPECT_THAT(ended.out, HasSubstr("CLOSED"));
  EXPECT_THAT(ended.out, HasSubstr(absl::StrCat("merged into ", into, ": the same customers")));
}

TEST_F(PopulationTest, MergesThatCannotBeChangeNothing) {
  const std::string one = UploadVersion(Owner(), tenant_.name, 3301, "");
  const std::string other = UploadVersion(Owner(), tenant_.name, 3302, "");
  const std::string from = OwnPopulation(one);
  const std::string into = OwnPopulation(other);
  const TenantAccess stranger = server().NewTenant();
  const std::string foreign = OwnPopulation(UploadVersion(server().Owner(stranger), stranger.name, 3303, ""));
  const auto expect = [&](const grpc::Status& status, grpc::StatusCode code, v1::ErrorReason reason) {
    EXPECT_THAT(status, IsError(code, reason));
  };
  expect(Merge(Owner(), from, from).status, grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD);
  expect(Merge(Owner(), from, one).status, grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD);
  expect(Merge(Owner(), from, tenant_.name + "/populations/none").status, grpc::StatusCode::NOT_FOUND,
         v1::RESOURCE_NOT_FOUND);
  expect(Merge(Owner(), from, foreign).status, grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND);
  expect(Merge(Owner(), foreign, into).status, grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND);
  expect(Merge(server().Operator(), from, into).status, grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT);
  const std::string slow = UploadGraph(Owner(), tenant_.name, MakeSlowGraph(3304));
  const auto live = CreateJob(Owner(), JobRequest(slow, 1));
  ASSERT_THAT(live.status, IsOk());
  expect(Merge(Owner(), OwnPopulation(slow), into).status, grpc::StatusCode::FAILED_PRECONDITION,
         v1::POPULATION_IN_USE);
  expect(Merge(Owner(), into, OwnPopulation(slow)).status, grpc::StatusCode::FAILED_PRECONDITION,
         v1::POPULATION_IN_USE);
  EXPECT_THAT(CancelJob(Owner(), live.value.name()).status, IsOk());
  EXPECT_EQ(LedgerEntries(Owner(), one).size(), 1U);
  EXPECT_EQ(LedgerEntries(Owner(), other).size(), 1U);
  const CommandResult unasked = server().Dpar(
      tenant_.owner_token, {"population", "merge", from, "--into", into, "--reason", "the same customers"});
  EXPECT_EQ(unasked.exit_code, 2) << unasked.out << unasked.err;
  const CommandResult done = server().Dpar(
      tenant_.owner_token, {"population", "merge", from, "--into", into, "--reason", "the same customers", "--yes"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr(absl::StrCat(from, " is part of ", into, " now")));
}

TEST_F(PopulationTest, AMergeThatClosesItsTargetSaysSoFirst) {
  const auto upload = [&](uint64_t seed, const std::string& name, const std::string& cap) {
    const std::string file = server().Scratch(absl::StrCat(tenant_.id, "-", seed, ".npz"));
    WriteFile(file, GraphBytes(MakeGraph(seed)));
    return server().Dpar(tenant_.owner_token, {"upload", file, "--classes", "3", "--name", name, "--cap-epsilon", cap});
  };
  ASSERT_EQ(upload(3501, "one", "8").exit_code, 0);
  ASSERT_EQ(upload(3502, "other", "1").exit_code, 0);
  const std::string one = tenant_.name + "/datasets/one";
  const std::string other = tenant_.name + "/datasets/other";
  ASSERT_NE(GetBudget(Owner(), one).order(), GetBudget(Owner(), other).order());
  Train(one, 0.1);
  const std::vector<std::string> merge = {"population", "merge",    "one",      "--into",
                                          "other",      "--reason", "the same", "--yes"};
  const CommandResult refused = server().Dpar(tenant_.owner_token, merge);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("would admit no further job, for good"));
  EXPECT_THAT(refused.err, HasSubstr("--close"));
  EXPECT_EQ(GetBudget(Owner(), other).closed_reason(), "");
  std::vector<std::string> arguments = merge;
  arguments.pop_back();
  arguments.insert(arguments.begin(), BinaryPath("dpar"));
  TerminalCommand asked(arguments, server().DparEnvironment(tenant_.owner_token), 200);
  ASSERT_TRUE(asked.AwaitText("for good? What both")) << asked.output();
  asked.Type("y\n");
  ASSERT_TRUE(asked.AwaitText("close it for good? [y/N]")) << asked.output();
  asked.Type("n\n");
  EXPECT_EQ(asked.AwaitEnd(), 2) << asked.output();
  EXPECT_EQ(GetBudget(Owner(), other).closed_reason(), "");
  arguments = merge;
  arguments.push_back("--close");
  const CommandResult closed = server().Dpar(tenant_.owner_token, arguments);
  EXPECT_EQ(closed.exit_code, 0) << closed.err;
  EXPECT_THAT(closed.out, HasSubstr("CLOSED"));
}

TEST_F(PopulationTest, AScriptIsToldOfOtherPopulationsAndATypingErrorIsRefused) {
  const auto upload = [&](uint64_t seed, std::vector<std::string> flags) {
    const std::string file = server().Scratch(absl::StrCat(tenant_.id, "-", seed, ".npz"));
    WriteFile(file, GraphBytes(MakeGraph(seed)));
    flags.insert(flags.begin(), {"upload", file, "--classes", "3", "--json"});
    return server().Dpar(tenant_.owner_token, flags);
  };
  const CommandResult first = upload(3401, {"--name", "customers"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_FALSE(nlohmann::json::parse(first.out).contains("other_populations")) << "there was none";
  const CommandResult second = upload(3402, {"--name", "suppliers"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(nlohmann::json::parse(second.out)["other_populations"], nlohmann::json({"customers"}));
  EXPECT_THAT(second.err, HasSubstr("If they are people of one of customers,"));
  const CommandResult third = upload(3403, {"--name", "march", "--population", "customers"});
  ASSERT_EQ(third.exit_code, 0) << third.err;
  const nlohmann::json joined = nlohmann::json::parse(third.out);
  EXPECT_EQ(joined["dataset"]["population"], tenant_.name + "/populations/customers");
  EXPECT_EQ(joined["budget_shared"], true);
  EXPECT_FALSE(joined.contains("other_populations"));
  const CommandResult typo = upload(3404, {"--population", "custommers"});
  EXPECT_NE(typo.exit_code, 0);
  EXPECT_THAT(typo.err, HasSubstr("custommers"));
  const CommandResult again = upload(3401, {"--population", "suppliers"});
  EXPECT_NE(again.exit_code, 0);
  EXPECT_THAT(again.err, HasSubstr(tenant_.name + "/populations/customers"));
  EXPECT_EQ(upload(3405, {"--population", "customers", "--cap-epsilon", "1"}).exit_code, 2);
  // A dataset's id finds its population too.
  const CommandResult shown = server().Dpar(tenant_.owner_token, {"population", "show", "march"});
  EXPECT_THAT(shown.out, HasSubstr(tenant_.name + "/populations/customers"));
}

TEST_F(PopulationTest, AnUploadThatShrinksTheCapSaysSoFirst) {
  const auto flags = [&](uint64_t seed, int64_t nodes, const std::vector<std::string>& added) {
    const std::string file = server().Scratch(absl::StrCat(tenant_.id, "-", seed, ".npz"));
    WriteFile(file, GraphBytes(MakeGraph(seed, {.nodes = nodes, .classes = 3, .features = 30})));
    std::vector<std::string> all = {"upload", file, "--classes", "3"};
    all.insert(all.end(), added.begin(), added.end());
    return all;
  };
  const auto run = [&](const std::vector<std::string>& arguments) {
    return server().Dpar(tenant_.owner_token, arguments);
  };
  // 9e-5 is for at most 1,111 people.
  ASSERT_EQ(run(flags(3701, 300, {"--name", "people", "--cap-delta", "9e-5"})).exit_code, 0);
  const std::string people = tenant_.name + "/datasets/people";
  const v1::Budget before = GetBudget(Owner(), people);
  const CommandResult fits = run(flags(3702, 300, {"--population", "people"}));
  ASSERT_EQ(fits.exit_code, 0) << fits.err;
  EXPECT_THAT(fits.err, Not(HasSubstr("the delta of its cap goes")));
  EXPECT_EQ(GetBudget(Owner(), people).cap_units(), before.cap_units());
  std::vector<std::string> large = flags(3703, 1400, {"--population", "people"});
  std::vector<std::string> at_terminal = large;
  at_terminal.insert(at_terminal.begin(), BinaryPath("dpar"));
  TerminalCommand asked(at_terminal, server().DparEnvironment(tenant_.owner_token), 200);
  ASSERT_TRUE(asked.AwaitText("Upload it? [y/N]")) << asked.output();
  asked.Type("n\n");
  EXPECT_EQ(asked.AwaitEnd(), 1) << asked.output();
  EXPECT_EQ(GetBudget(Owner(), people).node_total(), 600);
  const CommandResult script = run(large);
  ASSERT_EQ(script.exit_code, 0) << script.err;
  EXPECT_THAT(script.err, HasSubstr("the delta of its cap goes from 9e-05 to 5e-05"));
  const v1::Budget after = GetBudget(Owner(), people);
  EXPECT_EQ(after.cap_delta(), 5e-5);
  EXPECT_LT(after.cap_units(), before.cap_units());
  EXPECT_THAT(script.err, HasSubstr(" units (0 used)"));
}

TEST_F(PopulationTest, ATokenThatMayNotReadPopulationsIsToldThatTheyWereNotListed) {
  UploadVersion(Owner(), tenant_.name, 3601, "");
  v1::CreateTokenRequest token = TokenRequest(tenant_.name, v1::MEMBER);
  token.mutable_token()->add_scopes(v1::UPLOAD);
  const auto created = Owner().Call(&v1::OperatorService::Stub::CreateToken, token);
  ASSERT_THAT(created.status, IsOk());
  const std::string file = server().Scratch(tenant_.id + "-3602.npz");
  WriteFile(file, GraphBytes(MakeGraph(3602)));
  const CommandResult done =
      server().Dpar(created.value.secret(), {"upload", file, "--classes", "3", "--name", "blind", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("populations of earlier uploads could not be listed"));
  EXPECT_THAT(done.err, HasSubstr("note: without --population these count as people of whom nothing was uploaded"));
  const nlohmann::json json = nlohmann::json::parse(done.out);
  ASSERT_TRUE(json.contains("other_populations"));
  EXPECT_TRUE(json["other_populations"].is_null());
}

class PopulationRaceTest : public ::testing::Test {
 protected:
  void StartServer(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--no-worker", "--max-queued-jobs", absl::StrCat(kRuns * kClients)});
    server_ = std::make_unique<TestServer>(std::move(flags));
    ASSERT_TRUE(server_->Start());
    tenant_ = server_->NewTenant();
    for (int i = 0; i < kClients; ++i) clients_.push_back(server_->Owner(tenant_));
  }
  void ExpectTenOfSixtyFourOverEightVersions() {
    for (int run = 0; run < kRuns && !HasFailure(); ++run) {
      SCOPED_TRACE(absl::StrCat("run ", run));
      std::vector<std::string> versions;
      for (int version = 0; version < kVersions; ++version) {
        const std::string population = versions.empty() ? "" : OwnPopulation(versions[0]);
        versions.push_back(UploadVersion(clients_[0], tenant_.name,
                                         static_cast<uint64_t>(40'000 + run * kVersions + version), population));
      }
      const int64_t units = UnitsOf(clients_[0], versions[0]);
      ASSERT_NO_FATAL_FAILURE(SetRoom(server_->Operator(), clients_[0], versions[0], kAdmitted * units));
      std::vector<grpc::Status> answers(kClients);
      std::barrier begin(kClients);
      std::vector<std::thread> threads;
      for (size_t i = 0; i < kClients; ++i) {
        threads.emplace_back([&, i] {
          const v1::CreateJobRequest request = JobRequest(versions[i % kVersions], kJobEpsilon);
          begin.arrive_and_wait();
          answers[i] = CreateJob(clients_[i], request).status;
        });
      }
      for (std::thread& thread : threads) thread.join();
      const auto admitted =
          std::count_if(answers.begin(), answers.end(), [](const grpc::Status& status) { return status.ok(); });
      EXPECT_EQ(admitted, kAdmitted);
      for (const grpc::Status& status : answers) {
        if (!status.ok()) {
          EXPECT_THAT(status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::PRIVACY_BUDGET_EXHAUSTED));
        }
      }
      const v1::Budget budget = GetBudget(clients_[0], versions[kVersions - 1]);
      EXPECT_EQ(budget.reserved_units(), kAdmitted * units);
      EXPECT_LE(budget.reserved_units(), budget.cap_units());
      EXPECT_EQ(budget.live_events(), kAdmitted);
      EXPECT_TRUE(VerifyChain(clients_[0], versions[0]).intact());
    }
  }

  // Outlives the server that uses it.
  std::unique_ptr<dpar::testing::PrivatePostgres> postgres_;
  std::unique_ptr<TestServer> server_;
  TenantAccess tenant_;
  std::vector<Client> clients_;
};

TEST_F(PopulationRaceTest, ExactlyAsManyAsFitAreAdmittedOverEightVersionsOnSqlite) {
  StartServer({});
  ExpectTenOfSixtyFourOverEightVersions();
}

TEST_F(PopulationRaceTest, ExactlyAsManyAsFitAreAdmittedOverEightVersionsOnPostgres) {
  postgres_ = dpar::testing::PrivatePostgres::Start();
  if (postgres_ == nullptr) GTEST_SKIP() << "PostgreSQL is not installed";
  StartServer({"--store", postgres_->NewDatabase()});
  ExpectTenOfSixtyFourOverEightVersions();
}

// Merges both ways, and jobs on datasets of both, at the same moment: no deadlock, and nothing is lost.
TEST_F(PopulationRaceTest, MergesAndReservationsAtOnceLoseNothingOnPostgres) {
  postgres_ = dpar::testing::PrivatePostgres::Start();
  if (postgres_ == nullptr) GTEST_SKIP() << "PostgreSQL is not installed";
  StartServer({"--store", postgres_->NewDatabase()});
  for (int run = 0; run < 5; ++run) {
    const std::string one = UploadVersion(clients_[0], tenant_.name, static_cast<uint64_t>(50'000 + 2 * run), "");
    const std::string other = UploadVersion(clients_[0], tenant_.name, static_cast<uint64_t>(50'001 + 2 * run), "");
    std::vector<grpc::Status> answers(kClients);
    std::barrier begin(kClients);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kClients; ++i) {
      threads.emplace_back([&, i] {
        begin.arrive_and_wait();
        if (i < 4) {
          answers[i] =
              Merge(clients_[i], OwnPopulation(i % 2 == 0 ? one : other), OwnPopulation(i % 2 == 0 ? other : one))
                  .status;
        } else {
          answers[i] = CreateJob(clients_[i], JobRequest(i % 2 == 0 ? one : other, 0.05)).status;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    int64_t admitted = 0;
    for (size_t i = 4; i < kClients; ++i) admitted += answers[i].ok() ? 1 : 0;
    v1::ListBudgetsRequest list;
    list.set_parent(tenant_.name);
    list.set_page_size(1000);
    int64_t live = 0;
    const auto listed = clients_[0].Call(&v1::BudgetService::Stub::ListBudgets, list);
    for (const v1::Budget& budget : listed.value.budgets()) {
      if (budget.name() == OwnPopulation(one) || budget.name() == OwnPopulation(other)) live += budget.live_events();
    }
    EXPECT_EQ(live, admitted);
    for (const grpc::Status& status : answers) {
      EXPECT_THAT(status.error_code(), ::testing::AnyOf(grpc::StatusCode::OK, grpc::StatusCode::FAILED_PRECONDITION,
                                                        grpc::StatusCode::UNAVAILABLE))
          << status.error_message();
    }
    EXPECT_TRUE(VerifyChain(clients_[0], one).intact());
    EXPECT_TRUE(VerifyChain(clients_[0], other).intact());
  }
}

}  // namespace
}  // namespace dpar::e2e
