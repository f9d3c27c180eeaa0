#include "server/page/web_message.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/error.h"
#include "dpar/v1/budget.pb.h"
#include "dpar/v1/overview.pb.h"
#include "dpar/v1/training.pb.h"

namespace dpar {
namespace {

using Query = std::multimap<std::string, std::string>;

std::string Reason(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : "";
}

TEST(ReadQueryTest, ParametersAreFields) {
  v1::ListUsageRequest usage;
  ASSERT_TRUE(ReadQuery({{"parent", "tenants/a"}, {"page_size", "7"}, {"filter", ""}}, usage).ok());
  EXPECT_EQ(usage.parent(), "tenants/a");
  EXPECT_EQ(usage.page_size(), 7);
  v1::VerifyChainRequest verify;
  ASSERT_TRUE(ReadQuery({{"known_sequence", "9223372036854775807"}}, verify).ok());
  EXPECT_EQ(verify.known_sequence(), INT64_MAX);
  v1::CreateJobRequest job;
  ASSERT_TRUE(ReadQuery({{"validate_only", "true"}}, job).ok());
  EXPECT_TRUE(job.validate_only());
}

TEST(ReadQueryTest, AnythingElseIsRefused) {
  for (const Query& query :
       {Query{{"nonsense", "1"}}, Query{{"", ""}}, Query{{"Parent", "a"}}, Query{{"pageSize", "1"}},
        Query{{"parent", "a"}, {"parent", "a"}}, Query{{"page_size", ""}}, Query{{"page_size", "1.5"}},
        Query{{"page_size", "2147483648"}}, Query{{"page_size", "0x10"}}}) {
    v1::ListUsageRequest request;
    const absl::Status status = ReadQuery(query, request);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << query.begin()->first;
    EXPECT_EQ(Reason(status), "INVALID_FIELD");
  }
  v1::CreateJobRequest job;
  EXPECT_EQ(Reason(ReadQuery({{"validate_only", "1"}}, job)), "INVALID_FIELD");
  EXPECT_EQ(Reason(ReadQuery({{"spec", "{}"}}, job)), "INVALID_FIELD");
  v1::PopulationUsage repeated;
  EXPECT_EQ(Reason(ReadQuery({{"daily_posted_units", "1"}}, repeated)), "INVALID_FIELD");
}

TEST(WriteJsonTest, NumbersKeepAllTheirDigitsAndZeroIsWritten) {
  v1::Budget budget;
  budget.set_posted_units(INT64_MAX);
  budget.set_cap_epsilon(0.1 + 0.2);
  const std::string json = WriteJson(budget).value();
  EXPECT_NE(json.find("\"posted_units\":\"9223372036854775807\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"cap_epsilon\":0.30000000000000004"), std::string::npos) << json;
  EXPECT_NE(json.find("\"reserved_units\":\"0\""), std::string::npos) << json;
}

TEST(ErrorJsonTest, SaysCodeReasonAndMessage) {
  const absl::Status status =
      MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND, "there is no \"<b>\x01\xff\"");
  EXPECT_EQ(ErrorJson(status),
            "{\"error\":{\"code\":\"NOT_FOUND\",\"reason\":\"RESOURCE_NOT_FOUND\",\"message\":\"there is no "
            "\\\"<b>\\u0001\xef\xbf\xbd\\\"\"}}");
  EXPECT_EQ(ErrorJson(absl::CancelledError("gone")),
            "{\"error\":{\"code\":\"CANCELLED\",\"reason\":\"\",\"message\":\"gone\"}}");
}

TEST(HttpStatusOfTest, EveryCodeHasOne) {
  const std::map<absl::StatusCode, int> statuses = {
      {absl::StatusCode::kOk, 200},          {absl::StatusCode::kInvalidArgument, 400},
      {absl::StatusCode::kOutOfRange, 400},  {absl::StatusCode::kFailedPrecondition, 400},
      {absl::StatusCode::kNotFound, 404},    {absl::StatusCode::kUnauthenticated, 401},
      {absl::StatusCode::kAborted, 409},     {absl::StatusCode::kPermissionDenied, 403},
      {absl::StatusCode::kUnavailable, 503}, {absl::StatusCode::kResourceExhausted, 429},
      {absl::StatusCode::kInternal, 500},    {absl::StatusCode::kDataLoss, 500},
      {absl::StatusCode::kCancelled, 500},   {absl::StatusCode::kAlreadyExists, 409},
  };
  for (const auto& [code, expected] : statuses) {
    EXPECT_EQ(HttpStatusOf(absl::Status(code, "")), expected) << absl::StatusCodeToString(code);
  }
}

}  // namespace
}  // namespace dpar
