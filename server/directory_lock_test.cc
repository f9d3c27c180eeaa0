#include "server/directory_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

namespace dpar {
namespace {

class DirectoryLockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/lock_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  std::string root_;
};

TEST_F(DirectoryLockTest, ASecondHolderIsRefusedUntilTheFirstLetsGo) {
  {
    const absl::StatusOr<DirectoryLock> first = DirectoryLock::Acquire(root_ + "/lock");
    ASSERT_TRUE(first.ok()) << first.status();
    const absl::Status second = DirectoryLock::Acquire(root_ + "/lock").status();
    EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(second.message()), ::testing::HasSubstr("another dpard uses this data directory"));
  }
  EXPECT_TRUE(DirectoryLock::Acquire(root_ + "/lock").ok());
}

TEST_F(DirectoryLockTest, AMissingDirectoryIsReported) {
  EXPECT_EQ(DirectoryLock::Acquire(root_ + "/none/lock").status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace dpar
