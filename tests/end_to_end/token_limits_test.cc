// How many tokens and tenants there may be, and how often an address may fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

TEST(TokenLimitTest, TheLastTokenAndTheLastTenantFitAndTheNextDoNot) {
  TestServer server({"--max-tokens", "3", "--max-tenants", "2"});
  ASSERT_TRUE(server.Start());
  const Client operating = server.Operator();
  const TenantAccess tenant = server.NewTenant();
  const auto second = Create(operating, TokenRequest(tenant.name, v1::READER));
  ASSERT_THAT(second.status, IsOk());
  const auto third = Create(operating, TokenRequest(tenant.name, v1::READER));
  ASSERT_THAT(third.status, IsOk());
  const auto over = Create(operating, TokenRequest(tenant.name, v1::READER));
  EXPECT_THAT(over.status, IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));
  EXPECT_EQ(ErrorMetadata(over.status, "limit"), "max_tokens");
  EXPECT_EQ(ErrorMetadata(over.status, "maximum"), "3");
  // Of a rotated token and its successor only one counts, unless they overlap.
  EXPECT_THAT(Rotate(operating, RotateRequest(third.value.token().name(), 60)).status,
              IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));
  EXPECT_THAT(Rotate(operating, RotateRequest(third.value.token().name(), 0)).status, IsOk());
  EXPECT_THAT(Revoke(operating, second.value.token().name()).status, IsOk());
  EXPECT_THAT(Create(operating, TokenRequest(tenant.name, v1::READER)).status, IsOk());
  // The operators have a count of their own.
  EXPECT_THAT(Create(operating, TokenRequest("operator", v1::OPERATOR)).status, IsOk());
  EXPECT_THAT(Create(operating, TokenRequest("operator", v1::OPERATOR)).status, IsOk());
  EXPECT_THAT(Create(operating, TokenRequest("operator", v1::OPERATOR)).status,
              IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));

  server.NewTenant();
  v1::CreateTenantRequest third_tenant;
  third_tenant.set_tenant_id("third");
  third_tenant.set_request_id(NewRequestId());
  const auto refused = operating.Call(&v1::OperatorService::Stub::CreateTenant, third_tenant);
  EXPECT_THAT(refused.status, IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));
  EXPECT_EQ(ErrorMetadata(refused.status, "limit"), "max_tenants");
  const auto listed = operating.Call(&v1::OperatorService::Stub::ListTenants, v1::ListTenantsRequest());
  EXPECT_EQ(listed.value.tenants_size(), 2) << "nothing is left of what was refused";
}

TEST(FailedAttemptTest, AnAddressThatFailsOftenWaitsForItsFailuresAndForNothingElse) {
  TestServer server({"--auth-failures-per-minute", "3"});
  ASSERT_TRUE(server.Start());
  const Client wrong = server.MakeClient(absl::StrCat("dpar_nobody_", std::string(64, '0')));
  const auto who = [](const Client& client) {
    return client.Call(&v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest()).status;
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(who(wrong), IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
  }
  // The minute may be over between two calls on a machine that stands still; then the count begins again.
  absl::Duration longest = absl::ZeroDuration();
  for (int i = 0; i < 5 && longest < absl::Milliseconds(900); ++i) {
    const absl::Time start = absl::Now();
    EXPECT_THAT(who(wrong), IsError(grpc::StatusCode::UNAUTHENTICATED, v1::TOKEN_INVALID));
    longest = std::max(longest, absl::Now() - start);
  }
  EXPECT_GE(longest, absl::Milliseconds(900));
  EXPECT_THAT(who(server.Operator()), IsOk());
}
}  // namespace
}  // namespace dpar::e2e
