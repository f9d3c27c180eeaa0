#include "server/observe/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "core/error.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace dpar {
namespace {

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = spdlog::default_logger();
    auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(logger);
  }
  void TearDown() override { spdlog::set_default_logger(before_); }

  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(LogTest, ACallIsOneLine) {
  LogCall(
      {"DatasetService/GetDataset", "NOT_FOUND", "RESOURCE_NOT_FOUND", "tenants/a/tokens/t", absl::Microseconds(1500)});
  EXPECT_EQ(text_.str(),
            "info call method=DatasetService/GetDataset code=NOT_FOUND reason=RESOURCE_NOT_FOUND "
            "token=tenants/a/tokens/t ms=1.5\n");
}

TEST_F(LogTest, WhatACallDoesNotHaveIsADash) {
  LogCall({"ServerService/WhoAmI", "OK", "", "", absl::ZeroDuration()});
  EXPECT_EQ(text_.str(), "info call method=ServerService/WhoAmI code=OK reason=- token=- ms=0.0\n");
}

TEST_F(LogTest, TheMessageOfAnErrorWithoutAReasonIsWithheld) {
  LogFault("X/Y", absl::InternalError("label 7 of node 3"));
  EXPECT_EQ(text_.str(), "error fault method=X/Y code=INTERNAL message=(withheld: no reason)\n");
}

TEST_F(LogTest, TheMessageOfAFaultWithAReasonIsWritten) {
  LogFault("X/Y", MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a count has no single result"));
  EXPECT_EQ(text_.str(), "error fault method=X/Y code=DATA_LOSS message=a count has no single result\n");
}

TEST(LogLevelTest, KnownLevelsPassAndOthersSayWhatIsAllowed) {
  for (const char* level : {"trace", "debug", "info", "warn", "error"}) {
    EXPECT_TRUE(ValidateLogLevel(level).ok()) << level;
  }
  for (const char* level : {"", "INFO", "off", "loud"}) {
    const absl::Status status = ValidateLogLevel(level);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << level;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("trace, debug, info, warn or error")) << level;
  }
}

}  // namespace
}  // namespace dpar
