// What becomes of an upload when it is finished.
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

TEST_P(UploadsTest, AFinishedUploadIsADataset) {
  const absl::StatusOr<v1::FinishUploadResponse> answer = Upload("d");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->dataset().name(), "tenants/acme/datasets/d");
  EXPECT_EQ(answer->dataset().node_count(), 3);
  EXPECT_EQ(answer->dataset().feature_count(), 2);
  EXPECT_EQ(answer->dataset().class_count(), 2);
  EXPECT_FALSE(answer->dataset().is_public());
  EXPECT_FALSE(answer->budget_shared());
  EXPECT_EQ(answer->report().edge_count(), 2);
  EXPECT_EQ(answer->report().unlabelled_nodes(), 1);
  EXPECT_TRUE(DatasetStatus("d").ok());
  EXPECT_THAT(FilesBelow("uploads"), IsEmpty());
  const v1::Upload upload = uploads_->Get(last_).value();
  EXPECT_EQ(upload.state(), v1::Upload::FINISHED);
  EXPECT_EQ(upload.committed_offset(), upload.size_bytes());
}

TEST_P(UploadsTest, TheStoredGraphIsTheCanonicalOneAndForTheOwnerOnly) {
  ASSERT_TRUE(Upload("d").ok());
  const std::string path = directory_->DatasetFile("tenants/acme/datasets/d");
  const SealedGraph stored = SealedGraph::Open(path).value();
  EXPECT_EQ(stored.sizes(), SmallGraph().sizes);
  EXPECT_EQ(CanonicalContent(stored.View().value()), CanonicalContent(SmallGraph()));
  struct stat parent = {};
  ASSERT_EQ(stat(fs::path(path).parent_path().c_str(), &parent), 0);
  EXPECT_EQ(parent.st_mode & 0777, 0700U);
}

TEST_P(UploadsTest, TheDigestIsThatOfTheContentUnderTheKeyInTheAnswer) {
  const v1::FinishUploadResponse answer = Upload("d").value();
  const std::string key = HexDecode(answer.digest_key()).value();
  EXPECT_EQ(key.size(), 32U);
  EXPECT_EQ(answer.dataset().content_digest(), HmacSha256Hex(key, CanonicalContent(SmallGraph())));
}

TEST_P(UploadsTest, TheSameContentUnderAnotherNameSharesTheBudgetAndItsCap) {
  v1::OpenUploadRequest first = Declaration("d", "r");
  first.set_cap_epsilon(1);
  ASSERT_TRUE(Upload(first, bytes_).ok());
  const v1::FinishUploadResponse second = Upload("e").value();
  EXPECT_TRUE(second.budget_shared());
  EXPECT_EQ(BudgetOf("e"), BudgetOf("d"));
  EXPECT_EQ(ReadFrom(*database_, [&](Transaction& t) { return GetBudget(t, BudgetOf("e")); }).value().cap_epsilon(), 1);
}

TEST_P(UploadsTest, DigestsOfTheSameContentDifferFromDatasetToDataset) {
  EXPECT_NE(Upload("d").value().dataset().content_digest(), Upload("e").value().dataset().content_digest());
}

TEST_P(UploadsTest, AnotherTenantsUploadOfTheSameContentHasItsOwnBudget) {
  ASSERT_TRUE(Upload("d").ok());
  v1::OpenUploadRequest request = Declaration("d", "r");
  request.set_parent("tenants/other");
  const absl::StatusOr<v1::FinishUploadResponse> answer = Upload(request, bytes_);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->budget_shared());
}

TEST_P(UploadsTest, TheBudgetOutlivesTheDataset) {
  ASSERT_TRUE(Upload("d").ok());
  const std::string budget = BudgetOf("d");
  ASSERT_TRUE(
      database_->Write([](Transaction& t) { return MarkDatasetDeleted(t, "tenants/acme/datasets/d", kNow); }).ok());
  EXPECT_TRUE(Upload("e").value().budget_shared());
  EXPECT_EQ(BudgetOf("e"), budget);
}

