#include "server/uploads/uploads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/graph/sealed_graph.h"
#include "core/status_macros.h"
#include "server/files.h"
#include "server/ledger/ledger.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"
#include "server/store/testing/temporary_store.h"
#include "server/uploads/testing/uploads_fixture.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;

using testing::ExpectError;
using testing::kNow;
using testing::Metadata;
using testing::SmallGraph;
using testing::UploadsTest;

INSTANTIATE_TEST_SUITE_P(Engines, UploadsTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

TEST_P(UploadsTest, AnUploadStartsEmptyAndOpen) {
  const v1::Upload upload = Open(Declaration("d", "r")).value();
  EXPECT_THAT(upload.name(), ::testing::MatchesRegex("tenants/acme/uploads/[0-9a-f]{16}"));
  EXPECT_EQ(upload.dataset(), "tenants/acme/datasets/d");
  EXPECT_EQ(upload.size_bytes(), static_cast<int64_t>(bytes_.size()));
  EXPECT_EQ(upload.committed_offset(), 0);
  EXPECT_EQ(upload.state(), v1::Upload::OPEN);
  EXPECT_EQ(upload.expire_time().seconds(), absl::ToUnixSeconds(kNow) + 7 * 24 * 3600);
  EXPECT_FALSE(upload.has_check());
}

TEST_P(UploadsTest, TheServerNamesADatasetThatItsOwnerDoesNot) {
  EXPECT_THAT(Open(Declaration("", "r")).value().dataset(),
              ::testing::MatchesRegex("tenants/acme/datasets/[0-9a-f]{16}"));
}

TEST_P(UploadsTest, TheSameRequestGivesTheSameUploadWhereItStandsNow) {
  const v1::Upload first = Open(Declaration("d", "r")).value();
  ASSERT_TRUE(Write(first.name(), 0, bytes_.substr(0, 10)).ok());
  const v1::Upload second = Open(Declaration("d", "r")).value();
  EXPECT_EQ(second.name(), first.name());
  EXPECT_EQ(second.committed_offset(), 10);
}

TEST_P(UploadsTest, ARequestIdIsForOneRequest) {
  ASSERT_TRUE(Open(Declaration("d", "r")).ok());
  const absl::Status status = Open(Declaration("e", "r")).status();
  ExpectError(status, absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED");
  EXPECT_EQ(Metadata(status, "request_id"), "r");
}

TEST_P(UploadsTest, AnUploadIsNotResumedWithOtherBounds) {
  v1::OpenUploadRequest request = Declaration("d", "r");
  request.set_edge_bound(2);
  const std::string name = Open(request).value().name();
  EXPECT_EQ(Open(request).value().name(), name);
  request.set_edge_bound(3);
  ExpectError(Open(request).status(), absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED");
  request.clear_edge_bound();
  ExpectError(Open(request).status(), absl::StatusCode::kAlreadyExists, "REQUEST_ID_REUSED");
}

TEST_P(UploadsTest, ADeclarationOutOfBoundsIsRefusedByField) {
  const auto refused = [&](const std::function<void(v1::OpenUploadRequest&)>& change) {
    v1::OpenUploadRequest request = Declaration("d", "r");
    change(request);
    const absl::Status status = Open(request).status();
    ExpectError(status, absl::StatusCode::kInvalidArgument, "INVALID_FIELD");
    return Metadata(status, "field");
  };
  EXPECT_EQ(refused([](auto& r) { r.set_request_id(""); }), "request_id");
  EXPECT_EQ(refused([](auto& r) { r.set_dataset_id("No"); }), "dataset_id");
  EXPECT_EQ(refused([](auto& r) { r.set_dataset_id("../x"); }), "dataset_id");
  EXPECT_EQ(refused([](auto& r) { r.set_size_bytes(0); }), "size_bytes");
  EXPECT_EQ(refused([](auto& r) { r.set_size_bytes(-1); }), "size_bytes");
  EXPECT_EQ(refused([](auto& r) { r.set_node_count(0); }), "node_count");
  EXPECT_EQ(refused([](auto& r) { r.set_feature_count(0); }), "feature_count");
  EXPECT_EQ(refused([](auto& r) { r.set_class_count(1); }), "class_count");
  EXPECT_EQ(refused([](auto& r) { r.set_cap_epsilon(0); }), "cap_epsilon");
  EXPECT_EQ(refused([](auto& r) { r.set_cap_epsilon(std::numeric_limits<double>::quiet_NaN()); }), "cap_epsilon");
  EXPECT_EQ(refused([](auto& r) { r.set_cap_delta(0); }), "cap_delta");
  EXPECT_EQ(refused([](auto& r) { r.set_cap_delta(1); }), "cap_delta");
  EXPECT_EQ(refused([](auto& r) { r.set_max_degree(0); }), "max_degree");
  EXPECT_EQ(refused([](auto& r) { r.set_max_degree(4); }), "max_degree") << "more than there are nodes";
  for (const int64_t bound : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(refused([&](auto& r) { r.set_edge_bound(bound); }), "edge_bound");
    EXPECT_EQ(refused([&](auto& r) { r.set_entry_bound(bound); }), "entry_bound");
  }
  EXPECT_EQ(refused([](auto& r) { r.set_format(static_cast<v1::OpenUploadRequest::Format>(9)); }), "format");
}

TEST_P(UploadsTest, ADeclarationOverALimitNamesTheLimit) {
  const auto limit = [&](const std::function<void(v1::OpenUploadRequest&)>& change) {
    v1::OpenUploadRequest request = Declaration("d", "r");
    change(request);
    const absl::Status status = Open(request).status();
    ExpectError(status, absl::StatusCode::kResourceExhausted, "LIMIT_EXCEEDED");
    return Metadata(status, "limit") + "=" + Metadata(status, "maximum");
  };
  EXPECT_EQ(limit([](auto& r) { r.set_size_bytes((1 << 20) + 1); }), "max_upload_bytes=1048576");
  EXPECT_EQ(limit([](auto& r) { r.set_node_count(1001); }), "max_nodes=1000");
  EXPECT_EQ(limit([](auto& r) { r.set_feature_count(1'000'001); }), "max_features=1000000");
  EXPECT_EQ(limit([](auto& r) { r.set_class_count(10'001); }), "max_classes=10000");
  EXPECT_EQ(limit([](auto& r) { r.set_edge_bound(400'000'001); }), "max_edges=400000000");
  EXPECT_EQ(limit([](auto& r) { r.set_edge_bound(std::numeric_limits<int64_t>::max()); }), "max_edges=400000000");
  EXPECT_EQ(limit([](auto& r) { r.set_entry_bound(2'000'000'001); }), "max_feature_entries=2000000000");
}

TEST_P(UploadsTest, ADeclarationAtALimitIsTaken) {
  v1::OpenUploadRequest request = Declaration("d", "r");
  request.set_size_bytes(1 << 20);
  request.set_node_count(1000);
  request.set_feature_count(1'000'000);
  request.set_class_count(10'000);
  request.set_edge_bound(400'000'000);
  request.set_entry_bound(2'000'000'000);
  EXPECT_TRUE(Open(request).ok());
}

TEST_P(UploadsTest, AFileAtTheLimitsIsTakenAndOneBeyondNamesTheLimit) {
  // Four directed entries and three feature entries.
  limits_.max_edges = 4;
  limits_.max_feature_entries = 3;
  Restart();
  EXPECT_TRUE(Upload("at").ok());
  limits_.max_edges = 3;
  Restart();
  absl::Status status = Upload(Declaration("edges", "edges"), bytes_).status();
  ExpectError(status, absl::StatusCode::kResourceExhausted, "LIMIT_EXCEEDED");
  EXPECT_EQ(Metadata(status, "limit") + "=" + Metadata(status, "maximum"), "max_edges=3");
  EXPECT_EQ(uploads_->Get(last_).value().state(), v1::Upload::REFUSED);
  limits_.max_edges = 4;
  limits_.max_feature_entries = 2;
  Restart();
  status = Upload(Declaration("entries", "entries"), bytes_).status();
  ExpectError(status, absl::StatusCode::kResourceExhausted, "LIMIT_EXCEEDED");
  EXPECT_EQ(Metadata(status, "limit") + "=" + Metadata(status, "maximum"), "max_feature_entries=2");
  EXPECT_EQ(uploads_->Get(last_).value().state(), v1::Upload::REFUSED);
}

TEST_P(UploadsTest, ATenantHasSoManyOpenUploadsAndNoMore) {
  for (const std::string id : {"a", "b", "c"}) {
    ASSERT_TRUE(Open(Declaration(id, id)).ok());
  }
  const absl::Status status = Open(Declaration("d", "d")).status();
  ExpectError(status, absl::StatusCode::kResourceExhausted, "LIMIT_EXCEEDED");
  EXPECT_EQ(Metadata(status, "limit"), "max_open_uploads");
}

TEST_P(UploadsTest, AnUploadThatIsNotFinishedForAWeekNoLongerCounts) {
  for (const std::string id : {"a", "b", "c"}) {
    last_ = Open(Declaration(id, id)).value().name();
    ASSERT_TRUE(Write(last_, 0, "x").ok());
  }
  const absl::Time week = kNow + absl::Hours(24 * 7);
  ExpectError(uploads_->Open(Declaration("d", "d"), week, random_).status(), absl::StatusCode::kResourceExhausted,
              "LIMIT_EXCEEDED");
  ASSERT_TRUE(uploads_->Open(Declaration("d", "d"), week + absl::Seconds(1), random_).ok());
  EXPECT_EQ(uploads_->Get(last_).value().state(), v1::Upload::REFUSED);
  EXPECT_THAT(FilesBelow("uploads"), IsEmpty());
}

TEST_P(UploadsTest, AnOwnerMayLowerTheCapButNotRaiseIt) {
  v1::OpenUploadRequest above = Declaration("d", "r");
  above.set_cap_epsilon(8.5);
  absl::Status status = Open(above).status();
  ExpectError(status, absl::StatusCode::kFailedPrecondition, "CAP_ABOVE_DEFAULT");
  EXPECT_EQ(Metadata(status, "asked_epsilon"), "8.5");
  EXPECT_EQ(Metadata(status, "max_epsilon"), "8");
  above.clear_cap_epsilon();
  above.set_cap_delta(0.5);
  status = Open(above).status();
  ExpectError(status, absl::StatusCode::kFailedPrecondition, "CAP_ABOVE_DEFAULT");
  EXPECT_EQ(Metadata(status, "asked_delta"), "0.5");

  v1::OpenUploadRequest below = Declaration("d", "s");
  below.set_cap_epsilon(2);
  below.set_cap_delta(1e-3);
  ASSERT_TRUE(Upload(below, bytes_).ok());
  const v1::Budget budget = ReadFrom(*database_, [&](Transaction& t) { return GetBudget(t, BudgetOf("d")); }).value();
  EXPECT_EQ(budget.cap_epsilon(), 2);
  EXPECT_EQ(budget.cap_delta(), 1e-3);
}

TEST_P(UploadsTest, WithoutACapTheServersDefaultHolds) {
  ASSERT_TRUE(Upload("d").ok());
  const v1::Budget budget = ReadFrom(*database_, [&](Transaction& t) { return GetBudget(t, BudgetOf("d")); }).value();
  EXPECT_EQ(budget.cap_epsilon(), 8);
  EXPECT_EQ(budget.cap_delta(), 0.03);  // 1/(10 * 3), one digit, rounded down
}

TEST_P(UploadsTest, BytesGoOnWhereTheyStoppedAlsoAfterARestart) {
  const std::string name = Open(Declaration("d", "r")).value().name();
  EXPECT_EQ(Write(name, 0, bytes_.substr(0, 100)).value(), 100);
  Restart();
  EXPECT_EQ(uploads_->Get(name).value().committed_offset(), 100);
  EXPECT_EQ(Write(name, 100, bytes_.substr(100)).value(), static_cast<int64_t>(bytes_.size()));
  EXPECT_TRUE(Finish(name, Sha256Hex(bytes_), "f").ok());
}

TEST_P(UploadsTest, AStreamThatBreaksOffKeepsWhatArrived) {
  const std::string name = Open(Declaration("d", "r")).value().name();
  {
    auto writer = uploads_->StartWriting(name, 0).value();
    ASSERT_TRUE(writer->Append(bytes_.substr(0, 7)).ok());
  }
  EXPECT_EQ(uploads_->Get(name).value().committed_offset(), 7);
}

TEST_P(UploadsTest, AnotherOffsetThanTheCommittedOneIsRefused) {
  const std::string name = Open(Declaration("d", "r")).value().name();
  ASSERT_TRUE(Write(name, 0, bytes_.substr(0, 10)).ok());
  for (const int64_t offset : {int64_t{0}, int64_t{9}, int64_t{11}, int64_t{-1}, std::numeric_limits<int64_t>::max(),
                               std::numeric_limits<int64_t>::min()}) {
    const absl::Status status = Write(name, offset, "x").status();
    ExpectError(status, absl::StatusCode::kOutOfRange, "UPLOAD_OFFSET_MISMATCH");
    EXPECT_EQ(Metadata(status, "offset"), std::to_string(offset));
    EXPECT_EQ(Metadata(status, "committed_offset"), "10");
  }
  EXPECT_EQ(uploads_->Get(name).value().committed_offset(), 10);
}

TEST_P(UploadsTest, AChunkPastTheDeclaredSizeIsRefusedWhole) {
  const std::string name = Open(Declaration("d", "r")).value().name();
  const auto size = static_cast<int64_t>(bytes_.size());
  ASSERT_TRUE(Write(name, 0, bytes_.substr(0, bytes_.size() - 1)).ok());
  const absl::Status status = Write(name, size - 1, "xy").status();
  ExpectError(status, absl::StatusCode::kInvalidArgument, "INVALID_FIELD");
  EXPECT_EQ(Metadata(status, "field"), "data");
  EXPECT_EQ(uploads_->Get(name).value().committed_offset(), size - 1);
}

TEST_P(UploadsTest, AChunkOverTheLimitIsRefused) {
  v1::OpenUploadRequest request = Declaration("d", "r");
  request.set_size_bytes(100'000);
  const std::string name = Open(request).value().name();
  const absl::Status status = Write(name, 0, std::string(4097, 'x')).status();
  ExpectError(status, absl::StatusCode::kResourceExhausted, "LIMIT_EXCEEDED");
  EXPECT_EQ(Metadata(status, "limit"), "max_chunk_bytes");
  EXPECT_TRUE(Write(name, 0, std::string(4096, 'x')).ok());
}

TEST_P(UploadsTest, AnEmptyChunkChangesNothing) {
  const std::string name = Open(Declaration("d", "r")).value().name();
  EXPECT_EQ(Write(name, 0, "").value(), 0);
  EXPECT_EQ(Write(name, 0, bytes_).value(), static_cast<int64_t>(bytes_.size()));
  EXPECT_EQ(Write(name, static_cast<int64_t>(bytes_.size()), "").value(), static_cast<int64_t>(bytes_.size()))
      << "also when all is there";
  EXPECT_TRUE(Finish(name, Sha256Hex(bytes_), "f").ok());
}

TEST_P(UploadsTest, UploadsOfATenantGoOnSideBySide) {
  std::vector<std::string> names;
  std::vector<std::unique_ptr<UploadWriter>> writers;
  for (const std::string id : {"a", "b", "c"}) {
    names.push_back(Open(Declaration(id, id)).value().name());
    writers.push_back(uploads_->StartWriting(names.back(), 0).value());
  }
  for (const char byte : bytes_) {
    for (const auto& writer : writers) {
      ASSERT_TRUE(writer->Append(std::string(1, byte)).ok());
    }
  }
  writers.clear();
  for (const std::string& name : names) {
    EXPECT_TRUE(Finish(name, Sha256Hex(bytes_), "finish-" + name).ok());
  }
}

TEST_P(UploadsTest, AWriterTakesOverFromOneWhoseConnectionBroke) {
  const std::string name = Open(Declaration("d", "r")).value().name();
  auto first = uploads_->StartWriting(name, 0).value();
  ASSERT_TRUE(first->Append(bytes_.substr(0, 10)).ok());
  std::thread breaks([&first] { first.reset(); });
  EXPECT_EQ(Write(name, 10, bytes_.substr(10)).value(), static_cast<int64_t>(bytes_.size()));
  breaks.join();
  EXPECT_TRUE(Finish(name, Sha256Hex(bytes_), "f").ok());
}

TEST_P(UploadsTest, ASecondWriterWaitsForTheFirst) {
  const std::string name = Open(Declaration("d", "r")).value().name();
  auto first = uploads_->StartWriting(name, 0).value();
  std::atomic<bool> started = false;
  absl::Status second;
  std::thread thread([&] {
    started = true;
    second = uploads_->StartWriting(name, 0).status();
  });
  while (!started) {
    std::this_thread::yield();
  }
  ASSERT_TRUE(first->Append("abc").ok());
  first.reset();
  thread.join();
  ExpectError(second, absl::StatusCode::kOutOfRange, "UPLOAD_OFFSET_MISMATCH");
  EXPECT_EQ(Metadata(second, "committed_offset"), "3");
}

TEST_P(UploadsTest, AnUploadThatIsNotThereIsNotFound) {
  const std::string name = "tenants/acme/uploads/none";
  ExpectError(uploads_->Get(name).status(), absl::StatusCode::kNotFound, "RESOURCE_NOT_FOUND");
  ExpectError(uploads_->StartWriting(name, 0).status(), absl::StatusCode::kNotFound, "RESOURCE_NOT_FOUND");
  ExpectError(Finish(name, std::string(64, 'a'), "f").status(), absl::StatusCode::kNotFound, "RESOURCE_NOT_FOUND");
}

}  // namespace
}  // namespace dpar
