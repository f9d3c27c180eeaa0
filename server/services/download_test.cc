#include "server/services/download.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
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
    return {path, static_cast<int64_t>(size), Sha256Hex(bytes_)};
  }
  SendChunk Collect() {
    messages_.clear();
    return [this](const v1::DownloadModelResponse& message) {
      messages_.push_back(message);
      return true;
    };
  }
  absl::Status Run(const ModelFile& file, int64_t offset, int64_t length = 0) {
    return Download(file, "tenants/a/jobs/j", {offset, length}, Collect());
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

TEST_F(DownloadTest, AModelOfItsSizeWithAnotherDigestIsNotSent) {
  const ModelFile file = Write(1000);
  bytes_[500] = static_cast<char>(bytes_[500] ^ 1);
  std::ofstream(file.path, std::ios::binary) << bytes_;
  const absl::Status status = Run(file, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(GetErrorInfo(status)->reason(), "STORE_CORRUPT");
  EXPECT_TRUE(messages_.empty());
}

TEST_F(DownloadTest, AFileArrivesInPiecesWithSizeAndDigestOnTheFirst) {
  const size_t size = 2 * static_cast<size_t>(kDownloadChunkBytes) + 5;
  ASSERT_TRUE(Run(Write(size), 0).ok());
  ASSERT_EQ(messages_.size(), 3U);
  EXPECT_EQ(messages_[0].size_bytes(), static_cast<int64_t>(size));
  EXPECT_EQ(messages_[0].sha256(), Sha256Hex(bytes_));
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

TEST_F(DownloadTest, ALengthEndsTheRangeAndTheFileEndsTheLength) {
  const ModelFile file = Write(1000);
  ASSERT_TRUE(Run(file, 100, 50).ok());
  EXPECT_EQ(Received(), bytes_.substr(100, 50));
  EXPECT_EQ(messages_[0].size_bytes(), 1000);
  EXPECT_EQ(messages_[0].sha256(), Sha256Hex(bytes_));
  for (const int64_t length : {int64_t{10}, int64_t{11}, std::numeric_limits<int64_t>::max()}) {
    ASSERT_TRUE(Run(file, 990, length).ok());
    EXPECT_EQ(Received(), bytes_.substr(990));
  }
  ASSERT_TRUE(Run(file, 1000, 5).ok());
  ASSERT_EQ(messages_.size(), 1U);
  EXPECT_EQ(messages_[0].size_bytes(), 1000);
  EXPECT_EQ(Received(), "");
}

TEST_F(DownloadTest, ANegativeLengthIsRefused) {
  for (const int64_t length : {int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    const absl::Status status = Run(Write(10), 0, length);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(GetErrorInfo(status)->reason(), "INVALID_FIELD");
    EXPECT_EQ(GetErrorInfo(status)->metadata().at("field"), "length");
    EXPECT_TRUE(messages_.empty());
  }
}

TEST_F(DownloadTest, RangesPutTogetherAreTheFile) {
  testing::FixedRandom random(20);
  for (int round = 0; round < 50; ++round) {
    const auto size = static_cast<size_t>(UniformBelow(random, 3 * static_cast<uint64_t>(kDownloadChunkBytes)));
    const ModelFile file = Write(size);
    std::string whole;
    while (whole.size() < size) {
      const uint64_t left = size - whole.size();
      const auto length = static_cast<int64_t>(1 + UniformBelow(random, left));
      ASSERT_TRUE(Run(file, static_cast<int64_t>(whole.size()), length).ok());
      ASSERT_EQ(static_cast<int64_t>(Received().size()), length);
      ASSERT_EQ(messages_[0].size_bytes(), static_cast<int64_t>(size));
      whole += Received();
    }
    ASSERT_EQ(whole, bytes_);
  }
}

TEST_F(DownloadTest, BytesAtHandAreSentLikeAFile) {
  const std::string bytes = "an envelope";
  ASSERT_TRUE(DownloadBytes(bytes, "r", {3, 4}, Collect()).ok());
  ASSERT_EQ(messages_.size(), 1U);
  EXPECT_EQ(messages_[0].size_bytes(), 11);
  EXPECT_EQ(messages_[0].sha256(), Sha256Hex(bytes));
  EXPECT_EQ(Received(), "enve");
  EXPECT_EQ(DownloadBytes(bytes, "r", {12, 0}, Collect()).code(), absl::StatusCode::kInvalidArgument);
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
  const absl::Status status = Download(file, "r", {}, [&](const v1::DownloadModelResponse&) { return ++sent < 2; });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(sent, 2);
}

}  // namespace
}  // namespace dpar
