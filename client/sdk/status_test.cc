#include "client/sdk/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "google/rpc/status.pb.h"

namespace dpar {
namespace {

grpc::Status WithDetails(grpc::StatusCode code, const google::protobuf::Message& detail) {
  google::rpc::Status details;
  details.set_code(code);
  details.add_details()->PackFrom(detail);
  return {code, "message", details.SerializeAsString()};
}

TEST(StatusTest, OkStaysOk) { EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok()); }

TEST(StatusTest, CodeMessageReasonAndMetadataComeBack) {
  google::rpc::ErrorInfo info;
  info.set_reason("PRIVACY_BUDGET_EXHAUSTED");
  info.set_domain("dpar.v1");
  (*info.mutable_metadata())["left_units"] = "17";
  const absl::Status status = FromGrpcStatus(WithDetails(grpc::StatusCode::FAILED_PRECONDITION, info));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "message");
  const auto decoded = GetErrorInfo(status);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->reason(), "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_EQ(decoded->domain(), "dpar.v1");
  EXPECT_EQ(decoded->metadata().at("left_units"), "17");
}

TEST(StatusTest, AStatusWithoutDetailsHasNoReason) {
  const absl::Status status = FromGrpcStatus({grpc::StatusCode::NOT_FOUND, "gone"});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(GetErrorInfo(status).has_value());
}

TEST(StatusTest, DetailsThatDoNotParseAreLeftOut) {
  const absl::Status status = FromGrpcStatus({grpc::StatusCode::INTERNAL, "broken", "\xff\xff\xff"});
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(GetErrorInfo(status).has_value());
}

TEST(StatusTest, OnlyTheConnectionsOwnFailuresAreTransportFailures) {
  EXPECT_TRUE(IsTransportFailure(absl::UnavailableError("down")));
  EXPECT_TRUE(IsTransportFailure(absl::CancelledError("cut by a stopping server")));
  EXPECT_TRUE(IsTransportFailure(absl::UnknownError("Stream removed")));
  EXPECT_FALSE(IsTransportFailure(absl::OkStatus()));
  EXPECT_FALSE(IsTransportFailure(absl::InternalError("fault")));
  EXPECT_FALSE(IsTransportFailure(absl::DeadlineExceededError("late")));
  EXPECT_FALSE(IsTransportFailure(MakeError(absl::StatusCode::kUnknown, v1::INTERNAL_FAULT, "an answer")));
}

TEST(StatusTest, DelaysDoubleFromTwoTenthsOfASecondToFive) {
  const absl::Status status = absl::UnavailableError("down");
  EXPECT_EQ(RetryDelay(status, 0, 1), absl::Milliseconds(200));
  EXPECT_EQ(RetryDelay(status, 1, 1), absl::Milliseconds(400));
  EXPECT_EQ(RetryDelay(status, 4, 1), absl::Milliseconds(3200));
  EXPECT_EQ(RetryDelay(status, 5, 1), absl::Seconds(5));
  EXPECT_EQ(RetryDelay(status, 1000, 1), absl::Seconds(5));
}

TEST(StatusTest, JitterTakesUpToHalfOfADelay) {
  const absl::Status status = absl::UnavailableError("down");
  EXPECT_EQ(RetryDelay(status, 0, 0), absl::Milliseconds(100));
  EXPECT_EQ(RetryDelay(status, 0, 0.5), absl::Milliseconds(150));
  EXPECT_EQ(RetryDelay(status, 1000, 0), absl::Milliseconds(2500));
}

TEST(StatusTest, TheServersOwnDelayIsKeptUpToAMinute) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(7);
  EXPECT_EQ(RetryDelay(FromGrpcStatus(WithDetails(grpc::StatusCode::UNAVAILABLE, info)), 0, 0), absl::Seconds(7));
  EXPECT_EQ(RetryDelay(FromGrpcStatus(WithDetails(grpc::StatusCode::UNAVAILABLE, info)), 0, 1), absl::Seconds(8.75));
  info.mutable_retry_delay()->set_seconds(86400);
  EXPECT_EQ(RetryDelay(FromGrpcStatus(WithDetails(grpc::StatusCode::UNAVAILABLE, info)), 0, 0), absl::Minutes(1));
}

}  // namespace
}  // namespace dpar
