// What a caller without a token can cost the server: memory, threads, seconds. SECURITY.md has the table.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/http/testing/http_client.h"
#include "tests/end_to_end/raw_call.h"
#include "tests/end_to_end/silent_connections.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kHealth[] = "/grpc.health.v1.Health/Check";

class StrangerTest : public SharedServerTest {
 protected:
  // By how much the server's memory rises at most while `attack` runs.
  template <typename Attack>
  static int64_t PeakGrowth(const Attack& attack) {
    EXPECT_TRUE(ForgetPeakMemory(server().pid()));
    const int64_t before = MemoryOf(server().pid(), "VmRSS");
    attack();
    return MemoryOf(server().pid(), "VmHWM") - before;
  }
};

TEST_F(StrangerTest, ACompressedMessageIsRefusedBeforeItIsInflated) {
  const std::string bomb(256 * kMebibyte, '\0');
  const auto channel = server().MakeChannel();
  std::vector<std::string> methods = {kHealth, "/no.such.Service/Method"};
  for (const std::string method : {"ServerService/WhoAmI", "DatasetService/WriteUpload", "TrainingService/WatchJob"}) {
    methods.push_back(absl::StrCat("/dpar.v1.", method));
  }
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    for (const std::string& method : methods) {
      grpc::Status status;
      const int64_t growth = PeakGrowth([&] {
        const auto context = MakeContext("");
        context->set_compression_algorithm(algorithm);
        status = RawCall(channel, method, bomb, *context).status;
      });
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method << ": " << status.error_message();
      EXPECT_LT(growth, 16 * kMebibyte) << method;
    }
  }
}

TEST_F(StrangerTest, UnreadMessagesTakeBoundedMemory) {
  // One message far beyond the limit, and many within it that come at once.
  const std::string large(1024 * kMebibyte, 'x');
  const std::string small(kMebibyte, 'x');
  const auto send = [](const std::string& message) {
    const auto context = MakeContext("");
    RawCall(server().MakeChannel(), "/dpar.v1.ServerService/WhoAmI", message, *context);
  };
  const int64_t by_one = PeakGrowth([&] { send(large); });
  EXPECT_LT(by_one, 320 * kMebibyte);
  const int64_t by_many = PeakGrowth([&] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 300; ++i) threads.emplace_back([&] { send(small); });
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_LT(by_many, 1024 * kMebibyte);
}

TEST_F(StrangerTest, ThereIsNoReflection) {
  const auto context = MakeContext("");
  EXPECT_EQ(RawCall(server().MakeChannel(), kReflection, "", *context).status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

// Opens streams to a method and says nothing on them; they end with this object.
class SilentStreams {
 public:
  SilentStreams(const std::shared_ptr<grpc::Channel>& channel, const std::string& method, int count,
                const std::string& token = "")
      : stub_(channel) {
    for (int i = 0; i < count; ++i) {
      contexts_.push_back(MakeContext(token, absl::Minutes(2)));
      calls_.push_back(stub_.PrepareCall(contexts_.back().get(), method, &queue_));
      calls_.back()->StartCall(calls_.back().get());
      Next();
    }
  }
  ~SilentStreams() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      contexts_[i]->TryCancel();
      grpc::Status status;
      calls_[i]->Finish(&status, nullptr);
      Next();
    }
    queue_.Shutdown();
  }

 private:
  void Next() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts_;
  std::vector<std::unique_ptr<grpc::GenericClientAsyncReaderWriter>> calls_;
};

TEST_F(StrangerTest, SilentStreamsHoldNoThread) {
  std::vector<std::string> methods = {kReflection, "/grpc.health.v1.Health/Watch", kHealth};
  for (const auto* method : AllMethods()) {
    methods.push_back(absl::StrCat("/", method->service()->full_name(), "/", method->name()));
  }
  const Client someone = server().Operator();
  for (const std::string& method : methods) {
    const SilentStreams streams(server().MakeChannel(), method, 520);
    const absl::Time start = absl::Now();
    EXPECT_THAT(someone.Call(&v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest()).status, IsOk()) << method;
    EXPECT_LT(absl::Now() - start, absl::Seconds(2)) << method;
  }
}

