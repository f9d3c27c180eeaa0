#include "client/cli/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_join.h"
#include "core/error.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status BudgetRefusal() {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::PRIVACY_BUDGET_EXHAUSTED, "the budget is used up",
                   {{"asked_epsilon", "4"},
                    {"delta", "5e-05"},
                    {"asked_units", "500"},
                    {"posted_units", "600"},
                    {"reserved_units", "100"},
                    {"left_units", "300"},
                    {"cap_units", "1000"},
                    {"order", "12"},
                    {"largest_admissible_epsilon", "2.98765"}});
}

TEST(ErrorsTest, ExitCodes) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), 1);
  EXPECT_EQ(ExitCodeOf(MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND, "")), 1);
  EXPECT_EQ(ExitCodeOf(MakeError(absl::StatusCode::kInvalidArgument, v1::INVALID_GRAPH, "")), 1);
  EXPECT_EQ(ExitCodeOf(MakeError(absl::StatusCode::kFailedPrecondition, v1::JOB_ENDED, "")), 1);
  EXPECT_EQ(ExitCodeOf(MakeError(absl::StatusCode::kUnimplemented, v1::NOT_IMPLEMENTED, "")), 1);
  EXPECT_EQ(ExitCodeOf(InvalidField("epsilon", "")), 2);
  EXPECT_EQ(ExitCodeOf(BudgetRefusal()), 3);
  EXPECT_EQ(ExitCodeOf(MakeError(absl::StatusCode::kUnauthenticated, v1::TOKEN_INVALID, "")), 4);
  EXPECT_EQ(ExitCodeOf(MakeError(absl::StatusCode::kPermissionDenied, v1::ROLE_INSUFFICIENT, "")), 4);
  EXPECT_EQ(ExitCodeOf(absl::UnauthenticatedError("")), 4);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), 5);
}

TEST(ErrorsTest, ABudgetRefusalSaysAskedSpentReservedLeftAndTheLargestThatFits) {
  ErrorContext context;
  context.command = "train";
  context.dataset = "demo";
  const ErrorReport report = DescribeError(BudgetRefusal(), context);
  EXPECT_EQ(report.message, "the budget is used up");
  EXPECT_THAT(report.details,
              ElementsAre("asked     50.0% of the cap (epsilon 4 at delta 5e-05)", "spent     60.0%", "reserved  10.0%",
                          "left      30.0%", "largest   epsilon 2.987 would be admitted now"));
  EXPECT_EQ(report.hints.front(), "dpar train demo --epsilon 2.987");
}

TEST(ErrorsTest, WhenNothingFitsNoSmallerEpsilonIsSuggested) {
  const absl::Status status =
      MakeError(absl::StatusCode::kFailedPrecondition, v1::PRIVACY_BUDGET_EXHAUSTED, "", {{"cap_units", "1000"}});
  EXPECT_EQ(DescribeError(status, {"train", "", "demo", ""}).hints.front(),
            "dpar population demo --entries   (what was spent on what)");
}

TEST(ErrorsTest, AServerThatIsDownComesWithTheCommandThatStartsIt) {
  const ErrorReport report = DescribeError(absl::UnavailableError("connection refused"), {"jobs", "host:1", "", ""});
  EXPECT_EQ(report.message, "cannot reach the server at host:1: connection refused");
  EXPECT_THAT(report.hints.front(), HasSubstr("dpard --data-dir DIR --listen host:1"));
}

TEST(ErrorsTest, AWrongCertificateAuthorityIsNotMistakenForAServerThatIsDown) {
  const ErrorReport report =
      DescribeError(absl::UnavailableError("Ssl handshake failed: certificate verify failed"), {"jobs", "h:1", "", ""});
  EXPECT_THAT(report.hints.front(), HasSubstr("DPAR_CA"));
}

TEST(ErrorsTest, MissingTokenNamesTheVariables) {
  const ErrorReport report =
      DescribeError(MakeError(absl::StatusCode::kUnauthenticated, v1::TOKEN_MISSING, "none"), {"jobs", "", "", ""});
  EXPECT_THAT(report.hints[1], HasSubstr("DPAR_TOKEN_FILE"));
  EXPECT_THAT(report.hints[1], HasSubstr("DPAR_TOKEN="));
}

TEST(ErrorsTest, EveryReasonHasAHint) {
  for (int value = v1::ErrorReason_MIN; value <= v1::ErrorReason_MAX; ++value) {
    if (!v1::ErrorReason_IsValid(value)) {
      continue;
    }
    const absl::Status status = MakeError(absl::StatusCode::kInternal, static_cast<v1::ErrorReason>(value), "message");
    const ErrorReport report = DescribeError(status, {"train", "h:1", "demo", "job"});
    ASSERT_FALSE(report.hints.empty());
    EXPECT_FALSE(report.hints.front().empty()) << value;
  }
}

TEST(ErrorsTest, TheJsonErrorCarriesReasonAndMetadata) {
  const auto json = ErrorJson(BudgetRefusal(), {"train", "", "demo", ""});
  EXPECT_EQ(json["code"], "FAILED_PRECONDITION");
  EXPECT_EQ(json["reason"], "PRIVACY_BUDGET_EXHAUSTED");
  EXPECT_EQ(json["metadata"]["left_units"], "300");
  EXPECT_EQ(json["hint"], "dpar train demo --epsilon 2.987");
}

TEST(ErrorsTest, ALocalFailureIsNeitherAnUnavailableServerNorWrongUsage) {
  EXPECT_EQ(ExitCodeOf(AsLocal(InvalidField("model", "no weights"))), kFailed);
  EXPECT_EQ(AsLocal(absl::UnavailableError("disk")).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(AsLocal(absl::NotFoundError("file")).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(AsLocal(absl::OkStatus()).ok());
}

TEST(ErrorsTest, InputAndOutputFilesAreCheckedBeforeTheWork) {
  const std::string directory = ::testing::TempDir();
  const std::string file = directory + "/errors_test_file";
  std::ofstream(file) << "x";
  EXPECT_TRUE(CheckInputFile("file", file).ok());
  EXPECT_THAT(std::string(CheckInputFile("file", file + "-missing").message()), HasSubstr("No such file"));
  EXPECT_THAT(std::string(CheckInputFile("file", directory).message()), HasSubstr("it is a directory"));
  EXPECT_EQ(ExitCodeOf(CheckInputFile("file", "/dev/null")), kUsage);
  EXPECT_TRUE(CheckOutputFile("output", file).ok());
  EXPECT_TRUE(CheckOutputFile("output", "relative-name").ok());
  EXPECT_EQ(ExitCodeOf(CheckOutputFile("output", directory)), kUsage);
  EXPECT_EQ(ExitCodeOf(CheckOutputFile("output", "")), kUsage);
  EXPECT_THAT(std::string(CheckOutputFile("output", file + "/x").message()), HasSubstr("is not a directory"));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace dpar
