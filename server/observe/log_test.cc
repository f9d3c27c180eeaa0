#include "server/observe/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "core/error.h"
#include "spdlog/spdlog.h"

namespace dpar {
namespace {

constexpr size_t kTimeLength = sizeof("2026-01-02T03:04:05.678Z") - 1;

class LogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = spdlog::default_logger();
    Use("text");
  }
  void TearDown() override { spdlog::set_default_logger(before_); }

  void Use(const char* format) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", MakeLogSink(format, text_)));
  }

  // What was logged, each line without its time.
  std::string Lines() {
    std::string lines;
    std::istringstream all(text_.str());
    for (std::string line; std::getline(all, line);) {
      EXPECT_THAT(line.substr(0, kTimeLength),
                  ::testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"));
      lines += line.substr(kTimeLength + 1) + "\n";
    }
    return lines;
  }

  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(LogTest, ACallIsOneLine) {
  LogCall({"DatasetService/GetDataset", "NOT_FOUND", "RESOURCE_NOT_FOUND", "tenants/a/tokens/t", "abc-1",
           absl::Microseconds(1500)});
  EXPECT_EQ(Lines(),
            "info call method=DatasetService/GetDataset code=NOT_FOUND reason=RESOURCE_NOT_FOUND "
            "token=tenants/a/tokens/t request_id=abc-1 ms=1.5\n");
}

TEST_F(LogTest, WhatACallDoesNotHaveIsADash) {
  LogCall({"ServerService/WhoAmI", "OK", "", "", "r", absl::ZeroDuration()});
  EXPECT_EQ(Lines(), "info call method=ServerService/WhoAmI code=OK reason=- token=- request_id=r ms=0.0\n");
}

TEST_F(LogTest, InJsonACallIsOneObjectWithItsFieldsAndWithoutThoseItDoesNotHave) {
  Use("json");
  LogCall({"ServerService/WhoAmI", "OK", "", "operator/tokens/t", "r.1_2-3", absl::Microseconds(1500)});
  const std::string text = text_.str();
  ASSERT_EQ(text.find('\n'), text.size() - 1);
  nlohmann::json line = nlohmann::json::parse(text);
  EXPECT_EQ(line["time"].get<std::string>().size(), kTimeLength);
  line.erase("time");
  EXPECT_EQ(line, nlohmann::json({{"level", "info"},
                                  {"message", "call"},
                                  {"method", "ServerService/WhoAmI"},
                                  {"code", "OK"},
                                  {"token", "operator/tokens/t"},
                                  {"request_id", "r.1_2-3"},
                                  {"ms", 1.5}}));
}

TEST_F(LogTest, AnyOtherMessageIsALineInBothFormats) {
  spdlog::warn("worker: {} was \"interrupted\"", "tenants/a/jobs/b");
  EXPECT_EQ(Lines(), "warning worker: tenants/a/jobs/b was \"interrupted\"\n");
  text_.str("");
  Use("json");
  spdlog::warn("worker: {} was \"interrupted\"", "tenants/a/jobs/b");
  EXPECT_EQ(nlohmann::json::parse(text_.str())["message"], "worker: tenants/a/jobs/b was \"interrupted\"");
}

TEST_F(LogTest, ACallIsNotWrittenAboveTheLevel) {
  spdlog::default_logger()->set_level(spdlog::level::warn);
  LogCall({"ServerService/WhoAmI", "OK", "", "", "r", absl::ZeroDuration()});
  spdlog::info("nor this");
  LogFault("X/Y", "r", absl::InternalError(""));
  EXPECT_EQ(Lines(), "error fault method=X/Y code=INTERNAL request_id=r cause=(withheld: no reason)\n");
}

TEST_F(LogTest, NoTextCanForgeALineOrAField) {
  const std::string hostile = "a\nb\x1fmethod\x1eX\r\x7f \xff\"";
  spdlog::info("{}", "first\nsecond");
  LogFault("X/Y", hostile, MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, hostile));
  EXPECT_EQ(Lines(),
            "info first?second\n"
            "error fault method=X/Y code=DATA_LOSS request_id=a?b?method?X?? \xff\" cause=a?b?method?X?? \xff\"\n");
  text_.str("");
  Use("json");
  LogFault("X/Y", "r", MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, hostile));
  const nlohmann::json line = nlohmann::json::parse(text_.str());
  EXPECT_EQ(line["method"], "X/Y");
  EXPECT_EQ(line["cause"], "a?b?method?X?? \xef\xbf\xbd\"");
}

TEST_F(LogTest, TheMessageOfAnErrorWithoutAReasonIsWithheld) {
  LogFault("X/Y", "r", absl::InternalError("label 7 of node 3"));
  EXPECT_EQ(Lines(), "error fault method=X/Y code=INTERNAL request_id=r cause=(withheld: no reason)\n");
}

TEST_F(LogTest, TheMessageOfAFaultWithAReasonIsWritten) {
  LogFault("X/Y", "r", MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a count has no single result"));
  EXPECT_EQ(Lines(), "error fault method=X/Y code=DATA_LOSS request_id=r cause=a count has no single result\n");
}

TEST(LogNamesTest, KnownLevelsPassAndOthersSayWhatIsAllowed) {
  for (const char* level : {"trace", "debug", "info", "warn", "error"}) {
    EXPECT_TRUE(ValidateLogLevel(level).ok()) << level;
  }
  for (const char* level : {"", "INFO", "off", "loud"}) {
    const absl::Status status = ValidateLogLevel(level);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << level;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("trace, debug, info, warn or error")) << level;
  }
}

TEST(LogNamesTest, KnownFormatsPassAndOthersSayWhatIsAllowed) {
  EXPECT_TRUE(ValidateLogFormat("text").ok());
  EXPECT_TRUE(ValidateLogFormat("json").ok());
  for (const char* format : {"", "JSON", "xml"}) {
    const absl::Status status = ValidateLogFormat(format);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << format;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("text or json")) << format;
  }
}

}  // namespace
}  // namespace dpar
