// What jobs cost, as the ledger shows it.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/privacy/accountant.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

class LedgerTest : public SharedServerTest {};

TEST_F(LedgerTest, AFinishedJobLeavesOneReservationAndOnePostInAnIntactChain) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(1));
  const auto created = CreateJob(owner, JobRequest(dataset, 1));
  ASSERT_THAT(created.status, IsOk());
  const v1::Job job = WaitForJob(owner, created.value.name());
  EXPECT_EQ(job.state(), v1::Job::SUCCEEDED);
  EXPECT_EQ(job.attempts(), 1);

  const std::vector<v1::LedgerEntry> entries = LedgerEntries(owner, dataset);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].kind(), v1::LedgerEntry::OPEN);
  EXPECT_EQ(entries[1].kind(), v1::LedgerEntry::RESERVE);
  EXPECT_EQ(entries[2].kind(), v1::LedgerEntry::POST);
  for (size_t i = 0; i < entries.size(); ++i) EXPECT_EQ(entries[i].sequence(), static_cast<int64_t>(i) + 1);
  EXPECT_EQ(entries[1].job(), job.name());
  EXPECT_EQ(entries[2].job(), job.name());
  EXPECT_GT(entries[1].units(), 0);
  EXPECT_EQ(entries[2].units(), entries[1].units());
  EXPECT_EQ(entries[1].units(), job.plan().price_units());
  EXPECT_EQ(entries[2].epsilon(), job.plan().epsilon());
  EXPECT_EQ(entries[2].attempt(), 1);

  const v1::Budget budget = GetBudget(owner, dataset);
  EXPECT_EQ(budget.name(), OwnPopulation(dataset));
  EXPECT_EQ(budget.posted_units(), entries[2].units());
  EXPECT_EQ(budget.reserved_units(), 0);
  EXPECT_EQ(budget.left_units(), budget.cap_units() - budget.posted_units());
  EXPECT_EQ(budget.live_events(), 1);

  const v1::VerifyChainResponse chain = VerifyChain(owner, dataset);
  EXPECT_TRUE(chain.intact()) << chain.fault();
  EXPECT_EQ(chain.entry_count(), 3);
  EXPECT_EQ(chain.head_hash(), entries[2].hash());
}

TEST_F(LedgerTest, TheEventOfAPlanMeetsThePromisedEpsilonAndDelta) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(2));
  v1::CreateJobRequest request = JobRequest(dataset, 1);
  request.mutable_spec()->set_delta(1e-4);
  request.set_validate_only(true);
  const auto planned = CreateJob(owner, request);
  ASSERT_THAT(planned.status, IsOk());
  EXPECT_EQ(planned.value.plan().epsilon(), 1);
  EXPECT_EQ(planned.value.plan().delta(), 1e-4);
  const auto epsilon = EventEpsilon(planned.value.plan().event(), 1e-4);
  ASSERT_TRUE(epsilon.ok()) << epsilon.status();
  EXPECT_LE(*epsilon, 1);
  EXPECT_GE(*epsilon, 0.99);
}

// A number in an error's metadata.
int64_t Units(const grpc::Status& status, const std::string& key) {
  int64_t units = -1;
  EXPECT_TRUE(absl::SimpleAtoi(ErrorMetadata(status, key), &units)) << key << ": " << ErrorMetadata(status, key);
  return units;
}

TEST_F(LedgerTest, AJobOverBudgetIsRefusedWithTheFiguresAndChangesNothing) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const Graph graph = MakeGraph(3);
  const std::string bytes = GraphBytes(graph);
  v1::OpenUploadRequest open = OpenRequest(tenant.name, bytes, graph.sizes);
  open.set_cap_epsilon(1.5);
  const auto uploaded = UploadFile(owner, open, bytes);
  ASSERT_THAT(uploaded.status, IsOk());
  const std::string dataset = uploaded.value.dataset().name();
  const auto first = CreateJob(owner, JobRequest(dataset, 1));
  ASSERT_THAT(first.status, IsOk());
  ASSERT_EQ(WaitForJob(owner, first.value.name()).state(), v1::Job::SUCCEEDED);
  const v1::Budget before = GetBudget(owner, dataset);
  EXPECT_EQ(before.cap_epsilon(), 1.5);

  const auto refused = CreateJob(owner, JobRequest(dataset, 1.5));
  EXPECT_THAT(refused.status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::PRIVACY_BUDGET_EXHAUSTED));
  double asked_epsilon = 0;
  EXPECT_TRUE(absl::SimpleAtod(ErrorMetadata(refused.status, "asked_epsilon"), &asked_epsilon));
  EXPECT_EQ(asked_epsilon, 1.5);
  EXPECT_GT(Units(refused.status, "asked_units"), before.left_units());
  EXPECT_EQ(Units(refused.status, "posted_units"), before.posted_units());
  EXPECT_EQ(Units(refused.status, "reserved_units"), 0);
  EXPECT_EQ(Units(refused.status, "left_units"), before.left_units());
  EXPECT_EQ(Units(refused.status, "cap_units"), before.cap_units());
  EXPECT_EQ(Units(refused.status, "order"), before.order());

  EXPECT_EQ(GetBudget(owner, dataset).SerializeAsString(), before.SerializeAsString());
  EXPECT_EQ(LedgerEntries(owner, dataset).size(), 3U);
  v1::ListJobsRequest list;
  list.set_parent(tenant.name);
  EXPECT_EQ(owner.Call(&v1::TrainingService::Stub::ListJobs, list).value.jobs_size(), 1);
}