TEST_P(UploadsTest, PublicDataHasNoBudget) {
  v1::OpenUploadRequest request = Declaration("d", "r");
  request.set_is_public(true);
  request.set_cap_epsilon(100);  // ignored
  const absl::StatusOr<v1::FinishUploadResponse> answer = Upload(request, bytes_);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->dataset().is_public());
  EXPECT_EQ(answer->dataset().population(), "");
  EXPECT_TRUE(ReadFrom(*database_, [](Transaction& t) { return AllPopulations(t); }).value().empty());
}

TEST_P(UploadsTest, PrivateContentCannotBeDeclaredPublicLater) {
  ASSERT_TRUE(Upload("d").ok());
  v1::OpenUploadRequest request = Declaration("e", "another");
  request.set_is_public(true);
  const absl::Status status = Upload(request, bytes_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetErrorInfo(status)->reason(), "CONTENT_HAS_BUDGET");
  EXPECT_EQ(
      ReadFrom(*database_, [](Transaction& t) { return GetDataset(t, "tenants/acme/datasets/e"); }).status().code(),
      absl::StatusCode::kNotFound);
}

TEST_P(UploadsTest, ContentThatWasDeclaredPublicCannotBecomePrivateAlsoWhenDeletedOrRolledBack) {
  v1::OpenUploadRequest request = Declaration("d", "r");
  request.set_is_public(true);
  ASSERT_TRUE(Upload(request, bytes_).ok());
  const auto expect_refused = [&](const std::string& id, const std::string& bytes) {
    v1::OpenUploadRequest again = Declaration(id, id);
    again.set_class_count(3);  // another declaration of the same content
    const absl::Status status = Upload(again, bytes).status();
    ExpectError(status, absl::StatusCode::kFailedPrecondition, "CONTENT_WAS_PUBLIC");
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("Upload it with is_public"));
    EXPECT_EQ(DatasetStatus(id).code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(uploads_->Get(last_)->state(), v1::Upload::REFUSED);
  };
  expect_refused("e", bytes_);
  ASSERT_TRUE(
      database_->Write([](Transaction& t) { return MarkDatasetDeleted(t, "tenants/acme/datasets/d", kNow); }).ok());
  expect_refused("f", bytes_);
  std::filesystem::remove_all(root_ + "/witness/acme");
  expect_refused("g", bytes_);
  request = Declaration("h", "h");
  request.set_is_public(true);
  ASSERT_TRUE(Upload(request, bytes_).ok()) << "public again it may be";
  ASSERT_TRUE(
      database_->Write([](Transaction& t) { return t.Execute("DELETE FROM public_contents", {}).status(); }).ok());
  expect_refused("i", bytes_);
  // Each tenant's contents are recognised under a key of its own.
  v1::OpenUploadRequest other = Declaration("d", "o");
  other.set_parent("tenants/other");
  EXPECT_TRUE(Upload(other, bytes_).ok());
}

TEST_P(UploadsTest, FinishedTwiceWithTheSameIdGivesTheSameAnswerWithoutTheReport) {
  v1::FinishUploadResponse first = Upload("d").value();
  const absl::StatusOr<v1::FinishUploadResponse> second = Finish(last_, Sha256Hex(bytes_), "finish-open-d");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(second->has_report());
  first.clear_report();
  EXPECT_EQ(second->SerializeAsString(), first.SerializeAsString());
}

TEST_P(UploadsTest, FinishedTwiceWithAnotherIdIsRefused) {
  ASSERT_TRUE(Upload("d").ok());
  const absl::Status status = Finish(last_, Sha256Hex(bytes_), "again").status();
  ExpectError(status, absl::StatusCode::kFailedPrecondition, "UPLOAD_INCOMPLETE");
  EXPECT_EQ(Metadata(status, "committed_offset"), std::to_string(bytes_.size()));
  EXPECT_TRUE(DatasetStatus("d").ok());
}

