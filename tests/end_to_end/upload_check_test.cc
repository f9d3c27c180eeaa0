// FinishUpload while it runs: it can be watched, and left. And what one upload takes of the server's memory.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/certificate/digest.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(90);
constexpr int64_t kNodes = 40'000;
constexpr int64_t kFeatures = 1'500;
constexpr int64_t kMaxMemory = int64_t{64} << 20;

class UploadCheckTest : public SharedServerTest {
 protected:
  void SetUp() override {
    SharedServerTest::SetUp();
    if (HasFatalFailure()) return;
    tenant_ = server().NewTenant();
    owner_ = std::make_unique<Client>(server().Owner(tenant_));
  }

  // An upload with all its bytes, which are few, while its check takes a second or more: a dense matrix of features
  // that are almost all zero, which compresses to next to nothing and is read twice.
  std::string SendSlowGraph() {
    std::map<std::string, NpyArray> arrays =
        GraphArrays(MakeGraph(900, {.nodes = kNodes, .classes = 3, .features = 30}));
    for (const char* name : {"attr_data", "attr_indices", "attr_indptr", "attr_shape"}) arrays.erase(name);
    std::vector<float> features(static_cast<size_t>(kNodes * kFeatures));
    features.front() = 1;
    arrays["attr_matrix"] = {{kNodes, kFeatures}, std::move(features)};
    bytes_ = NpzBytes(arrays);
    const auto opened =
        owner_->Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest(tenant_.name, bytes_, {kNodes, kFeatures, 3}));
    EXPECT_THAT(opened.status, IsOk());
    EXPECT_THAT(WriteBytes(*owner_, opened.value.name(), 0, bytes_).status, IsOk());
    return opened.value.name();
  }

  v1::Upload Get(const std::string& upload) {
    v1::GetUploadRequest request;
    request.set_name(upload);
    const auto answer = owner_->Call(&v1::DatasetService::Stub::GetUpload, request);
    EXPECT_THAT(answer.status, IsOk());
    return answer.value;
  }

  v1::FinishUploadRequest FinishRequest(const std::string& upload) const {
    v1::FinishUploadRequest request;
    request.set_name(upload);
    request.set_sha256(Sha256Hex(bytes_));
    request.set_request_id("finish");
    return request;
  }

  // Waits until the upload's check is gone.
  void AwaitNoCheck(const std::string& upload) {
    const absl::Time deadline = absl::Now() + kPatience;
    while (Get(upload).has_check() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(10));
    EXPECT_FALSE(Get(upload).has_check());
  }

  TenantAccess tenant_;
  std::unique_ptr<Client> owner_;
  std::string bytes_;
};

