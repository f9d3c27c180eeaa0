// Many clients at once want what is left of a budget: it is given out to the last unit and never past it.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/privacy/budget.h"
#include "server/store/testing/private_postgres.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

constexpr int kClients = 64;
constexpr int kAdmitted = 10;
constexpr int kRuns = 20;
constexpr double kJobEpsilon = 0.5;

class RaceTest : public ::testing::Test {
 protected:
  // Jobs stay queued, so that nothing but the race moves the budget.
  void StartServer(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--no-worker", "--max-queued-jobs", absl::StrCat(kRuns * kClients)});
    server_ = std::make_unique<TestServer>(std::move(flags));
    ASSERT_TRUE(server_->Start());
    tenant_ = server_->NewTenant();
    // A connection each: gRPC would send the calls of one connection in some order.
    for (int i = 0; i < kClients; ++i) clients_.push_back(server_->Owner(tenant_));
  }

  // A new dataset whose cap admits kAdmitted jobs at `units` each and next to nothing more.
  std::string NewDataset(uint64_t seed, int64_t& units) {
    const std::string dataset = UploadGraph(clients_[0], tenant_.name, MakeGraph(seed));
    v1::CreateJobRequest request = JobRequest(dataset, kJobEpsilon);
    request.set_validate_only(true);
    const auto planned = CreateJob(clients_[0], request);
    EXPECT_THAT(planned.status, IsOk());
    units = planned.value.plan().price_units();
    const v1::Budget budget = GetBudget(clients_[0], dataset);
    const BudgetTerms terms = {budget.cap_epsilon(), budget.cap_delta(), budget.order(), budget.cap_units()};
    // A little more than ten: the way to an epsilon and back rounds down.
    const auto cap_epsilon = EpsilonOfUnits(terms, kAdmitted * units + units / 1000);
    EXPECT_TRUE(cap_epsilon.ok()) << cap_epsilon.status();
    v1::SetBudgetCapRequest cap;
    cap.set_name(OwnPopulation(dataset));
    cap.set_cap_epsilon(*cap_epsilon);
    cap.set_reason("room for ten jobs");
    cap.set_request_id(NewRequestId());
    EXPECT_THAT(server_->Operator().Call(&v1::OperatorService::Stub::SetBudgetCap, cap).status, IsOk());
    return dataset;
  }

  // Every client asks for a job at the same moment; what each was told.
  std::vector<Answer<v1::Job>> Race(const std::string& dataset) {
    std::vector<Answer<v1::Job>> answers(kClients);
    std::barrier begin(kClients);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kClients; ++i) {
      threads.emplace_back([&, i] {
        const v1::CreateJobRequest request = JobRequest(dataset, kJobEpsilon);
        begin.arrive_and_wait();
        answers[i] = CreateJob(clients_[i], request);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return answers;
  }

  // Names of the jobs that were admitted, sorted. Everybody else must have been refused for the budget.
  static std::vector<std::string> Admitted(const std::vector<Answer<v1::Job>>& answers) {
    std::vector<std::string> admitted;
    for (const Answer<v1::Job>& answer : answers) {
      if (answer.status.ok()) {
        admitted.push_back(answer.value.name());
      } else {
        EXPECT_THAT(answer.status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::PRIVACY_BUDGET_EXHAUSTED));
      }
    }
    std::sort(admitted.begin(), admitted.end());
    return admitted;
  }

  void ExpectReserved(const std::string& dataset, int64_t units, const std::vector<std::string>& admitted) {
    const v1::Budget budget = GetBudget(clients_[0], dataset);
    EXPECT_GE(budget.cap_units(), kAdmitted * units);
    EXPECT_LT(budget.cap_units(), (kAdmitted + 1) * units);
    EXPECT_EQ(budget.reserved_units(), kAdmitted * units);
    EXPECT_EQ(budget.posted_units(), 0);
    EXPECT_EQ(budget.live_events(), kAdmitted);
    const std::vector<v1::LedgerEntry> entries = LedgerEntries(clients_[0], dataset);
    ASSERT_EQ(entries.size(), 2U + kAdmitted) << "OPEN, ADJUST, and a reservation for each";
    std::vector<std::string> reserved;
    for (size_t i = 2; i < entries.size(); ++i) {
      EXPECT_EQ(entries[i].kind(), v1::LedgerEntry::RESERVE);
      EXPECT_EQ(entries[i].units(), units);
      reserved.push_back(entries[i].job());
    }
    std::sort(reserved.begin(), reserved.end());
    EXPECT_EQ(reserved, admitted);
    const v1::VerifyChainResponse chain = VerifyChain(clients_[0], dataset);
    EXPECT_TRUE(chain.intact()) << chain.fault();
    EXPECT_EQ(chain.entry_count(), 2 + kAdmitted);
    for (const std::string& job : admitted) EXPECT_EQ(GetJob(clients_[0], job).value.state(), v1::Job::QUEUED);
  }

  void ExpectTenOfSixtyFourEveryTime() {
    for (int run = 0; run < kRuns && !HasFailure(); ++run) {
      SCOPED_TRACE(absl::StrCat("run ", run));
      int64_t units = 0;
      // Equal graphs would share a budget.
      const std::string dataset = NewDataset(static_cast<uint64_t>(2000 + run), units);
      ASSERT_GT(units, 0);
      const std::vector<std::string> admitted = Admitted(Race(dataset));
      ASSERT_EQ(admitted.size(), static_cast<size_t>(kAdmitted));
      ExpectReserved(dataset, units, admitted);
    }
    v1::ListJobsRequest list;
    list.set_parent(tenant_.name);
    list.set_page_size(1000);
    const auto jobs = clients_[0].Call(&v1::TrainingService::Stub::ListJobs, list);
    EXPECT_EQ(jobs.value.jobs_size(), kRuns * kAdmitted) << "a refused job leaves nothing behind";
  }

  // Outlives the server that uses it.
  std::unique_ptr<dpar::testing::PrivatePostgres> postgres_;
  std::unique_ptr<TestServer> server_;
  TenantAccess tenant_;
  std::vector<Client> clients_;
};

TEST_F(RaceTest, OfSixtyFourClientsExactlyTenGetABudgetForTenOnSqlite) {
  StartServer({});
  ExpectTenOfSixtyFourEveryTime();
}

TEST_F(RaceTest, OfSixtyFourClientsExactlyTenGetABudgetForTenOnPostgres) {
  postgres_ = dpar::testing::PrivatePostgres::Start();
  if (postgres_ == nullptr) GTEST_SKIP() << "PostgreSQL is not installed";
  StartServer({"--store", postgres_->NewDatabase()});
  ExpectTenOfSixtyFourEveryTime();
}

}  // namespace
}  // namespace dpar::e2e