TEST(OverloadTest, WithoutAFreeThreadCallsAreWorthARetryAndReadinessSaysSo) {
  TestServer server({"--max-streams", "600"});
  ASSERT_TRUE(server.Start());
  const TenantAccess tenant = server.NewTenant();
  const SilentStreams streams(server.MakeChannel(), "/dpar.v1.DatasetService/WriteUpload", 520, tenant.owner_token);
  const Client someone = server.Owner(tenant);
  grpc::Status status;
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  do {
    status = someone.Call(&v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest()).status;
  } while (status.ok() && absl::Now() < deadline);
  EXPECT_THAT(status, IsError(grpc::StatusCode::UNAVAILABLE, v1::SERVER_UNAVAILABLE));
  HttpReply ready;
  do {
    ready = SendHttp({.address = server.metrics_address(), .path = "/readyz"});
  } while (ready.status == 200 && absl::Now() < deadline);
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, "threads\n");
}

int64_t DescriptorsOf(pid_t pid) {
  const std::filesystem::directory_iterator all(absl::StrCat("/proc/", pid, "/fd"));
  return std::distance(begin(all), end(all));
}

// What somebody with a token and health see while strangers hold connections.
void ExpectService(const TestServer& server, const Client& early) {
  const absl::Time start = absl::Now();
  EXPECT_THAT(early.Call(&v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest()).status, IsOk())
      << "on a connection from before";
  EXPECT_THAT(server.Operator().Call(&v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest()).status, IsOk())
      << "on a new connection";
  EXPECT_LT(absl::Now() - start, absl::Seconds(2));
  for (const std::string path : {"/livez", "/readyz"}) {
    const HttpReply reply = SendHttp({.address = server.metrics_address(), .path = path});
    EXPECT_EQ(reply.status, 200) << path << ": " << reply.body;
  }
}

// A server of its own for each test, so that memory which another took is not taken again unseen.
class SilenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.Start());
    early_ = std::make_unique<Client>(server_.Operator());
    ASSERT_THAT(early_->Call(&v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest()).status, IsOk());
    bytes_ = MemoryOf(server_.pid(), "VmRSS");
    descriptors_ = DescriptorsOf(server_.pid());
  }
  void ExpectLimited(const std::string& from, int count, SilentConnections::Kind kind) {
    const SilentConnections silent(server_.address(), from, count, kind);
    ExpectService(server_, *early_);
    const int64_t growth = MemoryOf(server_.pid(), "VmHWM") - bytes_;
    std::cout << count << " silent connections from " << from << ": " << growth / kMebibyte << " MiB, "
              << DescriptorsOf(server_.pid()) - descriptors_ << " descriptors\n";
    EXPECT_LT(growth, 160 * kMebibyte);
    EXPECT_LT(DescriptorsOf(server_.pid()) - descriptors_, 1'100);
  }

  TestServer server_;
  std::unique_ptr<Client> early_;
  int64_t bytes_ = 0;
  int64_t descriptors_ = 0;
};

TEST_F(SilenceTest, SilentConnectionsAreLimitedAndKeepNobodyOut) {
  // From another address than the callers', then from their own.
  ExpectLimited("127.0.0.2", 5'000, SilentConnections::Kind::kTcp);
  ExpectLimited("127.0.0.1", 5'000, SilentConnections::Kind::kTcp);
}

TEST_F(SilenceTest, ConnectionsThatFallSilentAfterTheHandshakeAreLimitedAndKeepNobodyOut) {
  ExpectLimited("127.0.0.1", 1'500, SilentConnections::Kind::kTls);
}

TEST(FewDescriptorsTest, ConnectionsLeaveHalfOfTheDescriptors) {
  rlimit own = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &own), 0);
  rlimit few = own;
  few.rlim_cur = 400;
  TestServer server;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  server.Launch();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &own), 0);
  ASSERT_TRUE(server.AwaitListening());
  const Client early = server.Operator();
  ASSERT_THAT(early.Call(&v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest()).status, IsOk());
  const SilentConnections silent(server.address(), "127.0.0.1", 600, SilentConnections::Kind::kTcp);
  ExpectService(server, early);
}

}  // namespace
}  // namespace dpar::e2e
