#include "core/error.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "core/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

TEST(MakeErrorTest, CarriesCodeMessageReasonDomainAndMetadata) {
  const absl::Status status = MakeError(absl::StatusCode::kResourceExhausted, v1::LIMIT_EXCEEDED, "too many nodes",
                                        {{"limit", "max_nodes"}, {"maximum", "1000"}});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "too many nodes");
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "LIMIT_EXCEEDED");
  EXPECT_EQ(info->domain(), "dpar.v1");
  EXPECT_EQ(info->metadata().size(), 2);
  EXPECT_EQ(info->metadata().at("limit"), "max_nodes");
  EXPECT_EQ(info->metadata().at("maximum"), "1000");
}

TEST(MakeErrorTest, NeedsNoMetadata) {
  const auto info = GetErrorInfo(MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "a fault"));
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "INTERNAL_FAULT");
  EXPECT_TRUE(info->metadata().empty());
}

TEST(InvalidFieldTest, IsInvalidArgumentNamingTheField) {
  const absl::Status status = InvalidField("spec.epsilon", "must be above 0");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "must be above 0");
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "INVALID_FIELD");
  EXPECT_EQ(info->metadata().at("field"), "spec.epsilon");
}

TEST(GetErrorInfoTest, FindsNothingInErrorsMadeElsewhere) {
  EXPECT_FALSE(GetErrorInfo(absl::OkStatus()).has_value());
  EXPECT_FALSE(GetErrorInfo(absl::NotFoundError("no file")).has_value());
}

TEST(GetErrorInfoTest, FindsNothingInAPayloadThatDoesNotParse) {
  absl::Status status = absl::InternalError("a fault");
  status.SetPayload(kErrorInfoTypeUrl, absl::Cord("\xff\xff\xff"));
  EXPECT_FALSE(GetErrorInfo(status).has_value());
}

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) {
    return InvalidField("value", "must be even");
  }
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  DPAR_ASSIGN_OR_RETURN(const int half, Half(value));
  DPAR_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

absl::Status CheckQuarter(int value) {
  DPAR_RETURN_IF_ERROR(Quarter(value).status());
  return absl::OkStatus();
}

TEST(StatusMacrosTest, AssignTheValueOrReturnTheErrorUnchanged) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_TRUE(CheckQuarter(12).ok());
  for (const int value : {3, 6}) {
    const absl::Status status = CheckQuarter(value);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "value");
  }
}

}  // namespace
}  // namespace dpar
