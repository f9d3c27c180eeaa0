// Files of a model, whole and in parts, and callers that stop taking them.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "core/certificate/digest.h"
#include "core/random/random.h"
#include "core/random/testing/fixed_random.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

struct Part {
  grpc::Status status;
  std::string bytes;
  int64_t size_bytes = -1;
  std::string sha256;
};

Part Fetch(const Client& client, const std::string& job, v1::DownloadModelRequest::Artifact artifact, int64_t offset,
           int64_t length) {
  const auto context = MakeContext(client.token());
  v1::DownloadModelRequest request;
  request.set_name(job);
  request.set_artifact(artifact);
  request.set_offset(offset);
  request.set_length(length);
  const auto reader = client.stub<v1::TrainingService::Stub>().DownloadModel(context.get(), request);
  Part part;
  v1::DownloadModelResponse message;
  while (reader->Read(&message)) {
    if (part.size_bytes < 0) {
      part.size_bytes = message.size_bytes();
      part.sha256 = message.sha256();
    }
    part.bytes += message.data();
  }
  part.status = reader->Finish();
  return part;
}

// A job that succeeded.
class DownloadTest : public ::testing::Test {
 protected:
  void Start(const std::vector<std::string>& flags) {
    server_ = std::make_unique<TestServer>(flags);
    ASSERT_TRUE(server_->Start());
    tenant_ = server_->NewTenant();
    owner_ = std::make_unique<Client>(server_->Owner(tenant_));
    const std::string dataset = UploadGraph(*owner_, tenant_.name, MakeGraph(950));
    const auto created = CreateJob(*owner_, JobRequest(dataset, 1));
    ASSERT_THAT(created.status, IsOk());
    job_ = created.value.name();
    ASSERT_EQ(WaitForJob(*owner_, job_).state(), v1::Job::SUCCEEDED);
  }

  std::unique_ptr<TestServer> server_;
  TenantAccess tenant_;
  std::unique_ptr<Client> owner_;
  std::string job_;
};

TEST_F(DownloadTest, RangesOfEveryFilePutTogetherAreTheFile) {
  Start({});
  dpar::testing::FixedRandom random(951);
  for (const auto artifact :
       {v1::DownloadModelRequest::WEIGHTS, v1::DownloadModelRequest::TORCHSCRIPT, v1::DownloadModelRequest::CERTIFICATE,
        v1::DownloadModelRequest::SAFETENSORS, v1::DownloadModelRequest::ONNX}) {
    const Part whole = Fetch(*owner_, job_, artifact, 0, 0);
    ASSERT_THAT(whole.status, IsOk());
    const auto size = static_cast<int64_t>(whole.bytes.size());
    EXPECT_EQ(whole.size_bytes, size);
    EXPECT_EQ(whole.sha256, Sha256Hex(whole.bytes));
    std::string together;
    while (static_cast<int64_t>(together.size()) < size) {
      const auto length = static_cast<int64_t>(1 + UniformBelow(random, static_cast<uint64_t>(size) / 3));
      const Part part = Fetch(*owner_, job_, artifact, static_cast<int64_t>(together.size()), length);
      ASSERT_THAT(part.status, IsOk());
      EXPECT_EQ(part.size_bytes, size);
      EXPECT_EQ(part.sha256, whole.sha256);
      EXPECT_LE(static_cast<int64_t>(part.bytes.size()), length);
      ASSERT_FALSE(part.bytes.empty());
      together += part.bytes;
    }
    EXPECT_EQ(together, whole.bytes);

    const Part end = Fetch(*owner_, job_, artifact, size, 0);
    EXPECT_THAT(end.status, IsOk());
    EXPECT_EQ(end.bytes, "");
    EXPECT_EQ(end.size_bytes, size);
    const Part past = Fetch(*owner_, job_, artifact, size + 1, 0);
    EXPECT_THAT(past.status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
    EXPECT_EQ(ErrorMetadata(past.status, "field"), "offset");
    const Part negative = Fetch(*owner_, job_, artifact, 0, -1);
    EXPECT_THAT(negative.status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
    EXPECT_EQ(ErrorMetadata(negative.status, "field"), "length");
  }
  v1::GetCertificateRequest request;
  request.set_name(job_);
  EXPECT_EQ(Fetch(*owner_, job_, v1::DownloadModelRequest::CERTIFICATE, 0, 0).bytes,
            owner_->Call(&v1::TrainingService::Stub::GetCertificate, request).value.envelope());
}

TEST_F(DownloadTest, AnArtifactThatThereIsNotIsRefused) {
  Start({});
  const Part part = Fetch(*owner_, job_, static_cast<v1::DownloadModelRequest::Artifact>(9), 0, 0);
  EXPECT_THAT(part.status, IsError(grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD));
  EXPECT_EQ(ErrorMetadata(part.status, "field"), "artifact");
}

TEST_F(DownloadTest, ACallerThatTakesNothingIsDropped) {
  Start({"--max-idle-seconds", "1"});
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 5);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const Client narrow(server_->MakeChannel(arguments), tenant_.owner_token);
  const auto context = MakeContext(tenant_.owner_token, absl::Minutes(5));
  v1::DownloadModelRequest request;
  request.set_name(job_);
  const auto reader = narrow.stub<v1::TrainingService::Stub>().DownloadModel(context.get(), request);
  const std::string line = "method=TrainingService/DownloadModel code=DEADLINE_EXCEEDED reason=LIMIT_EXCEEDED";
  const absl::Time deadline = absl::Now() + absl::Seconds(90);
  while (!absl::StrContains(server_->log(), line) && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(50));
  EXPECT_TRUE(absl::StrContains(server_->log(), line));
  EXPECT_TRUE(absl::StrContains(server_->log(), "max_idle_seconds"));
  v1::DownloadModelResponse message;
  while (reader->Read(&message)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // Its place is free, and the file is there for callers that read.
  EXPECT_THAT(Fetch(*owner_, job_, v1::DownloadModelRequest::WEIGHTS, 0, 0).status, IsOk());
}

}  // namespace
}  // namespace dpar::e2e
