// The upload protocol, call by call.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "core/certificate/digest.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

class UploadTest : public SharedServerTest {
 protected:
  void SetUp() override {
    SharedServerTest::SetUp();
    if (HasFatalFailure()) return;
    tenant_ = server().NewTenant();
    owner_ = std::make_unique<Client>(server().Owner(tenant_));
    // Every test has content of its own, so that no budget is shared by accident.
    graph_ = MakeGraph(++graphs_made_, {.nodes = 3000, .classes = 3, .features = 100});
    bytes_ = GraphBytes(graph_);
    ASSERT_GT(bytes_.size(), 100'000U);
  }

  std::string Open() {
    const auto answer =
        owner_->Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest(tenant_.name, bytes_, graph_.sizes));
    EXPECT_THAT(answer.status, IsOk());
    EXPECT_EQ(answer.value.committed_offset(), 0);
    EXPECT_EQ(answer.value.state(), v1::Upload::OPEN);
    return answer.value.name();
  }

  Answer<v1::Upload> Get(const std::string& upload) {
    v1::GetUploadRequest request;
    request.set_name(upload);
    return owner_->Call(&v1::DatasetService::Stub::GetUpload, request);
  }

  int DatasetCount() {
    v1::ListDatasetsRequest request;
    request.set_parent(tenant_.name);
    const auto answer = owner_->Call(&v1::DatasetService::Stub::ListDatasets, request);
    EXPECT_THAT(answer.status, IsOk());
    return answer.value.datasets_size();
  }

  static uint64_t graphs_made_;
  TenantAccess tenant_;
  std::unique_ptr<Client> owner_;
  Graph graph_;
  std::string bytes_;
};

uint64_t UploadTest::graphs_made_ = 100;

TEST_F(UploadTest, AWrongOffsetIsRefusedAndSaysWhereToGoOn) {
  const std::string upload = Open();
  ASSERT_THAT(WriteBytes(*owner_, upload, 0, bytes_.substr(0, 1000)).status, IsOk());
  for (const int64_t offset : {int64_t{0}, int64_t{999}, int64_t{1001}, int64_t{1} << 40}) {
    const auto answer = WriteBytes(*owner_, upload, offset, bytes_.substr(1000, 10));
    EXPECT_THAT(answer.status, IsError(grpc::StatusCode::OUT_OF_RANGE, v1::UPLOAD_OFFSET_MISMATCH)) << offset;
    EXPECT_EQ(ErrorMetadata(answer.status, "offset"), absl::StrCat(offset));
    EXPECT_EQ(ErrorMetadata(answer.status, "committed_offset"), "1000");
  }
  EXPECT_FALSE(WriteBytes(*owner_, upload, -1, bytes_.substr(0, 10)).status.ok());
  EXPECT_EQ(Get(upload).value.committed_offset(), 1000);
}

TEST_F(UploadTest, AWrongDigestEndsTheUploadWithoutADataset) {
  const std::string upload = Open();
  ASSERT_THAT(WriteBytes(*owner_, upload, 0, bytes_).status, IsOk());
  const auto answer = Finish(*owner_, upload, bytes_ + "x", NewRequestId());
  EXPECT_THAT(answer.status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::UPLOAD_DIGEST_MISMATCH));
  EXPECT_EQ(DatasetCount(), 0);
}

TEST_F(UploadTest, AMalformedDigestIsAnInvalidField) {
  const std::string upload = Open();
  ASSERT_THAT(WriteBytes(*owner_, upload, 0, bytes_).status, IsOk());
  for (const std::string& digest : {std::string(), std::string("abc"), std::string(64, 'g'), std::string(65, 'a')}) {
    v1::FinishUploadRequest request;
    request.set_name(upload);
    request.set_sha256(digest);
    request.set_request_id(NewRequestId());
    EXPECT_THAT(owner_->Call(&v1::DatasetService::Stub::FinishUpload, request).status,
                IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD))
        << digest;
  }
  EXPECT_THAT(Finish(*owner_, upload, bytes_, NewRequestId()).status, IsOk());
}

