#include "server/services/download.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "core/error.h"
#include "server/limits.h"

namespace dpar {
namespace {

class DownloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/download_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  ModelFile Write(size_t size) {
    bytes_.resize(size);
    for (size_t i = 0; i < size; ++i) {
      bytes_[i] = static_cast<char>(i * 31 % 251);
    }
    const std::string path = root_ + "/model.npz";
    std::ofstream(path, std::ios::binary) << bytes_;
    return {path, static_cast<int64_t>(size), "digest"};
  }
  absl::Status Run(const ModelFile& file, int64_t offset) {
    messages_.clear();
    return Download(file, "tenants/a/jobs/j", offset, [&](const v1::DownloadModelResponse& message) {
      messages_.push_back(message);
      return true;
    });
  }
  std::string Received() const {
    std::string all;
    for (const v1::DownloadModelResponse& message : messages_) {
      all += message.data();
    }
    return all;
  }

  std::string root_;
  std::string bytes_;
  std::vector<v1::DownloadModelResponse> messages_;
};

TEST_F(DownloadTest, AFileArrivesInPiecesWithSizeAndDigestOnTheFirst) {
  const size_t size = 2 * static_cast<size_t>(kDownloadChunkBytes) + 5;
  ASSERT_TRUE(Run(Write(size), 0).ok());
  ASSERT_EQ(messages_.size(), 3U);
  EXPECT_EQ(messages_[0].size_bytes(), static_cast<int64_t>(size));
  EXPECT_EQ(messages_[0].sha256(), "digest");
  EXPECT_EQ(messages_[0].data().size(), static_cast<size_t>(kDownloadChunkBytes));
  EXPECT_EQ(messages_[1].size_bytes(), 0);
  EXPECT_EQ(messages_[1].sha256(), "");
  EXPECT_EQ(messages_[2].data().size(), 5U);
  EXPECT_EQ(Received(), bytes_);
}

TEST_F(DownloadTest, ADownloadGoesOnFromAnOffset) {
  ASSERT_TRUE(Run(Write(1000), 990).ok());
  ASSERT_EQ(messages_.size(), 1U);
  EXPECT_EQ(messages_[0].size_bytes(), 1000);
  EXPECT_EQ(Received(), bytes_.substr(990));
}

TEST_F(DownloadTest, AtTheEndSizeAndDigestStillCome) {
  ASSERT_TRUE(Run(Write(10), 10).ok());
  ASSERT_EQ(messages_.size(), 1U);
  EXPECT_EQ(messages_[0].size_bytes(), 10);
  EXPECT_EQ(messages_[0].data(), "");
}

TEST_F(DownloadTest, AnOffsetOutsideTheFileIsRefused) {
  const ModelFile file = Write(10);
  for (const int64_t offset : {int64_t{-1}, int64_t{11}}) {
    const absl::Status status = Run(file, offset);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "offset");
    EXPECT_TRUE(messages_.empty());
  }
}

TEST_F(DownloadTest, AFileThatIsNotAsTheStoreSaysIsNotSent) {
  ModelFile file = Write(10);
  file.size = 9;
  EXPECT_EQ(Run(file, 0).code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(messages_.empty());
  std::filesystem::remove(file.path);
  const absl::Status missing = Run(file, 0);
  EXPECT_EQ(missing.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(GetErrorInfo(missing)->reason(), "STORE_CORRUPT");
  EXPECT_EQ(GetErrorInfo(missing)->metadata().at("resource"), "tenants/a/jobs/j");
}

TEST_F(DownloadTest, ACallerThatIsGoneEndsIt) {
  const ModelFile file = Write(3 * static_cast<size_t>(kDownloadChunkBytes));
  int sent = 0;
  const absl::Status status = Download(file, "r", 0, [&](const v1::DownloadModelResponse&) { return ++sent < 2; });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(sent, 2);
}

}  // namespace
}  // namespace dpar