TEST_F(LedgerTest, TheCommandLineSaysRefusedByBudgetWithExitCodeThree) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(4));
  const CommandResult refused = server().Dpar(tenant.owner_token, {"train", dataset, "--epsilon", "50"});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_THAT(refused.err, ::testing::HasSubstr("budget"));
  EXPECT_EQ(GetBudget(owner, dataset).reserved_units(), 0);
}

TEST_F(LedgerTest, ALargestAdmissibleJobIsAdmittedAndOneJustAboveIsNot) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(5));
  const auto first = CreateJob(owner, JobRequest(dataset, 1));
  ASSERT_THAT(first.status, IsOk());
  ASSERT_EQ(WaitForJob(owner, first.value.name()).state(), v1::Job::SUCCEEDED);
  const double largest = GetBudget(owner, dataset).largest_admissible_epsilon();
  ASSERT_GT(largest, 1);
  v1::CreateJobRequest request = JobRequest(dataset, largest * 1.001);
  request.set_validate_only(true);
  EXPECT_THAT(CreateJob(owner, request).status,
              IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::PRIVACY_BUDGET_EXHAUSTED));
  request.mutable_spec()->set_epsilon(largest);
  EXPECT_THAT(CreateJob(owner, request).status, IsOk());
}

TEST_F(LedgerTest, OnlyAnOperatorRaisesACapAndTheReasonStandsInTheLedger) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(6));
  v1::SetBudgetCapRequest request;
  request.set_name(OwnPopulation(dataset));
  request.set_cap_epsilon(12);
  request.set_reason("the board agreed");
  request.set_request_id(NewRequestId());
  EXPECT_THAT(owner.Call(&v1::OperatorService::Stub::SetBudgetCap, request).status,
              IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
  EXPECT_EQ(GetBudget(owner, dataset).cap_epsilon(), 8);

  EXPECT_THAT(server().Operator().Call(&v1::OperatorService::Stub::SetBudgetCap, request).status, IsOk());
  const v1::Budget raised = GetBudget(owner, dataset);
  EXPECT_EQ(raised.cap_epsilon(), 12);
  const std::vector<v1::LedgerEntry> entries = LedgerEntries(owner, dataset);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[1].kind(), v1::LedgerEntry::ADJUST);
  EXPECT_EQ(entries[1].reason(), "the board agreed");
  EXPECT_TRUE(VerifyChain(owner, dataset).intact());
}

v1::AdjustLedgerRequest DebitRequest(const std::string& dataset, int64_t units) {
  v1::AdjustLedgerRequest request;
  request.set_name(OwnPopulation(dataset));
  request.set_debit_units(units);
  request.set_reason("a pilot study");
  request.set_request_id(NewRequestId());
  return request;
}

TEST_F(LedgerTest, OnlyAnOperatorDebitsAndARepeatedRequestDebitsOnce) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(7));
  const v1::AdjustLedgerRequest request = DebitRequest(dataset, 1'000'000);
  const auto debit = &v1::OperatorService::Stub::AdjustLedger;
  EXPECT_THAT(owner.Call(debit, request).status, IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
  EXPECT_EQ(GetBudget(owner, dataset).posted_units(), 0);
  const Client operators = server().Operator();
  const auto first = operators.Call(debit, request);
  ASSERT_THAT(first.status, IsOk());
  EXPECT_EQ(first.value.kind(), v1::LedgerEntry::DEBIT);
  EXPECT_EQ(first.value.units(), 1'000'000);
  const auto again = operators.Call(debit, request);
  EXPECT_EQ(again.value.SerializeAsString(), first.value.SerializeAsString());
  EXPECT_EQ(GetBudget(owner, dataset).posted_units(), 1'000'000);
  EXPECT_TRUE(VerifyChain(owner, dataset).intact());
}

TEST_F(LedgerTest, ABadDebitIsRefusedAndChangesNothing) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(8));
  const Client operators = server().Operator();
  const auto debit = &v1::OperatorService::Stub::AdjustLedger;
  const auto invalid = IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD);
  EXPECT_THAT(operators.Call(debit, DebitRequest(dataset, 0)).status, invalid);
  EXPECT_THAT(operators.Call(debit, DebitRequest(dataset, -5)).status, invalid);
  EXPECT_THAT(operators.Call(debit, DebitRequest(dataset, std::numeric_limits<int64_t>::max())).status, invalid);
  v1::AdjustLedgerRequest no_reason = DebitRequest(dataset, 5);
  no_reason.clear_reason();
  EXPECT_THAT(operators.Call(debit, no_reason).status, invalid);
  EXPECT_THAT(operators.Call(debit, DebitRequest(absl::StrCat(tenant.name, "/datasets/none"), 5)).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_EQ(LedgerEntries(owner, dataset).size(), 1U);
}