TEST_P(UploadsTest, FinishedTwiceWithTheSameIdAndAnotherDigestIsRefused) {
  ASSERT_TRUE(Upload("d").ok());
  ExpectError(Finish(last_, std::string(64, '0'), "finish-open-d").status(), absl::StatusCode::kAlreadyExists,
              "REQUEST_ID_REUSED");
}

TEST_P(UploadsTest, AnUploadWithBytesMissingStaysOpen) {
  const std::string name = Open(Declaration("d", "r")).value().name();
  ASSERT_TRUE(Write(name, 0, bytes_.substr(0, 10)).ok());
  const absl::Status status = Finish(name, Sha256Hex(bytes_), "f").status();
  ExpectError(status, absl::StatusCode::kFailedPrecondition, "UPLOAD_INCOMPLETE");
  EXPECT_EQ(Metadata(status, "committed_offset"), "10");
  EXPECT_EQ(Metadata(status, "size"), std::to_string(bytes_.size()));
  EXPECT_EQ(uploads_->Get(name).value().state(), v1::Upload::OPEN);
  ASSERT_TRUE(Write(name, 10, bytes_.substr(10)).ok());
  EXPECT_TRUE(Finish(name, Sha256Hex(bytes_), "f").ok());
}

TEST_P(UploadsTest, AMalformedDigestIsRefusedAndTheUploadStaysOpen) {
  const std::string name = Open(Declaration("d", "r")).value().name();
  ASSERT_TRUE(Write(name, 0, bytes_).ok());
  for (const std::string& digest : {std::string(), std::string(63, 'a'), std::string(64, 'A'), std::string(64, 'g')}) {
    const absl::Status status = Finish(name, digest, "f").status();
    ExpectError(status, absl::StatusCode::kInvalidArgument, "INVALID_FIELD");
    EXPECT_EQ(Metadata(status, "field"), "sha256");
  }
  EXPECT_EQ(uploads_->Get(name).value().state(), v1::Upload::OPEN);
}

TEST_P(UploadsTest, AWrongDigestEndsTheUploadWithoutATrace) {
  last_ = Open(Declaration("d", "r")).value().name();
  ASSERT_TRUE(Write(last_, 0, bytes_).ok());
  ExpectError(Finish(last_, std::string(64, '0'), "f").status(), absl::StatusCode::kInvalidArgument,
              "UPLOAD_DIGEST_MISMATCH");
  ExpectRefusedWithoutTrace("d");
  ExpectError(Write(last_, 0, "x").status(), absl::StatusCode::kFailedPrecondition, "UPLOAD_INCOMPLETE");
  ExpectError(Finish(last_, Sha256Hex(bytes_), "g").status(), absl::StatusCode::kFailedPrecondition,
              "UPLOAD_INCOMPLETE");
}

TEST_P(UploadsTest, AFileThatIsNoGraphEndsTheUploadWithoutATrace) {
  ExpectError(Upload(Declaration("d", "r"), "not a zip").status(), absl::StatusCode::kInvalidArgument, "INVALID_GRAPH");
  ExpectRefusedWithoutTrace("d");
  ExpectError(Upload(Declaration("d", "s"), bytes_.substr(0, bytes_.size() / 2)).status(),
              absl::StatusCode::kInvalidArgument, "INVALID_GRAPH");
  ExpectRefusedWithoutTrace("d");
  EXPECT_TRUE(Upload("d").ok()) << "the id is still free";
}

TEST_P(UploadsTest, AFileThatDisagreesWithTheDeclarationIsRefused) {
  v1::OpenUploadRequest request = Declaration("d", "r");
  request.set_node_count(4);
  ExpectError(Upload(request, bytes_).status(), absl::StatusCode::kInvalidArgument, "INVALID_GRAPH");
  ExpectRefusedWithoutTrace("d");
}

