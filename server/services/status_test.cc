#include "server/services/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "core/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/store/unavailable.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

google::rpc::Status Details(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

google::rpc::ErrorInfo Info(const grpc::Status& status) {
  google::rpc::ErrorInfo info;
  const google::rpc::Status details = Details(status);
  EXPECT_GE(details.details_size(), 1);
  if (details.details_size() > 0) {
    EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
    EXPECT_TRUE(details.details(0).UnpackTo(&info));
  }
  return info;
}

// The one detail of this type; nothing when there is none.
template <typename Detail>
std::optional<Detail> Find(const grpc::Status& status) {
  std::optional<Detail> found;
  const google::rpc::Status details = Details(status);
  for (const google::protobuf::Any& any : details.details()) {
    Detail detail;
    if (any.UnpackTo(&detail)) {
      EXPECT_FALSE(found.has_value());
      found = detail;
    }
  }
  return found;
}

TEST(ToGrpcStatusTest, OkIsOk) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).error_details().empty());
}

TEST(ToGrpcStatusTest, AnErrorKeepsItsCodeMessageReasonAndMetadata) {
  const grpc::Status status =
      ToGrpcStatus(MakeError(absl::StatusCode::kFailedPrecondition, v1::PRIVACY_BUDGET_EXHAUSTED, "too much",
                             {{"left_units", "7"}, {"order", "12"}}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "too much");
  EXPECT_EQ(Details(status).code(), static_cast<int>(grpc::StatusCode::FAILED_PRECONDITION));
  EXPECT_EQ(Details(status).message(), "too much");
  const google::rpc::ErrorInfo info = Info(status);
  EXPECT_EQ(info.domain(), "dpar.v1");
  EXPECT_EQ(info.reason(), "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_EQ(info.metadata_size(), 2);
  EXPECT_EQ(info.metadata().at("left_units"), "7");
}

TEST(ToGrpcStatusTest, EveryCodeKeepsItsMeaning) {
  const std::pair<absl::StatusCode, grpc::StatusCode> codes[] = {
      {absl::StatusCode::kInvalidArgument, grpc::StatusCode::INVALID_ARGUMENT},
      {absl::StatusCode::kNotFound, grpc::StatusCode::NOT_FOUND},
      {absl::StatusCode::kAlreadyExists, grpc::StatusCode::ALREADY_EXISTS},
      {absl::StatusCode::kPermissionDenied, grpc::StatusCode::PERMISSION_DENIED},
      {absl::StatusCode::kUnauthenticated, grpc::StatusCode::UNAUTHENTICATED},
      {absl::StatusCode::kResourceExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED},
      {absl::StatusCode::kOutOfRange, grpc::StatusCode::OUT_OF_RANGE},
      {absl::StatusCode::kUnimplemented, grpc::StatusCode::UNIMPLEMENTED},
      {absl::StatusCode::kUnavailable, grpc::StatusCode::UNAVAILABLE},
  };
  for (const auto& [from, to] : codes) {
    EXPECT_EQ(ToGrpcStatus(MakeError(from, v1::INVALID_FIELD, "m")).error_code(), to);
  }
}

TEST(ToGrpcStatusTest, AnErrorWithoutAReasonSaysNothingOfItself) {
  for (const absl::Status& error : {absl::InternalError("node 17"), absl::InvalidArgumentError("node 17"),
                                    absl::NotFoundError("node 17"), absl::UnknownError("node 17")}) {
    const grpc::Status status = ToGrpcStatus(error);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
    EXPECT_EQ(Info(status).reason(), "INTERNAL_FAULT");
    EXPECT_THAT(status.error_message() + status.error_details(), Not(HasSubstr("17")));
  }
}

TEST(ToGrpcStatusTest, AnUnavailableErrorWithoutAReasonMayBeRetried) {
  const grpc::Status status = ToGrpcStatus(absl::UnavailableError("disk 17"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Info(status).reason(), "SERVER_UNAVAILABLE");
  EXPECT_THAT(status.error_message(), Not(HasSubstr("17")));
}

TEST(ToGrpcStatusTest, FaultsWithAReasonKeepItButNotTheirMessage) {
  const grpc::Status internal =
      ToGrpcStatus(MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "SQLite: near 17"));
  EXPECT_EQ(internal.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(Info(internal).reason(), "INTERNAL_FAULT");
  EXPECT_THAT(internal.error_message(), Not(HasSubstr("17")));
  const grpc::Status loss =
      ToGrpcStatus(MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "row 17", {{"resource", "tenants/a"}}));
  EXPECT_EQ(loss.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Info(loss).reason(), "STORE_CORRUPT");
  EXPECT_EQ(Info(loss).metadata().at("resource"), "tenants/a");
  EXPECT_THAT(loss.error_message(), Not(HasSubstr("17")));
}

TEST(ToGrpcStatusTest, ABadFieldIsNamedAsAViolation) {
  const grpc::Status status = ToGrpcStatus(InvalidField("spec.epsilon", "epsilon must be positive"));
  EXPECT_EQ(Info(status).reason(), "INVALID_FIELD");
  const auto request = Find<google::rpc::BadRequest>(status);
  ASSERT_TRUE(request.has_value());
  ASSERT_EQ(request->field_violations_size(), 1);
  EXPECT_EQ(request->field_violations(0).field(), "spec.epsilon");
  EXPECT_EQ(request->field_violations(0).description(), "epsilon must be positive");
  EXPECT_FALSE(Find<google::rpc::RetryInfo>(status).has_value());
}

TEST(ToGrpcStatusTest, AFieldThatDoesNotFitTheDatasetIsAViolationToo) {
  const grpc::Status status = ToGrpcStatus(
      MakeError(absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD, "not here", {{"field", "non_private"}}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  ASSERT_TRUE(Find<google::rpc::BadRequest>(status).has_value());
  EXPECT_EQ(Find<google::rpc::BadRequest>(status)->field_violations(0).field(), "non_private");
}

TEST(ToGrpcStatusTest, ABadGraphNamesTheArrayAsAViolation) {
  const grpc::Status status = ToGrpcStatus(MakeError(absl::StatusCode::kInvalidArgument, v1::INVALID_GRAPH,
                                                     "labels is too short", {{"array", "labels"}, {"position", "3"}}));
  EXPECT_EQ(Info(status).metadata().at("position"), "3");
  const auto request = Find<google::rpc::BadRequest>(status);
  ASSERT_TRUE(request.has_value());
  ASSERT_EQ(request->field_violations_size(), 1);
  EXPECT_EQ(request->field_violations(0).field(), "labels");
  EXPECT_EQ(request->field_violations(0).description(), "labels is too short");
}

TEST(ToGrpcStatusTest, OtherErrorsHaveTheirReasonAlone) {
  const grpc::Status status = ToGrpcStatus(
      MakeError(absl::StatusCode::kUnimplemented, v1::NOT_IMPLEMENTED, "not yet", {{"field", "spec.method"}}));
  EXPECT_EQ(Details(status).details_size(), 1);
}

TEST(ToGrpcStatusTest, EveryUnavailableErrorSaysWhenToTryAgain) {
  for (const absl::Status& error :
       {absl::UnavailableError("disk 17"),
        MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, "the server is stopping")}) {
    const auto retry = Find<google::rpc::RetryInfo>(ToGrpcStatus(error));
    ASSERT_TRUE(retry.has_value());
    EXPECT_EQ(retry->retry_delay().seconds(), 1);
    EXPECT_EQ(retry->retry_delay().nanos(), 0);
  }
}

TEST(ToGrpcStatusTest, ACallThatWasCancelledIsCancelled) {
  EXPECT_EQ(ToGrpcStatus(absl::CancelledError("gone")).error_code(), grpc::StatusCode::CANCELLED);
}

TEST(ForCallerTest, WordsOfTheStoreStayInTheLog) {
  const absl::Status shown = ForCaller(StoreUnavailable("PostgreSQL: connection to server at \"10.0.3.7\" failed"));
  EXPECT_EQ(shown.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(shown.message(), "the server or its store is busy or stopping; try again");
  EXPECT_EQ(GetErrorInfo(shown)->reason(), "SERVER_UNAVAILABLE");
  EXPECT_TRUE(GetErrorInfo(shown)->metadata().empty());
}

}  // namespace
}  // namespace dpar