TEST_F(UploadTest, ABrokenStreamIsResumedFromTheCommittedOffset) {
  const std::string upload = Open();
  {
    v1::WriteUploadResponse response;
    const auto context = MakeContext(owner_->token());
    const auto writer = owner_->stub<v1::DatasetService::Stub>().WriteUpload(context.get(), &response);
    v1::WriteUploadRequest message;
    message.set_name(upload);
    message.set_data(bytes_.substr(0, 50'000));
    ASSERT_TRUE(writer->Write(message));
    message.Clear();
    message.set_data(bytes_.substr(50'000, 20'000));
    ASSERT_TRUE(writer->Write(message));
    context->TryCancel();
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  // What the server holds may still move while the broken stream's last bytes are taken in; a refused offset tells the
  // new one.
  int64_t committed = Get(upload).value.committed_offset();
  Answer<v1::WriteUploadResponse> resumed;
  for (int attempt = 0; attempt < 20; ++attempt) {
    ASSERT_LE(committed, 70'000);
    resumed = WriteBytes(*owner_, upload, committed, bytes_.substr(static_cast<size_t>(committed)));
    if (resumed.status.ok()) break;
    ASSERT_THAT(resumed.status.error_code(),
                ::testing::AnyOf(grpc::StatusCode::OUT_OF_RANGE, grpc::StatusCode::UNAVAILABLE));
    committed = Get(upload).value.committed_offset();
  }
  ASSERT_THAT(resumed.status, IsOk());
  EXPECT_EQ(resumed.value.committed_offset(), static_cast<int64_t>(bytes_.size()));
  const auto finished = Finish(*owner_, upload, bytes_, NewRequestId());
  ASSERT_THAT(finished.status, IsOk());
  EXPECT_EQ(finished.value.dataset().node_count(), 3000);
  EXPECT_EQ(finished.value.report().edge_count(), graph_.edge_count());
}

TEST_F(UploadTest, FinishingTwiceWithTheSameRequestIdGivesTheSameAnswer) {
  const std::string upload = Open();
  ASSERT_THAT(WriteBytes(*owner_, upload, 0, bytes_).status, IsOk());
  const std::string request_id = NewRequestId();
  const auto first = Finish(*owner_, upload, bytes_, request_id);
  ASSERT_THAT(first.status, IsOk());
  const auto second = Finish(*owner_, upload, bytes_, request_id);
  ASSERT_THAT(second.status, IsOk());
  EXPECT_EQ(second.value.dataset().SerializeAsString(), first.value.dataset().SerializeAsString());
  EXPECT_EQ(DatasetCount(), 1);
  EXPECT_EQ(Get(upload).value.state(), v1::Upload::FINISHED);
}

TEST_F(UploadTest, FinishingTwiceWithAnotherRequestIdIsRefused) {
  const std::string upload = Open();
  ASSERT_THAT(WriteBytes(*owner_, upload, 0, bytes_).status, IsOk());
  ASSERT_THAT(Finish(*owner_, upload, bytes_, NewRequestId()).status, IsOk());
  EXPECT_THAT(Finish(*owner_, upload, bytes_, NewRequestId()).status,
              IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::UPLOAD_INCOMPLETE));
  EXPECT_THAT(WriteBytes(*owner_, upload, static_cast<int64_t>(bytes_.size()), "x").status,
              IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::UPLOAD_INCOMPLETE));
  EXPECT_EQ(DatasetCount(), 1);
}

TEST_F(UploadTest, FinishingAnIncompleteUploadSaysWhatIsMissingAndKeepsItOpen) {
  const std::string upload = Open();
  ASSERT_THAT(WriteBytes(*owner_, upload, 0, bytes_.substr(0, 500)).status, IsOk());
  const auto answer = Finish(*owner_, upload, bytes_, NewRequestId());
  EXPECT_THAT(answer.status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::UPLOAD_INCOMPLETE));
  EXPECT_EQ(ErrorMetadata(answer.status, "committed_offset"), "500");
  EXPECT_EQ(ErrorMetadata(answer.status, "size"), absl::StrCat(bytes_.size()));
  EXPECT_EQ(Get(upload).value.state(), v1::Upload::OPEN);
  ASSERT_THAT(WriteBytes(*owner_, upload, 500, bytes_.substr(500)).status, IsOk());
  EXPECT_THAT(Finish(*owner_, upload, bytes_, NewRequestId()).status, IsOk());
}

TEST_F(UploadTest, BytesPastTheDeclaredSizeAreRefused) {
  const std::string upload = Open();
  const auto answer = WriteBytes(*owner_, upload, 0, bytes_ + "x");
  EXPECT_FALSE(answer.status.ok());
  ASSERT_TRUE(ErrorInfoOf(answer.status).has_value()) << answer.status.error_message();
  EXPECT_LE(Get(upload).value.committed_offset(), static_cast<int64_t>(bytes_.size()));
  EXPECT_EQ(DatasetCount(), 0);
}

TEST_F(UploadTest, AnotherTenantsUploadIsNotThere) {
  const std::string upload = Open();
  const TenantAccess stranger = server().NewTenant();
  const Client other = server().Owner(stranger);
  v1::GetUploadRequest request;
  request.set_name(upload);
  const auto got = other.Call(&v1::DatasetService::Stub::GetUpload, request);
  EXPECT_THAT(got.status, IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_THAT(WriteBytes(other, upload, 0, bytes_).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_THAT(Finish(other, upload, bytes_, NewRequestId()).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_THAT(other.Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest(tenant_.name, bytes_, graph_.sizes)).status,
              IsError(grpc::StatusCode::NOT_FOUND, v1::RESOURCE_NOT_FOUND));
  EXPECT_EQ(Get(upload).value.committed_offset(), 0);
}

TEST_F(UploadTest, OpeningTwiceWithTheSameRequestIdGivesTheSameUpload) {
  v1::OpenUploadRequest request = OpenRequest(tenant_.name, bytes_, graph_.sizes);
  const auto first = owner_->Call(&v1::DatasetService::Stub::OpenUpload, request);
  const auto second = owner_->Call(&v1::DatasetService::Stub::OpenUpload, request);
  ASSERT_THAT(second.status, IsOk());
  EXPECT_EQ(second.value.name(), first.value.name());
  request.set_class_count(request.class_count() + 1);
  EXPECT_THAT(owner_->Call(&v1::DatasetService::Stub::OpenUpload, request).status,
              IsError(grpc::StatusCode::ALREADY_EXISTS, v1::REQUEST_ID_REUSED));
}

TEST_F(UploadTest, AMessageOfTheLargestSizeIsReadAndOneByteMoreIsNot) {
  v1::GetServerInfoRequest ask;
  const v1::Limits limits = owner_->Call(&v1::ServerService::Stub::GetServerInfo, ask).value.limits();
  const auto largest = static_cast<size_t>(limits.max_message_bytes());
  v1::OpenUploadRequest request = OpenRequest(tenant_.name, bytes_, graph_.sizes);
  request.set_dataset_id(std::string(largest / 2, 'a'));
  request.set_dataset_id(std::string(largest / 2 + largest - request.ByteSizeLong(), 'a'));
  // The id's length takes a byte more or less; the message does not.
  while (request.ByteSizeLong() > largest) {
    request.mutable_dataset_id()->pop_back();
  }
  ASSERT_EQ(request.ByteSizeLong(), largest);
  EXPECT_THAT(owner_->Call(&v1::DatasetService::Stub::OpenUpload, request).status,
              IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
  request.mutable_dataset_id()->push_back('a');
  EXPECT_EQ(owner_->Call(&v1::DatasetService::Stub::OpenUpload, request).status.error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(UploadTest, SizesAboveALimitAreRefusedWithTheLimitsName) {
  v1::GetServerInfoRequest ask;
  const v1::Limits limits = owner_->Call(&v1::ServerService::Stub::GetServerInfo, ask).value.limits();
  const auto open = [this](const v1::OpenUploadRequest& request) {
    return owner_->Call(&v1::DatasetService::Stub::OpenUpload, request).status;
  };
  const auto expect_limit = [](const grpc::Status& status, const std::string& limit, int64_t maximum) {
    EXPECT_THAT(status, IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED)) << limit;
    EXPECT_EQ(ErrorMetadata(status, "limit"), limit);
    EXPECT_EQ(ErrorMetadata(status, "maximum"), absl::StrCat(maximum));
  };
  v1::OpenUploadRequest request = OpenRequest(tenant_.name, bytes_, graph_.sizes);
  request.set_size_bytes(limits.max_upload_bytes() + 1);
  expect_limit(open(request), "max_upload_bytes", limits.max_upload_bytes());
  request = OpenRequest(tenant_.name, bytes_, graph_.sizes);
  request.set_node_count(limits.max_nodes() + 1);
  expect_limit(open(request), "max_nodes", limits.max_nodes());
  request = OpenRequest(tenant_.name, bytes_, graph_.sizes);
  request.set_feature_count(limits.max_features() + 1);
  expect_limit(open(request), "max_features", limits.max_features());
  request = OpenRequest(tenant_.name, bytes_, graph_.sizes);
  request.set_class_count(limits.max_classes() + 1);
  expect_limit(open(request), "max_classes", limits.max_classes());
}

TEST_F(UploadTest, SizesThatAreNotPositiveAreInvalidFields) {
  for (const char* field : {"size_bytes", "node_count", "feature_count", "class_count"}) {
    for (const int64_t bad : {int64_t{0}, int64_t{-5}}) {
      v1::OpenUploadRequest request = OpenRequest(tenant_.name, bytes_, graph_.sizes);
      request.GetReflection()->SetInt64(&request, request.GetDescriptor()->FindFieldByName(field), bad);
      const auto answer = owner_->Call(&v1::DatasetService::Stub::OpenUpload, request);
      EXPECT_THAT(answer.status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD)) << field << bad;
      EXPECT_EQ(ErrorMetadata(answer.status, "field"), field);
    }
  }
}

TEST_F(UploadTest, IdsThatAreNotIdsAreRefused) {
  for (const char* id : {"../etc", "Upper", "-dash", "with space", "a/b", "\xc3\xa9"}) {
    v1::OpenUploadRequest request = OpenRequest(tenant_.name, bytes_, graph_.sizes);
    request.set_dataset_id(id);
    EXPECT_THAT(owner_->Call(&v1::DatasetService::Stub::OpenUpload, request).status,
                IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD))
        << id;
  }
}

TEST_F(UploadTest, ACapAboveTheDefaultIsRefused) {
  v1::OpenUploadRequest request = OpenRequest(tenant_.name, bytes_, graph_.sizes);
  request.set_cap_epsilon(8.001);
  const auto epsilon = owner_->Call(&v1::DatasetService::Stub::OpenUpload, request);
  EXPECT_THAT(epsilon.status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::CAP_ABOVE_DEFAULT));
  EXPECT_NE(ErrorMetadata(epsilon.status, "max_epsilon"), "(absent)");
  request = OpenRequest(tenant_.name, bytes_, graph_.sizes);
  request.set_cap_delta(0.5);
  const auto delta = owner_->Call(&v1::DatasetService::Stub::OpenUpload, request);
  EXPECT_THAT(delta.status, IsError(grpc::StatusCode::FAILED_PRECONDITION, v1::CAP_ABOVE_DEFAULT));
  EXPECT_NE(ErrorMetadata(delta.status, "max_delta"), "(absent)");
}

TEST_F(UploadTest, TheSameContentUploadedAgainSharesTheBudgetAlsoAfterDeletion) {
  const std::string first = UploadGraph(*owner_, tenant_.name, graph_);
  const auto job = CreateJob(*owner_, JobRequest(first, 1));
  ASSERT_THAT(job.status, IsOk());
  ASSERT_EQ(WaitForJob(*owner_, job.value.name()).state(), v1::Job::SUCCEEDED);
  const v1::Budget spent = GetBudget(*owner_, first);
  ASSERT_GT(spent.posted_units(), 0);

  const auto again = UploadFile(*owner_, OpenRequest(tenant_.name, bytes_, graph_.sizes), bytes_);
  ASSERT_THAT(again.status, IsOk());
  EXPECT_TRUE(again.value.budget_shared());
  EXPECT_NE(again.value.dataset().name(), first);
  EXPECT_EQ(GetBudget(*owner_, again.value.dataset().name()).posted_units(), spent.posted_units());

  for (const std::string& name : {first, again.value.dataset().name()}) {
    v1::DeleteDatasetRequest remove;
    remove.set_name(name);
    remove.set_request_id(NewRequestId());
    ASSERT_THAT(owner_->Call(&v1::DatasetService::Stub::DeleteDataset, remove).status, IsOk());
  }
  EXPECT_EQ(DatasetCount(), 0);
  const auto revived = UploadFile(*owner_, OpenRequest(tenant_.name, bytes_, graph_.sizes), bytes_);
  ASSERT_THAT(revived.status, IsOk());
  EXPECT_TRUE(revived.value.budget_shared());
  EXPECT_EQ(GetBudget(*owner_, revived.value.dataset().name()).posted_units(), spent.posted_units());
  EXPECT_EQ(LedgerEntries(*owner_, revived.value.dataset().name()).size(), 3U);
}

TEST_F(UploadTest, TheSameContentOfAnotherTenantHasABudgetOfItsOwn) {
  UploadGraph(*owner_, tenant_.name, graph_);
  const TenantAccess other_tenant = server().NewTenant();
  const Client other = server().Owner(other_tenant);
  const auto answer = UploadFile(other, OpenRequest(other_tenant.name, bytes_, graph_.sizes), bytes_);
  ASSERT_THAT(answer.status, IsOk());
  EXPECT_FALSE(answer.value.budget_shared());
}

TEST_F(UploadTest, AnIdIsNeverUsedTwice) {
  v1::OpenUploadRequest request = OpenRequest(tenant_.name, bytes_, graph_.sizes);
  request.set_dataset_id("cities");
  const auto first = UploadFile(*owner_, request, bytes_);
  ASSERT_THAT(first.status, IsOk());
  EXPECT_EQ(first.value.dataset().name(), absl::StrCat(tenant_.name, "/datasets/cities"));
  request.set_request_id(NewRequestId());
  EXPECT_THAT(UploadFile(*owner_, request, bytes_).status,
              IsError(grpc::StatusCode::ALREADY_EXISTS, v1::RESOURCE_EXISTS));
  v1::DeleteDatasetRequest remove;
  remove.set_name(first.value.dataset().name());
  remove.set_request_id(NewRequestId());
  ASSERT_THAT(owner_->Call(&v1::DatasetService::Stub::DeleteDataset, remove).status, IsOk());
  request.set_request_id(NewRequestId());
  EXPECT_THAT(UploadFile(*owner_, request, bytes_).status,
              IsError(grpc::StatusCode::ALREADY_EXISTS, v1::RESOURCE_EXISTS));
}

TEST_F(UploadTest, TheDigestKeyIsShownAlsoToWhoMayNotReadTheBudget) {
  const TenantAccess tenant = server().NewTenant();
  v1::CreateTokenRequest request = TokenRequest(tenant.name, v1::OWNER);
  request.mutable_token()->add_scopes(v1::UPLOAD);
  const auto made = server().Operator().Call(&v1::OperatorService::Stub::CreateToken, request);
  ASSERT_THAT(made.status, IsOk());
  const std::string file = server().Scratch("key-shown.npz");
  ASSERT_EQ(server().Dpar("", {"graph", "generate", "-o", file, "--nodes", "200"}).exit_code, 0);
  const CommandResult result = server().Dpar(made.value.secret(), {"upload", file, "--name", "sealed"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, ::testing::ContainsRegex("digest key  [0-9a-f]{64}\n"));
  EXPECT_THAT(result.out, ::testing::Not(::testing::HasSubstr("\ncap ")));
  EXPECT_THAT(result.err, ::testing::HasSubstr("its cap could not be asked for"));
  EXPECT_THAT(result.err, ::testing::HasSubstr("dpar population show sealed"));
}

TEST_F(UploadTest, TheDigestKeyOpensTheContentDigest) {
  const auto answer = UploadFile(*owner_, OpenRequest(tenant_.name, bytes_, graph_.sizes), bytes_);
  ASSERT_THAT(answer.status, IsOk());
  const auto key = HexDecode(answer.value.digest_key());
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(HmacSha256Hex(*key, CanonicalContent(graph_)), answer.value.dataset().content_digest());
}

}  // namespace
}  // namespace dpar::e2e