TEST_P(UploadsTest, AGraphThatKeepsItsDegreePromiseHasItInItsDataset) {
  v1::OpenUploadRequest request = Declaration("d", "r");
  request.set_max_degree(2);
  EXPECT_EQ(Upload(request, bytes_).value().dataset().max_degree(), 2);
  const auto stored = [&](const std::string& id) {
    return ReadFrom(*database_, [&](Transaction& t) { return GetDataset(t, "tenants/acme/datasets/" + id); }).value();
  };
  EXPECT_EQ(stored("d").max_degree(), 2);
  EXPECT_FALSE(Upload("e").value().dataset().has_max_degree());
  EXPECT_FALSE(stored("e").has_max_degree());
}

TEST_P(UploadsTest, TheCapOfAContentIsAboutTheSmallestDegreePromiseThatWasEverMadeForIt) {
  const auto promised = [&](const std::string& id, int64_t max_degree) {
    v1::OpenUploadRequest request = Declaration(id, "r-" + id);
    if (max_degree > 0) {
      request.set_max_degree(max_degree);
    }
    EXPECT_TRUE(Upload(request, bytes_).ok());
    return ReadFrom(*database_,
                    [&](Transaction& t) -> absl::StatusOr<v1::Budget> {
                      DPAR_ASSIGN_OR_RETURN(const v1::Dataset dataset, GetDataset(t, "tenants/acme/datasets/" + id));
                      return GetBudget(t, dataset.population());
                    })
        .value();
  };
  EXPECT_FALSE(promised("d", 0).has_max_degree());
  EXPECT_EQ(promised("e", 3).max_degree(), 3);
  EXPECT_EQ(promised("f", 2).max_degree(), 2);
  ASSERT_TRUE(database_
                  ->Write([](Transaction& t) {
                    return MarkDatasetDeleted(t, "tenants/acme/datasets/f", absl::FromUnixSeconds(5));
                  })
                  .ok());
  EXPECT_EQ(promised("g", 3).max_degree(), 2) << "jobs of the deleted one may have been charged";
  EXPECT_EQ(promised("h", 0).max_degree(), 2);
}

TEST_P(UploadsTest, ANodeAboveTheDegreePromiseIsRefusedWithThePromiseAndNeitherDegreeNorNode) {
  Graph star;
  star.sizes = {6, 2, 2};
  star.edge_offsets = {0, 1, 2, 3, 8, 9, 10};
  star.neighbours = {3, 3, 3, 0, 1, 2, 4, 5, 3, 3};
  star.features.offsets = {0, 1, 2, 2, 2, 2, 2};
  star.features.columns = {0, 1};
  star.features.values = {1.0F, 2.0F};
  star.labels = {0, 1, 0, 0, 1, 1};
  v1::OpenUploadRequest request = Declaration("d", "r");
  request.set_node_count(6);
  request.set_max_degree(4);
  const absl::Status status = Upload(request, BytesOf(star)).status();
  ExpectError(status, absl::StatusCode::kInvalidArgument, "INVALID_GRAPH");
  EXPECT_EQ(Metadata(status, "array"), "edges");
  EXPECT_EQ(Metadata(status, "position"), "(none)");
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("more than the 4 neighbours that were declared"));
  EXPECT_THAT(std::string(status.message()), ::testing::Not(::testing::ContainsRegex("[0-35-9]")));
  ExpectRefusedWithoutTrace("d");
  request.set_request_id("s");
  request.set_max_degree(5);
  EXPECT_TRUE(Upload(request, BytesOf(star)).ok()) << "at the promise it is taken";
}

TEST_P(UploadsTest, TheSameContentUnderAnotherPromiseSharesTheBudget) {
  v1::OpenUploadRequest first = Declaration("d", "r");
  first.set_max_degree(2);
  ASSERT_TRUE(Upload(first, bytes_).ok());
  v1::OpenUploadRequest second = Declaration("e", "s");
  second.set_max_degree(3);
  const v1::FinishUploadResponse answer = Upload(second, bytes_).value();
  EXPECT_TRUE(answer.budget_shared());
  EXPECT_EQ(answer.dataset().max_degree(), 3);
  EXPECT_EQ(BudgetOf("e"), BudgetOf("d"));
}