TEST_F(LedgerTest, SpendIsListedForTheTenantAndForOperatorsAndNobodyElse) {
  const TenantAccess tenant = server().NewTenant();
  const TenantAccess other = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string first = UploadGraph(owner, tenant.name, MakeGraph(9));
  const std::string second = UploadGraph(owner, tenant.name, MakeGraph(10));
  ASSERT_THAT(server().Operator().Call(&v1::OperatorService::Stub::AdjustLedger, DebitRequest(second, 1000)).status,
              IsOk());
  v1::ListBudgetsRequest list;
  list.set_parent(tenant.name);
  list.set_page_size(1);
  const auto page = owner.Call(&v1::BudgetService::Stub::ListBudgets, list);
  ASSERT_THAT(page.status, IsOk());
  ASSERT_EQ(page.value.budgets_size(), 1);
  EXPECT_EQ(page.value.budgets(0).name(), OwnPopulation(first));
  EXPECT_EQ(page.value.fullest().name(), OwnPopulation(second));
  EXPECT_NE(page.value.next_page_token(), "");
  EXPECT_THAT(server().Owner(other).Call(&v1::BudgetService::Stub::ListBudgets, list).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  list.clear_page_size();
  const auto own = server().Operator().Call(&v1::BudgetService::Stub::ListBudgets, list);
  ASSERT_THAT(own.status, IsOk());
  EXPECT_EQ(own.value.budgets_size(), 2);
  list.clear_parent();
  EXPECT_THAT(owner.Call(&v1::BudgetService::Stub::ListBudgets, list).status,
              IsError(grpc::StatusCode::PERMISSION_DENIED, v1::ROLE_INSUFFICIENT));
  const auto all = server().Operator().Call(&v1::BudgetService::Stub::ListBudgets, list);
  ASSERT_THAT(all.status, IsOk());
  EXPECT_GE(all.value.budgets_size(), 2);
  list.set_parent("tenants/none");
  EXPECT_THAT(server().Operator().Call(&v1::BudgetService::Stub::ListBudgets, list).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
}

TEST_F(LedgerTest, TheCommandLineShowsEveryBudgetAndTheFullest) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(11));
  const CommandResult none = server().Dpar(server().Owner(server().NewTenant()).token(), {"population"});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_EQ(none.out, "no private datasets yet\n");
  const CommandResult debited =
      server().Dpar(server().operator_token(), {"debit", dataset, "--units", "5000000", "--reason", "a pilot study"});
  EXPECT_EQ(debited.exit_code, 0) << debited.err;
  EXPECT_THAT(debited.out, ::testing::HasSubstr("entry 2 debits 5000000 units"));
  const std::string id = dataset.substr(dataset.rfind('/') + 1);
  const CommandResult own = server().Dpar(tenant.owner_token, {"population"});
  EXPECT_EQ(own.exit_code, 0) << own.err;
  EXPECT_THAT(own.out, ::testing::HasSubstr(absl::StrCat("fullest: ", id)));
  const CommandResult spend = server().Dpar(server().operator_token(), {"spend", "--tenant", tenant.id});
  EXPECT_EQ(spend.exit_code, 0) << spend.err;
  EXPECT_THAT(spend.out, ::testing::HasSubstr(absl::StrCat("fullest: ", tenant.id, "/", id)));
  EXPECT_EQ(server().Dpar(tenant.owner_token, {"spend"}).exit_code, 4);
}

TEST_F(LedgerTest, AChainIsHeldAgainstTheEntryOfACertificate) {
  const TenantAccess tenant = server().NewTenant();
  const Client owner = server().Owner(tenant);
  const std::string dataset = UploadGraph(owner, tenant.name, MakeGraph(12));
  const std::string hash = LedgerEntries(owner, dataset)[0].hash();
  const auto verify = [&](int64_t sequence, const std::string& known) {
    v1::VerifyChainRequest request;
    request.set_name(OwnPopulation(dataset));
    request.set_known_sequence(sequence);
    request.set_known_hash(known);
    return owner.Call(&v1::BudgetService::Stub::VerifyChain, request);
  };
  EXPECT_TRUE(verify(1, hash).value.intact());
  EXPECT_FALSE(verify(1, "another").value.intact());
  EXPECT_EQ(verify(1, "another").value.first_bad_sequence(), 1);
  EXPECT_FALSE(verify(2, hash).value.intact());
  EXPECT_THAT(verify(-1, hash).status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
}

}  // namespace
}  // namespace dpar::e2e
