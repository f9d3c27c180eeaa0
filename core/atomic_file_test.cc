#include "core/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/error.h"

namespace dpar {
namespace {

class AtomicFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "/atomic_file_test";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] int64_t FileCount() const {
    return std::distance(std::filesystem::directory_iterator(directory_), std::filesystem::directory_iterator());
  }

  std::string directory_;
};

TEST_F(AtomicFileTest, TheFileAppearsWithCommitOnly) {
  const std::string path = directory_ + "/file";
  auto file = AtomicFile::Create(path, 0600);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Append("abc").ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(file->Append("def").ok());
  EXPECT_EQ(file->size(), 6);
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(Read(path), "abcdef");
  EXPECT_EQ(FileCount(), 1);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(AtomicFileTest, WithoutCommitNothingIsLeftAndTheOldFileStays) {
  const std::string path = directory_ + "/file";
  ASSERT_TRUE(WriteFileAtomically(path, "old", 0600).ok());
  {
    auto file = AtomicFile::Create(path, 0600);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Append("new").ok());
  }
  EXPECT_EQ(Read(path), "old");
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(AtomicFileTest, WhatSomebodyElsePutInTheWayIsNotWrittenTo) {
  const std::string path = directory_ + "/file";
  const std::string trap = absl::StrCat(path, ".partial-", ::getpid(), "-0");
  const std::string link = absl::StrCat(path, ".partial-", ::getpid(), "-1");
  std::ofstream(trap) << "theirs";
  std::filesystem::create_symlink(trap, link);
  ASSERT_TRUE(WriteFileAtomically(path, "secret", 0600).ok());
  EXPECT_EQ(Read(path), "secret");
  EXPECT_EQ(Read(trap), "theirs");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(FileCount(), 3);
}

TEST_F(AtomicFileTest, ADirectoryAndAMissingParentAreRefused) {
  for (const std::string& path : {directory_, directory_ + "/missing/file"}) {
    const absl::Status status = AtomicFile::Create(path, 0600).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
    ASSERT_TRUE(GetErrorInfo(status).has_value());
    EXPECT_EQ(GetErrorInfo(status)->reason(), "INVALID_FIELD");
  }
}

}  // namespace
}  // namespace dpar
