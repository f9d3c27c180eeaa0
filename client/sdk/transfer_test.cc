// Uploads, watches and downloads against a server in this process that breaks off on purpose.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/sdk/download.h"
#include "client/sdk/upload.h"
#include "client/sdk/watch.h"
#include "core/certificate/digest.h"
#include "core/mutex.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;

void IgnoreCheck(const v1::UploadCheck& /*check*/) {}
const CheckProgress kUnchecked = IgnoreCheck;

grpc::Status Unavailable() { return {grpc::StatusCode::UNAVAILABLE, "broken off by the test"}; }

// Commits what arrives; the first `breaks` streams break after two chunks.
class FakeDatasets final : public v1::DatasetService::Service {
 public:
  int breaks = 0;
  std::string received;
  std::vector<int64_t> offsets;
  std::string sha256;
  std::string authorization;
  // What GetUpload tells of the check, one after the other; FinishUpload waits until all of it was told.
  Mutex mutex;
  std::vector<std::string> check_stages;
  size_t check_stage = 0;

  grpc::Status OpenUpload(grpc::ServerContext* context, const v1::OpenUploadRequest* request,
                          v1::Upload* upload) override {
    const auto token = context->client_metadata().find("authorization");
    authorization = std::string(token->second.data(), token->second.size());
    upload->set_name("tenants/t/uploads/u");
    upload->set_size_bytes(request->size_bytes());
    return grpc::Status::OK;
  }
  grpc::Status WriteUpload(grpc::ServerContext* /*context*/, grpc::ServerReader<v1::WriteUploadRequest>* reader,
                           v1::WriteUploadResponse* response) override {
    v1::WriteUploadRequest request;
    for (int chunk = 0; reader->Read(&request); ++chunk) {
      if (chunk == 0) {
        offsets.push_back(request.offset());
      }
      if (chunk == 2 && breaks > 0) {
        --breaks;
        return Unavailable();
      }
      received += request.data();
    }
    response->set_committed_offset(static_cast<int64_t>(received.size()));
    return grpc::Status::OK;
  }
  grpc::Status GetUpload(grpc::ServerContext* /*context*/, const v1::GetUploadRequest* request,
                         v1::Upload* upload) override {
    upload->set_name(request->name());
    upload->set_committed_offset(static_cast<int64_t>(received.size()));
    const MutexLock lock(&mutex);
    if (check_stage < check_stages.size()) {
      upload->mutable_check()->set_stage(check_stages[check_stage++]);
    }
    return grpc::Status::OK;
  }
  grpc::Status FinishUpload(grpc::ServerContext* /*context*/, const v1::FinishUploadRequest* request,
                            v1::FinishUploadResponse* response) override {
    sha256 = request->sha256();
    const auto all_seen = [this] { return check_stage == check_stages.size(); };
    const MutexLock lock(&mutex);
    mutex.Await(Condition(&all_seen));
    response->mutable_dataset()->set_name("tenants/t/datasets/d");
    return grpc::Status::OK;
  }
};

// Each stream of a watch is one list of messages; streams without a terminal message end UNAVAILABLE. Each stream of a
// download sends at most `download_bytes`.
class FakeTraining final : public v1::TrainingService::Service {
 public:
  std::vector<std::vector<v1::WatchJobResponse>> streams;
  size_t stream = 0;
  bool hang = false;
  std::vector<int64_t> asked_after;
  std::string file;
  std::string announced_sha256;
  size_t download_bytes = 100;

  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::WatchJobResponse>* writer) override {
    asked_after.push_back(request->after_sequence());
    while (hang && !context->IsCancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (stream >= streams.size()) {
      return {grpc::StatusCode::NOT_FOUND, "no such job"};
    }
    bool terminal = false;
    for (const v1::WatchJobResponse& event : streams[stream++]) {
      writer->Write(event);
      terminal = event.terminal();
    }
    return terminal ? grpc::Status::OK : Unavailable();
  }
  grpc::Status DownloadModel(grpc::ServerContext* /*context*/, const v1::DownloadModelRequest* request,
                             grpc::ServerWriter<v1::DownloadModelResponse>* writer) override {
    const auto offset = static_cast<size_t>(request->offset());
    v1::DownloadModelResponse response;
    response.set_size_bytes(static_cast<int64_t>(file.size()));
    response.set_sha256(announced_sha256);
    response.set_data(file.substr(offset, download_bytes));
    writer->Write(response);
    return offset + download_bytes < file.size() ? Unavailable() : grpc::Status::OK;
  }
};

class TransferTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "/transfer_test";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    StartServer();
    connection_ = std::make_unique<Connection>(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials()), "dpar_x_secret");
  }

  // On the port it had, after the first time.
  void StartServer() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port_), grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&datasets_);
    builder.RegisterService(&training_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string WriteFile(size_t size) {
    content_.clear();
    for (size_t i = 0; i < size; ++i) {
      content_.push_back(static_cast<char>(i * 31 % 251));
    }
    std::ofstream(directory_ + "/file", std::ios::binary) << content_;
    return directory_ + "/file";
  }

  absl::StatusOr<v1::WatchJobResponse> Watch() {
    WatchOptions options;
    options.job = "tenants/t/jobs/j";
    return WatchJob(
        *connection_, options,
        [this](const v1::WatchJobResponse& event) {
          shown_.push_back(absl::StrCat(event.stage(), " ", event.completed()));
        },
        [this](const absl::Status& /*status*/, absl::Duration /*delay*/) {
          ++retries_;
          on_retry_();
        },
        cancellation_);
  }

  static v1::WatchJobResponse Event(int64_t sequence, const std::string& stage, int64_t completed, int64_t time) {
    v1::WatchJobResponse event;
    event.set_sequence(sequence);
    event.set_stage(stage);
    event.set_completed(completed);
    event.mutable_time()->set_seconds(time);
    event.set_terminal(stage == "succeeded");
    return event;
  }

  std::string directory_;
  std::string content_;
  int port_ = 0;
  FakeDatasets datasets_;
  FakeTraining training_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Connection> connection_;
  Cancellation cancellation_;
  std::vector<std::string> shown_;
  int retries_ = 0;
  std::function<void()> on_retry_ = [] {};
};

TEST_F(TransferTest, AnUploadSendsEveryByteOnceWithItsDigestAndTheToken) {
  UploadOptions options;
  options.path = WriteFile(1000);
  options.chunk_bytes = 64;
  int64_t last = -1;
  const auto response = UploadFile(
      *connection_, options,
      [&](int64_t sent, int64_t total) {
        EXPECT_EQ(total, 1000);
        last = sent;
      },
      kUnchecked);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->dataset().name(), "tenants/t/datasets/d");
  EXPECT_EQ(datasets_.received, content_);
  EXPECT_EQ(datasets_.sha256, Sha256Hex(content_));
  EXPECT_EQ(datasets_.authorization, "Bearer dpar_x_secret");
  EXPECT_EQ(last, 1000);
}

TEST_F(TransferTest, ABrokenUploadGoesOnFromTheCommittedOffset) {
  datasets_.breaks = 2;
  UploadOptions options;
  options.path = WriteFile(1000);
  options.chunk_bytes = 64;
  const auto response = UploadFile(
      *connection_, options, [](int64_t, int64_t) {}, kUnchecked);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(datasets_.received, content_);
  EXPECT_EQ(datasets_.sha256, Sha256Hex(content_));
  EXPECT_THAT(datasets_.offsets, ElementsAre(0, 128, 256));
}

TEST_F(TransferTest, TheServersCheckIsShownWhileItRuns) {
  datasets_.check_stages = {"waiting", "parsing", "sealing"};
  UploadOptions options;
  options.path = WriteFile(1000);
  options.chunk_bytes = 64;
  std::vector<std::string> stages;
  const auto response = UploadFile(
      *connection_, options, [](int64_t, int64_t) {},
      [&](const v1::UploadCheck& check) { stages.push_back(check.stage()); });
  ASSERT_TRUE(response.ok()) << response.status();
  // The answer may overtake the last one.
  ASSERT_GE(stages.size(), 2U);
  stages.resize(2);
  EXPECT_THAT(stages, ElementsAre("waiting", "parsing"));
}

TEST_F(TransferTest, AMissingFileIsRefusedBeforeAnyCall) {
  UploadOptions options;
  options.path = directory_ + "/missing";
  EXPECT_EQ(UploadFile(
                *connection_, options, [](int64_t, int64_t) {}, kUnchecked)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(datasets_.authorization.empty());
}

TEST_F(TransferTest, AWatchShowsEveryEventAndReturnsTheTerminalOne) {
  training_.streams = {{Event(1, "queued", 0, 10), Event(2, "training", 3, 11), Event(3, "succeeded", 0, 12)}};
  const auto last = Watch();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->stage(), "succeeded");
  EXPECT_THAT(shown_, ElementsAre("queued 0", "training 3", "succeeded 0"));
  EXPECT_EQ(retries_, 0);
}

