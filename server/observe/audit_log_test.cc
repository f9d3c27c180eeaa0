#include "server/observe/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "server/store/testing/temporary_store.h"

namespace dpar {
namespace {

class AuditLogTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return store_.directory().AuditLog(); }

  static std::string ReadFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }
  static AuditRecord Record(absl::string_view resource) {
    return {absl::FromUnixMicros(1'800'000'000'123'456),
            "r-1",
            "operator/tokens/t",
            "S/M",
            resource,
            "",
            "OK",
            "",
            "ipv4:1.2.3.4:5"};
  }

  testing::TemporaryStore store_;
};

TEST_F(AuditLogTest, ACallIsOneObjectOnOneLine) {
  const std::unique_ptr<AuditLog> log = *AuditLog::Open(path());
  ASSERT_TRUE(log->Write(Record("tenants/a")).ok());
  AuditRecord refused = Record("tenants/a/datasets/d");
  refused.actor = "";
  refused.note = "declared public";
  refused.code = "UNAUTHENTICATED";
  refused.reason = "TOKEN_INVALID";
  ASSERT_TRUE(log->Write(refused).ok());
  EXPECT_EQ(
      ReadFile(path()),
      "{\"time\":\"2027-01-15T08:00:00.123456Z\",\"request_id\":\"r-1\",\"actor\":\"operator/tokens/t\","
      "\"action\":\"S/M\",\"resource\":\"tenants/a\",\"code\":\"OK\",\"reason\":\"\",\"peer\":\"ipv4:1.2.3.4:5\"}\n"
      "{\"time\":\"2027-01-15T08:00:00.123456Z\",\"request_id\":\"r-1\",\"actor\":\"\","
      "\"action\":\"S/M\",\"resource\":\"tenants/a/datasets/d\",\"code\":\"UNAUTHENTICATED\","
      "\"reason\":\"TOKEN_INVALID\",\"peer\":\"ipv4:1.2.3.4:5\",\"note\":\"declared public\"}\n");
}

TEST_F(AuditLogTest, WhatIsNoResourceNameIsNotWritten) {
  const std::unique_ptr<AuditLog> log = *AuditLog::Open(path());
  for (const std::string& name :
       {std::string("tenants/A"), std::string("a\nb"), std::string("label 7"), std::string(257, 'a')}) {
    std::filesystem::resize_file(path(), 0);
    ASSERT_TRUE(log->Write(Record(name)).ok());
    EXPECT_EQ(nlohmann::json::parse(ReadFile(path()))["resource"], "(malformed)") << name;
  }
}

TEST_F(AuditLogTest, TheFileIsItsOwnersOnlyAndIsAppendedTo) {
  { ASSERT_TRUE((*AuditLog::Open(path()))->Write(Record("tenants/a")).ok()); }
  struct stat status = {};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  const std::string before = ReadFile(path());
  ASSERT_TRUE((*AuditLog::Open(path()))->Write(Record("tenants/a")).ok());
  EXPECT_EQ(ReadFile(path()), before + before);
}

TEST_F(AuditLogTest, AFileThatWasMovedAwayIsFollowedUntilItIsOpenedAgain) {
  const std::unique_ptr<AuditLog> log = *AuditLog::Open(path());
  std::filesystem::rename(path(), path() + ".1");
  ASSERT_TRUE(log->Write(Record("tenants/a")).ok());
  EXPECT_FALSE(std::filesystem::exists(path()));
  ASSERT_TRUE(log->Reopen().ok());
  ASSERT_TRUE(log->Write(Record("tenants/b")).ok());
  EXPECT_THAT(ReadFile(path() + ".1"), ::testing::HasSubstr("tenants/a"));
  EXPECT_THAT(ReadFile(path()), ::testing::HasSubstr("tenants/b"));
}

TEST_F(AuditLogTest, APathThatCannotBeOpenedIsAnErrorAndTheOldFileStaysInUse) {
  EXPECT_EQ(AuditLog::Open(path() + "/x").status().code(), absl::StatusCode::kUnavailable);
  const std::unique_ptr<AuditLog> log = *AuditLog::Open(path());
  std::filesystem::rename(path(), path() + ".1");
  std::filesystem::create_directory(path());
  EXPECT_EQ(log->Reopen().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(log->Write(Record("tenants/a")).ok());
  EXPECT_THAT(ReadFile(path() + ".1"), ::testing::HasSubstr("tenants/a"));
}

TEST_F(AuditLogTest, ALineThatWasCutShortIsAnErrorAndTheNextOneStandsAlone) {
  const std::unique_ptr<AuditLog> log = *AuditLog::Open(path());
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 40;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status cut = log->Write(Record("tenants/a"));
  const absl::Status none = log->Write(Record("tenants/a"));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, previous);
  EXPECT_EQ(cut.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(none.code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(log->Write(Record("tenants/b")).ok());
  std::istringstream lines(ReadFile(path()));
  std::string first;
  std::string second;
  ASSERT_TRUE(std::getline(lines, first));
  ASSERT_TRUE(std::getline(lines, second));
  EXPECT_EQ(first.size(), 40U);
  EXPECT_EQ(nlohmann::json::parse(second)["resource"], "tenants/b");
}

TEST_F(AuditLogTest, LinesOfManyThreadsAndOpenFilesDoNotMix) {
  constexpr int kThreads = 8;
  constexpr int kLines = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const std::unique_ptr<AuditLog> log = *AuditLog::Open(path());
      for (int i = 0; i < kLines; ++i) {
        EXPECT_TRUE(log->Write(Record("tenants/a")).ok());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::istringstream lines(ReadFile(path()));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
  EXPECT_EQ(count, kThreads * kLines);
}

}  // namespace
}  // namespace dpar
