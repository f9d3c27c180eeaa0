#include "core/write_behind.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

namespace dpar {
namespace {

class WriteBehindTest : public ::testing::TestWithParam<WriteBehind::Cache> {};

INSTANTIATE_TEST_SUITE_P(Caches, WriteBehindTest,
                         ::testing::Values(WriteBehind::Cache::kKeep, WriteBehind::Cache::kForget));

TEST_P(WriteBehindTest, LeavesTheBytesAsTheyWereWritten) {
  std::string path = ::testing::TempDir() + "/write_behind_XXXXXX";
  const int descriptor = mkstemp(path.data());
  ASSERT_GE(descriptor, 0);
  unlink(path.c_str());
  WriteBehind to_disk(descriptor, 0, GetParam());
  const std::string chunk(1 << 20, 'x');
  int64_t end = 0;
  for (int i = 0; i < 33; ++i) {
    ASSERT_EQ(write(descriptor, chunk.data(), chunk.size()), static_cast<ssize_t>(chunk.size()));
    end += static_cast<int64_t>(chunk.size());
    EXPECT_TRUE(to_disk.Reached(end)) << i;
  }
  EXPECT_EQ(lseek(descriptor, 0, SEEK_END), end);
  std::string back(chunk.size(), '\0');
  for (int64_t at = 0; at < end; at += 1 << 20) {
    ASSERT_EQ(pread(descriptor, back.data(), back.size(), at), static_cast<ssize_t>(back.size()));
    EXPECT_EQ(back, chunk) << at;
  }
  close(descriptor);
}

TEST(WriteBehind, AFileThatCannotBeHurriedIsNoFault) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  WriteBehind to_disk(ends[1], 0, WriteBehind::Cache::kForget);
  EXPECT_TRUE(to_disk.Reached(WriteBehind::kWindowBytes));
  EXPECT_TRUE(to_disk.Reached(3 * WriteBehind::kWindowBytes));
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace dpar
