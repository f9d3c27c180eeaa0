// How often an address may fail to authenticate.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

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