TEST_P(UploadsTest, ADatasetHasItsBoundsAsDeclaredOrByDefault) {
  const auto bounds = [&](const v1::OpenUploadRequest& request) {
    const v1::Dataset dataset = Upload(request, bytes_).value().dataset();
    const v1::Dataset stored =
        ReadFrom(*database_, [&](Transaction& t) { return GetDataset(t, dataset.name()); }).value();
    EXPECT_EQ(stored.ShortDebugString(), dataset.ShortDebugString());
    return std::pair(dataset.edge_bound(), dataset.entry_bound());
  };
  EXPECT_EQ(bounds(Declaration("d", "d")), std::pair(int64_t{3}, int64_t{6})) << "all that three nodes can have";
  v1::OpenUploadRequest request = Declaration("e", "e");
  request.set_edge_bound(2);
  request.set_entry_bound(3);
  EXPECT_EQ(bounds(request), std::pair(int64_t{2}, int64_t{3})) << "which the graph reaches";
  request = Declaration("f", "f");
  request.set_entry_bound(500);
  EXPECT_EQ(bounds(request), std::pair(int64_t{3}, int64_t{500}));
  EXPECT_EQ(BudgetOf("e"), BudgetOf("d")) << "the same content has one budget, whatever its bounds";
  EXPECT_EQ(BudgetOf("f"), BudgetOf("d"));
}

TEST_P(UploadsTest, AGraphAboveItsBoundsIsRefusedWithTheFlagAndWithoutACount) {
  for (const bool is_public : {false, true}) {
    const std::string id = is_public ? "p" : "d";
    v1::OpenUploadRequest request = Declaration(id, id + "-edges");
    request.set_is_public(is_public);
    request.set_edge_bound(1);
    absl::Status status = Upload(request, bytes_).status();
    ExpectError(status, absl::StatusCode::kInvalidArgument, "INVALID_GRAPH");
    EXPECT_EQ(Metadata(status, "array"), "edges");
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("--edge-bound"));
    EXPECT_THAT(std::string(status.message()), ::testing::Not(::testing::HasSubstr("2")));
    ExpectRefusedWithoutTrace(id);
    request = Declaration(id, id + "-entries");
    request.set_is_public(is_public);
    request.set_entry_bound(2);
    status = Upload(request, bytes_).status();
    ExpectError(status, absl::StatusCode::kInvalidArgument, "INVALID_GRAPH");
    EXPECT_EQ(Metadata(status, "array"), "features");
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("--entry-bound"));
    EXPECT_THAT(std::string(status.message()), ::testing::Not(::testing::HasSubstr("3")));
    ExpectRefusedWithoutTrace(id);
  }
}

// A refusal would tell of the node that has the only label of a class.
TEST_P(UploadsTest, AGraphIsTakenWithoutANodeOfSomeDeclaredClassOrAnyLabel) {
  const auto upload = [&](const std::string& id, const std::vector<int32_t>& labels) {
    Graph graph = SmallGraph();
    graph.labels = labels;
    return Upload(Declaration(id, id), BytesOf(graph)).value().dataset().class_count();
  };
  EXPECT_EQ(upload("d", {1, 1, -1}), 2);
  EXPECT_EQ(upload("e", {-1, -1, -1}), 2);
  v1::OpenUploadRequest request = Declaration("f", "f");
  request.set_class_count(4);
  EXPECT_EQ(Upload(request, bytes_).value().dataset().class_count(), 4);
}

TEST_P(UploadsTest, ALabelBeyondTheDeclaredClassesIsRefusedWithoutATrace) {
  Graph graph = SmallGraph();
  graph.sizes.class_count = 3;
  graph.labels = {0, 2, -1};
  const absl::Status status = Upload(Declaration("d", "r"), BytesOf(graph)).status();
  ExpectError(status, absl::StatusCode::kInvalidArgument, "INVALID_GRAPH");
  EXPECT_EQ(Metadata(status, "array"), "labels");
  EXPECT_EQ(Metadata(status, "position"), "1");
  ExpectRefusedWithoutTrace("d");
}