TEST_F(UploadCheckTest, ACheckCanBeWatchedAndLeftAndDoneAgain) {
  const std::string upload = SendSlowGraph();
  const v1::FinishUploadRequest request = FinishRequest(upload);
  {
    const auto context = MakeContext(owner_->token(), kPatience);
    grpc::Status status;
    std::thread caller([&] {
      v1::FinishUploadResponse response;
      status = owner_->stub<v1::DatasetService::Stub>().FinishUpload(context.get(), request, &response);
    });
    const absl::Time deadline = absl::Now() + kPatience;
    v1::Upload seen;
    while (!seen.has_check() && absl::Now() < deadline) seen = Get(upload);
    context->TryCancel();
    caller.join();
    EXPECT_TRUE(seen.has_check());
    EXPECT_EQ(seen.state(), v1::Upload::OPEN);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  }
  AwaitNoCheck(upload);
  EXPECT_EQ(Get(upload).state(), v1::Upload::OPEN);
  EXPECT_EQ(Get(upload).committed_offset(), static_cast<int64_t>(bytes_.size()));

  // The caller's deadline does the same.
  {
    const auto context = MakeContext(owner_->token(), absl::Milliseconds(50));
    v1::FinishUploadResponse response;
    EXPECT_EQ(owner_->stub<v1::DatasetService::Stub>().FinishUpload(context.get(), request, &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  AwaitNoCheck(upload);
  EXPECT_EQ(Get(upload).state(), v1::Upload::OPEN);

  const auto context = MakeContext(owner_->token(), kPatience);
  v1::FinishUploadResponse response;
  EXPECT_THAT(owner_->stub<v1::DatasetService::Stub>().FinishUpload(context.get(), request, &response), IsOk());
  EXPECT_EQ(response.dataset().node_count(), kNodes);
  EXPECT_EQ(Get(upload).state(), v1::Upload::FINISHED);
}

TEST_F(UploadCheckTest, ReceivingAFileTakesABoundedPartOfTheServersMemory) {
  constexpr int64_t kChunk = int64_t{1} << 20;
  constexpr int64_t kSize = 128 * kChunk;
  const auto send = [this](int64_t size) {
    const std::string chunk(static_cast<size_t>(kChunk), 'x');
    v1::OpenUploadRequest open = OpenRequest(tenant_.name, chunk, {1000, 10, 2});
    open.set_size_bytes(size);
    const auto opened = owner_->Call(&v1::DatasetService::Stub::OpenUpload, open);
    ASSERT_THAT(opened.status, IsOk());
    v1::WriteUploadResponse response;
    const auto context = MakeContext(owner_->token(), kPatience);
    const auto writer = owner_->stub<v1::DatasetService::Stub>().WriteUpload(context.get(), &response);
    v1::WriteUploadRequest message;
    message.set_name(opened.value.name());
    for (int64_t sent = 0; sent < size; sent += kChunk) {
      message.set_data(chunk);
      ASSERT_TRUE(writer->Write(message));
      message.clear_name();
    }
    writer->WritesDone();
    EXPECT_THAT(writer->Finish(), IsOk());
    EXPECT_EQ(response.committed_offset(), size);
  };
  const int64_t idle = MemoryOf(server().pid(), "VmRSS");
  ASSERT_GT(idle, 0);
  ASSERT_TRUE(ForgetPeakMemory(server().pid()));
  send(kSize);
  EXPECT_LE(MemoryOf(server().pid(), "VmHWM") - idle, kMaxMemory);
}

TEST_F(UploadCheckTest, AStreamSaysOnceAndFirstWhichUploadItIsFor) {
  const std::string bytes(3000, 'x');
  const auto opened =
      owner_->Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest(tenant_.name, bytes, {1000, 10, 2}));
  ASSERT_THAT(opened.status, IsOk());
  const std::string& upload = opened.value.name();
  const auto stream = [&](const std::vector<v1::WriteUploadRequest>& messages) {
    v1::WriteUploadResponse response;
    const auto context = MakeContext(owner_->token());
    const auto writer = owner_->stub<v1::DatasetService::Stub>().WriteUpload(context.get(), &response);
    for (const v1::WriteUploadRequest& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  };
  const auto message = [](const std::string& name, int64_t offset, const std::string& data) {
    v1::WriteUploadRequest request;
    request.set_name(name);
    request.set_offset(offset);
    request.set_data(data);
    return request;
  };
  const auto invalid = IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD);
  EXPECT_THAT(stream({}), invalid);
  EXPECT_THAT(stream({message("", 0, "x")}), invalid);
  EXPECT_THAT(stream({message(tenant_.name + "/datasets/d", 0, "x")}), invalid);
  EXPECT_EQ(Get(upload).committed_offset(), 0);
  EXPECT_THAT(stream({message(upload, 0, "abc"), message(upload, 0, "d")}), invalid);
  EXPECT_EQ(Get(upload).committed_offset(), 3) << "what came before the fault is kept";
  EXPECT_THAT(stream({message(upload, 3, "def"), message("", 6, "g")}), invalid);
  EXPECT_EQ(Get(upload).committed_offset(), 6);
  EXPECT_THAT(stream({message(upload, 6, ""), message("", 0, ""), message("", 0, "g")}), IsOk());
  EXPECT_EQ(Get(upload).committed_offset(), 7) << "chunks without bytes are none";
  EXPECT_THAT(stream({message(upload, -7, "h")}), IsError(grpc::StatusCode::OUT_OF_RANGE, v1::UPLOAD_OFFSET_MISMATCH));
  EXPECT_THAT(stream({message(upload, 7, std::string((1 << 20) + 1, 'x'))}),
              IsError(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::LIMIT_EXCEEDED));
  EXPECT_EQ(Get(upload).committed_offset(), 7);
}

TEST(IdleUploadTest, AWriterThatFallsSilentIsEndedAndWhatItSentIsKept) {
  TestServer server({"--max-idle-seconds", "1"});
  ASSERT_TRUE(server.Start());
  const TenantAccess tenant = server.NewTenant();
  const Client owner = server.Owner(tenant);
  const auto opened =
      owner.Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest(tenant.name, std::string(100, 'x'), {1000, 10, 2}));
  ASSERT_THAT(opened.status, IsOk());
  v1::WriteUploadResponse response;
  const auto context = MakeContext(owner.token(), kPatience);
  const auto writer = owner.stub<v1::DatasetService::Stub>().WriteUpload(context.get(), &response);
  v1::WriteUploadRequest message;
  message.set_name(opened.value.name());
  message.set_data("abc");
  ASSERT_TRUE(writer->Write(message));
  // Neither another chunk nor the end comes.
  EXPECT_NE(writer->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << "the server ends it, not the client";
  EXPECT_THAT(WriteBytes(owner, opened.value.name(), 3, "def").status, IsOk());
}

}  // namespace
}  // namespace dpar::e2e
