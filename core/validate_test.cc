#include "core/validate.h"

#include <limits>
#include <string>

#include "core/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

void ExpectRefused(const absl::Status& status, const std::string& field, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "INVALID_FIELD");
  EXPECT_EQ(info->metadata().at("field"), field);
}

TEST(ValidateRangeTest, AcceptsBothEnds) {
  EXPECT_TRUE(ValidateRange("epsilon", 0.001, 0.001, 100.0).ok());
  EXPECT_TRUE(ValidateRange("epsilon", 100.0, 0.001, 100.0).ok());
  EXPECT_TRUE(ValidateRange("count", int64_t{1}, 1, 5).ok());
  EXPECT_TRUE(ValidateRange("count", int64_t{5}, 1, 5).ok());
}

TEST(ValidateRangeTest, RefusesOutsideAndNanSayingWhatIsAllowed) {
  for (const double value : {0.0009, 100.5, -1.0, kNan, kInf, -kInf}) {
    ExpectRefused(ValidateRange("epsilon", value, 0.001, 100.0), "epsilon", "epsilon must be from 0.001 to 100, got");
  }
  for (const int64_t value : {int64_t{0}, int64_t{6}, std::numeric_limits<int64_t>::min()}) {
    ExpectRefused(ValidateRange("count", value, 1, 5), "count", "count must be from 1 to 5, got");
  }
}

TEST(ValidatePositiveTest, AcceptsFiniteNumbersAboveZero) {
  EXPECT_TRUE(ValidatePositive("mu", 5e-324).ok());
  EXPECT_TRUE(ValidatePositive("mu", std::numeric_limits<double>::max()).ok());
}

TEST(ValidatePositiveTest, RefusesTheRest) {
  for (const double value : {0.0, -0.0, -1.0, kNan, kInf, -kInf}) {
    ExpectRefused(ValidatePositive("mu", value), "mu", "mu must be finite and above 0");
  }
}

TEST(ValidatePositiveTest, RefusesWhatIsAboveALimit) {
  EXPECT_TRUE(ValidatePositive("epsilon", 5, 5).ok());
  for (const double value : {0.0, -1.0, 5.1, kNan, kInf}) {
    ExpectRefused(ValidatePositive("epsilon", value, 5), "epsilon", "epsilon must be above 0 and at most 5, got");
  }
}

TEST(ValidateProbabilityTest, AcceptsTheOpenInterval) {
  EXPECT_TRUE(ValidateProbability("delta", 5e-324).ok());
  EXPECT_TRUE(ValidateProbability("delta", 1 - 1e-16).ok());
}

TEST(ValidateProbabilityTest, RefusesItsEndsAndTheRest) {
  for (const double value : {0.0, 1.0, -0.1, 1.1, kNan, kInf}) {
    ExpectRefused(ValidateProbability("delta", value), "delta", "delta must be above 0 and below 1");
  }
}

TEST(ValidateIdTest, AcceptsLettersDigitsAndInnerHyphens) {
  for (const std::string& id : {std::string("a"), std::string("7"), std::string("cora-ml-2"), std::string(63, 'x')}) {
    EXPECT_TRUE(ValidateId("dataset_id", id).ok()) << id;
  }
}

TEST(ValidateIdTest, RefusesTheRest) {
  for (const std::string& id :
       {std::string(), std::string(64, 'x'), std::string("-a"), std::string("a-"), std::string("A"), std::string("a_b"),
        std::string("a/b"), std::string(".."), std::string("a b"), std::string("a\0b", 3), std::string("\xc3\xa4")}) {
    ExpectRefused(ValidateId("dataset_id", id), "dataset_id", "dataset_id must be 1 to 63 characters");
  }
}

TEST(ValidateRequestIdTest, AcceptsPrintableCharacters) {
  for (const std::string& id : {std::string("!"), std::string("~"), std::string("Req/1:a_b"), std::string(128, 'x')}) {
    EXPECT_TRUE(ValidateRequestId(id).ok()) << id;
  }
}

TEST(ValidateRequestIdTest, RefusesTheRest) {
  for (const std::string& id : {std::string(), std::string(129, 'x'), std::string("a b"), std::string("a\n"),
                                std::string("\x7f"), std::string("a\0b", 3), std::string("\xc3\xa4")}) {
    ExpectRefused(ValidateRequestId(id), "request_id", "request_id must be 1 to 128 printable characters");
  }
}

}  // namespace
}  // namespace dpar