TEST_P(UploadsTest, AnIdThatWasEverUsedIsTaken) {
  ASSERT_TRUE(Upload("d").ok());
  absl::Status status = Open(Declaration("d", "r")).status();
  ExpectError(status, absl::StatusCode::kAlreadyExists, "RESOURCE_EXISTS");
  EXPECT_EQ(Metadata(status, "resource"), "tenants/acme/datasets/d");
  ASSERT_TRUE(
      database_->Write([](Transaction& t) { return MarkDatasetDeleted(t, "tenants/acme/datasets/d", kNow); }).ok());
  status = Open(Declaration("d", "s")).status();
  ExpectError(status, absl::StatusCode::kAlreadyExists, "RESOURCE_EXISTS");
}

TEST_P(UploadsTest, OfTwoUploadsForOneIdTheFirstToFinishHasItAndItsFileStays) {
  const std::string second = Open(Declaration("d", "second")).value().name();
  ASSERT_TRUE(Write(second, 0, bytes_).ok());
  ASSERT_TRUE(Upload("d").ok());
  ExpectError(Finish(second, Sha256Hex(bytes_), "f").status(), absl::StatusCode::kAlreadyExists, "RESOURCE_EXISTS");
  EXPECT_EQ(uploads_->Get(second).value().state(), v1::Upload::REFUSED);
  EXPECT_TRUE(DatasetStatus("d").ok());
  EXPECT_TRUE(fs::exists(directory_->DatasetFile("tenants/acme/datasets/d")));
}

TEST_P(UploadsTest, OverTheLimitOfDatasetsNothingIsLeftButTheUploadCanBeFinishedLater) {
  limits_.max_datasets = 1;
  Restart();
  ASSERT_TRUE(Upload("d").ok());
  const absl::Status status = Upload("e").status();
  ExpectError(status, absl::StatusCode::kResourceExhausted, "LIMIT_EXCEEDED");
  EXPECT_EQ(Metadata(status, "limit"), "max_datasets");
  EXPECT_FALSE(fs::exists(directory_->DatasetFile("tenants/acme/datasets/e")));
  ASSERT_TRUE(
      database_->Write([](Transaction& t) { return MarkDatasetDeleted(t, "tenants/acme/datasets/d", kNow); }).ok());
  EXPECT_TRUE(Finish(last_, Sha256Hex(bytes_), "finish-open-e").ok());
}

TEST_P(UploadsTest, SweepingRemovesWhatBelongsToNobodyAndNothingElse) {
  ASSERT_TRUE(Upload("kept").ok());
  const std::string open = Open(Declaration("d", "r")).value().name();
  ASSERT_TRUE(Write(open, 0, bytes_.substr(0, 10)).ok());
  ASSERT_TRUE(Upload("deleted").ok());
  ASSERT_TRUE(
      database_->Write([](Transaction& t) { return MarkDatasetDeleted(t, "tenants/acme/datasets/deleted", kNow); })
          .ok());
  const std::string orphan = directory_->DatasetFile("tenants/acme/datasets/orphan");
  const std::string stray = directory_->UploadFile("tenants/acme/uploads/stray");
  for (const std::string& path : {orphan, stray}) {
    ASSERT_TRUE(MakeParentDirectory(path).ok());
    ASSERT_TRUE(WriteFileDurably(path, "x", 0600).ok());
  }
  Restart();
  ASSERT_TRUE(uploads_->Sweep().ok());
  EXPECT_THAT(FilesBelow("datasets"), ::testing::ElementsAre(directory_->DatasetFile("tenants/acme/datasets/kept")));
  EXPECT_THAT(FilesBelow("uploads"), ::testing::ElementsAre(directory_->UploadFile(open)));
}

}  // namespace
}  // namespace dpar
