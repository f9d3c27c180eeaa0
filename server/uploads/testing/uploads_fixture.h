// A store with two tenants, and uploads into a directory of its own.
#ifndef DPAR_SERVER_UPLOADS_TESTING_UPLOADS_FIXTURE_H_
#define DPAR_SERVER_UPLOADS_TESTING_UPLOADS_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/graph/graph_file.h"
#include "core/random/testing/fixed_random.h"
#include "server/files.h"
#include "server/store/read_from.h"
#include "server/store/testing/temporary_store.h"
#include "server/uploads/uploads.h"

namespace dpar::testing {

inline const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

inline void ExpectError(const absl::Status& status, absl::StatusCode code, const std::string& reason) {
  EXPECT_EQ(status.code(), code) << status;
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value()) << status;
  EXPECT_EQ(info->reason(), reason);
}

inline std::string Metadata(const absl::Status& status, const std::string& key) {
  const auto info = GetErrorInfo(status);
  return info.has_value() && info->metadata().contains(key) ? info->metadata().at(key) : "(none)";
}

// Three nodes in a path, two features, two classes.
inline Graph SmallGraph() {
  Graph graph;
  graph.sizes = {3, 2, 2};
  graph.edge_offsets = {0, 1, 3, 4};
  graph.neighbours = {1, 0, 2, 1};
  graph.features.offsets = {0, 1, 2, 3};
  graph.features.columns = {0, 1, 0};
  graph.features.values = {1.0F, 2.0F, 0.5F};
  graph.labels = {0, 1, -1};
  return graph;
}

class UploadsTest : public ::testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/uploads_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    directory_ = std::make_unique<DataDirectory>(root_ + "/data");
    marks_ = std::make_unique<MarkDirectory>(root_ + "/witness");
    ASSERT_TRUE(marks_->Make().ok());
    ASSERT_TRUE(MakeParentDirectory(directory_->Database()).ok());
    for (const std::string tenant : {"acme", "other"}) {
      ASSERT_TRUE(
          database_->Write([&](Transaction& t) { return InsertTenant(t, tenant, "key of " + tenant, kNow); }).ok());
    }
    limits_.max_upload_bytes = 1 << 20;
    limits_.max_open_uploads = 3;
    limits_.max_nodes = 1000;
    limits_.max_chunk_bytes = 4096;
    Restart();
    bytes_ = BytesOf(SmallGraph());
  }
  void TearDown() override {
    uploads_.reset();
    std::filesystem::remove_all(root_);
  }

  void Restart() { uploads_ = std::make_unique<Uploads>(*database_, *directory_, *marks_, limits_); }

  std::string BytesOf(const Graph& graph) const {
    const std::string path = root_ + "/graph.npz";
    EXPECT_TRUE(WriteGraphFile(path, graph).ok());
    return ReadWholeFile(path).value();
  }
  v1::OpenUploadRequest Declaration(const std::string& dataset, const std::string& request_id) const {
    v1::OpenUploadRequest request;
    request.set_parent("tenants/acme");
    request.set_request_id(request_id);
    request.set_dataset_id(dataset);
    request.set_size_bytes(static_cast<int64_t>(bytes_.size()));
    request.set_node_count(3);
    request.set_feature_count(2);
    request.set_class_count(2);
    return request;
  }
  absl::StatusOr<v1::Upload> Open(const v1::OpenUploadRequest& request) {
    return uploads_->Open(request, kNow, random_);
  }
  absl::StatusOr<int64_t> Write(const std::string& name, int64_t offset, const std::string& data) {
    auto writer = uploads_->StartWriting(name, offset);
    if (!writer.ok()) {
      return writer.status();
    }
    const absl::Status status = (*writer)->Append(data);
    return status.ok() ? (*writer)->Commit() : status;
  }
  absl::StatusOr<v1::FinishUploadResponse> Finish(const std::string& name, const std::string& sha256,
                                                  const std::string& request_id) {
    v1::FinishUploadRequest request;
    request.set_name(name);
    request.set_sha256(sha256);
    request.set_request_id(request_id);
    return uploads_->Finish(request, {"tenants/acme/tokens/t", kNow}, random_, wanted_);
  }
  // Opens, sends `bytes` and finishes.
  absl::StatusOr<v1::FinishUploadResponse> Upload(v1::OpenUploadRequest request, const std::string& bytes) {
    request.set_size_bytes(static_cast<int64_t>(bytes.size()));
    const absl::StatusOr<v1::Upload> upload = Open(request);
    EXPECT_TRUE(upload.ok()) << upload.status();
    last_ = upload->name();
    EXPECT_TRUE(Write(last_, 0, bytes).ok());
    return Finish(last_, Sha256Hex(bytes), "finish-" + request.request_id());
  }
  absl::StatusOr<v1::FinishUploadResponse> Upload(const std::string& dataset) {
    return Upload(Declaration(dataset, "open-" + dataset), bytes_);
  }
  absl::Status DatasetStatus(const std::string& id) {
    return ReadFrom(*database_, [&](Transaction& t) { return GetDataset(t, "tenants/acme/datasets/" + id); }).status();
  }
  std::string BudgetOf(const std::string& id) {
    return ReadFrom(*database_, [&](Transaction& t) { return GetDataset(t, "tenants/acme/datasets/" + id); })
        .value()
        .population();
  }
  std::vector<std::string> FilesBelow(const std::string& kind) const {
    std::vector<std::string> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_->root() + "/" + kind, error)) {
      if (entry.is_regular_file()) {
        files.push_back(entry.path().string());
      }
    }
    return files;
  }
  void ExpectRefusedWithoutTrace(const std::string& dataset) {
    const v1::Upload upload = uploads_->Get(last_).value();
    EXPECT_EQ(upload.state(), v1::Upload::REFUSED);
    EXPECT_EQ(upload.committed_offset(), 0);
    EXPECT_EQ(DatasetStatus(dataset).code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(FilesBelow("uploads"), ::testing::IsEmpty());
    EXPECT_THAT(FilesBelow("datasets"), ::testing::IsEmpty());
  }

  FixedRandom random_{13};
  std::function<bool()> wanted_ = [] { return true; };
  std::string root_;
  std::string bytes_;
  std::string last_;
  Limits limits_;
  std::unique_ptr<DataDirectory> directory_;
  std::unique_ptr<MarkDirectory> marks_;
  TemporaryStore store_{GetParam()};
  Database* const database_ = &store_.database();
  std::unique_ptr<Uploads> uploads_;
};

}  // namespace dpar::testing

#endif  // DPAR_SERVER_UPLOADS_TESTING_UPLOADS_FIXTURE_H_