TEST_F(TransferTest, AWatchReconnectsAndShowsNothingTwice) {
  training_.streams = {{Event(1, "queued", 0, 10), Event(2, "training", 3, 11)},
                       {Event(1, "queued", 0, 10), Event(2, "training", 3, 11), Event(3, "training", 9, 12)},
                       {Event(4, "succeeded", 0, 13)}};
  const auto last = Watch();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_THAT(shown_, ElementsAre("queued 0", "training 3", "training 9", "succeeded 0"));
  EXPECT_EQ(retries_, 2);
  EXPECT_THAT(training_.asked_after, ElementsAre(0, 2, 3));
}

TEST_F(TransferTest, AStateThatANewConnectionRepeatsUnderANewNumberIsNotShownAgain) {
  training_.streams = {{Event(500, "training", 90, 10)},
                       {Event(501, "training", 90, 20), Event(502, "queued", 0, 21), Event(503, "succeeded", 0, 22)}};
  ASSERT_TRUE(Watch().ok());
  EXPECT_THAT(shown_, ElementsAre("training 90", "queued 0", "succeeded 0"));
}

TEST_F(TransferTest, AWatchFindsAServerThatWasAwayForSeconds) {
  training_.streams = {{Event(500, "training", 90, 10)}, {Event(502, "succeeded", 0, 21)}};
  std::thread restart;
  on_retry_ = [&] {
    if (retries_ == 1) {
      server_->Shutdown(std::chrono::system_clock::now());
      restart = std::thread([this] {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        StartServer();
      });
    }
  };
  const auto last = Watch();
  restart.join();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_THAT(shown_, ElementsAre("training 90", "succeeded 0"));
}

TEST_F(TransferTest, AnAnswerOtherThanUnavailableEndsTheWatch) {
  EXPECT_EQ(Watch().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(retries_, 0);
}

TEST_F(TransferTest, CancellingFromAnotherThreadEndsTheWatch) {
  training_.hang = true;
  std::thread other([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancellation_.Cancel();
  });
  EXPECT_EQ(Watch().status().code(), absl::StatusCode::kCancelled);
  other.join();
  training_.hang = false;
}

TEST_F(TransferTest, ADownloadGoesOnWhereItBrokeAndIsChecked) {
  WriteFile(250);
  training_.file = content_;
  training_.announced_sha256 = Sha256Hex(content_);
  const std::string path = directory_ + "/model.npz";
  const auto file =
      DownloadModel(*connection_, "tenants/t/jobs/j", v1::DownloadModelRequest::WEIGHTS, path, [](int64_t, int64_t) {});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size_bytes, 250);
  EXPECT_EQ(file->sha256, Sha256Hex(content_));
  EXPECT_EQ(*Sha256File(path), Sha256Hex(content_));
}

TEST_F(TransferTest, CancellingTheConnectionEndsADownloadThatIsCutOffAgainAndAgainAndLeavesNothing) {
  Cancellation cancellation;
  Connection connection(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials()), "",
                        &cancellation);
  training_.file = std::string(1000, 'x');
  training_.announced_sha256 = Sha256Hex(training_.file);
  const auto file = DownloadModel(connection, "tenants/t/jobs/j", v1::DownloadModelRequest::WEIGHTS,
                                  directory_ + "/model.npz", [&](int64_t received, int64_t /*total*/) {
                                    if (received >= 300) {
                                      cancellation.Cancel();
                                    }
                                  });
  EXPECT_EQ(file.status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
  // And every later call.
  EXPECT_EQ(connection.GetUpload("tenants/t/uploads/u").status().code(), absl::StatusCode::kCancelled);
}

TEST_F(TransferTest, CancellingTheConnectionEndsAnUpload) {
  Cancellation cancellation;
  Connection connection(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials()), "t",
                        &cancellation);
  datasets_.breaks = 1000;
  UploadOptions options;
  options.path = WriteFile(100'000);
  options.chunk_bytes = 64;
  const auto response = UploadFile(
      connection, options,
      [&](int64_t sent, int64_t /*total*/) {
        if (sent >= 640) {
          cancellation.Cancel();
        }
      },
      kUnchecked);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(TransferTest, ADownloadWithAWrongDigestLeavesNothingBehind) {
  training_.file = "abc";
  training_.announced_sha256 = Sha256Hex("abd");
  const auto file = DownloadModel(*connection_, "tenants/t/jobs/j", v1::DownloadModelRequest::WEIGHTS,
                                  directory_ + "/model.npz", [](int64_t, int64_t) {});
  EXPECT_EQ(file.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

}  // namespace
}  // namespace dpar
