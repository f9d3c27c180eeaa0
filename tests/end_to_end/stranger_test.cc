// What a caller without a token can cost the server: memory, threads, seconds. SECURITY.md has the table.
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/http/testing/http_client.h"
#include "server/limits.h"
#include "tests/end_to_end/raw_call.h"
#include "tests/end_to_end/silent_connections.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kHealth[] = "/grpc.health.v1.Health/Check";

int64_t CountIn(pid_t pid, const std::string& directory) {
  std::error_code ignored;
  const std::filesystem::directory_iterator all(absl::StrCat("/proc/", pid, "/", directory), ignored);
  return std::distance(begin(all), end(all));
}

// The most that an attempt took of the server, and for how long somebody with a token waited meanwhile.
struct Cost {
  int64_t bytes = 0;
  int64_t threads = 0;
  int64_t descriptors = 0;
  absl::Duration wait = absl::ZeroDuration();
};

// A server of its own for each test, so that memory which another took is not taken again unseen.
class StrangerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.Start());
    early_ = std::make_unique<Client>(server_.Operator());
    ASSERT_THAT(WhoAmI(*early_), IsOk());
  }
  static grpc::Status WhoAmI(const Client& client) {
    return client.Call(&v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest()).status;
  }

  // Measures while `attack` runs. Somebody with a token calls all the time, on a connection from before and on new
  // ones.
  template <typename Attack>
  Cost CostOf(const std::string& name, const Attack& attack, absl::Duration longest_wait = absl::Seconds(5)) {
    const pid_t pid = server_.pid();
    const Cost before = {MemoryOf(pid, "VmRSS"), CountIn(pid, "task"), CountIn(pid, "fd")};
    EXPECT_TRUE(ForgetPeakMemory(pid));
    Cost cost;
    const auto look = [&] {
      const absl::Time start = absl::Now();
      EXPECT_THAT(WhoAmI(*early_), IsOk()) << name << ": on a connection from before";
      EXPECT_THAT(WhoAmI(server_.Operator()), IsOk()) << name << ": on a new connection";
      cost.wait = std::max(cost.wait, absl::Now() - start);
      cost.threads = std::max(cost.threads, CountIn(pid, "task") - before.threads);
      cost.descriptors = std::max(cost.descriptors, CountIn(pid, "fd") - before.descriptors);
    };
    std::atomic<bool> stop = false;
    std::thread looking([&] {
      while (!stop) {
        look();
        absl::SleepFor(absl::Milliseconds(20));
      }
    });
    attack();
    stop = true;
    looking.join();
    cost.bytes = MemoryOf(pid, "VmHWM") - before.bytes;
    std::cout << name << ": " << cost.bytes / kMebibyte << " MiB, " << cost.threads << " threads, " << cost.descriptors
              << " descriptors, others wait " << cost.wait << std::endl;
    EXPECT_LE(cost.threads, kMaxServerThreads) << name;
    EXPECT_LT(cost.wait, longest_wait) << name;
    return cost;
  }

  TestServer server_;
  std::unique_ptr<Client> early_;
};

TEST_F(StrangerTest, ACompressedMessageIsRefusedBeforeItIsInflated) {
  const std::string bomb(64 * kMebibyte, '\0');
  const auto channel = server_.MakeChannel();
  std::vector<std::string> methods = {kHealth, "/no.such.Service/Method"};
  for (const std::string method : {"ServerService/WhoAmI", "DatasetService/WriteUpload", "TrainingService/WatchJob"}) {
    methods.push_back(absl::StrCat("/dpar.v1.", method));
  }
  const Cost cost = CostOf("compressed messages", [&] {
    for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
      for (const std::string& method : methods) {
        const auto context = MakeContext("");
        context->set_compression_algorithm(algorithm);
        const grpc::Status status = RawCall(channel, method, bomb, *context).status;
        EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method << ": " << status.error_message();
      }
    }
  });
  EXPECT_LT(cost.bytes, 32 * kMebibyte);
}

TEST_F(StrangerTest, UnreadMessagesTakeBoundedMemory) {
  // One message far beyond the limit, and many within it that come at once.
  const std::string large(1024 * kMebibyte, 'x');
  const std::string small(kMebibyte, 'x');
  const auto send = [&](const std::string& message) {
    const auto context = MakeContext("");
    RawCall(server_.MakeChannel(), "/dpar.v1.ServerService/WhoAmI", message, *context);
  };
  EXPECT_LT(CostOf("one message of a gigabyte", [&] { send(large); }).bytes, 320 * kMebibyte);
  const Cost many = CostOf(
      "300 connections with a message of a mebibyte",
      [&] {
        std::vector<std::thread> threads;
        for (int i = 0; i < 300; ++i) threads.emplace_back([&] { send(small); });
        for (std::thread& thread : threads) thread.join();
      },
      /*longest_wait=*/absl::Seconds(15));
  EXPECT_LT(many.bytes, 1024 * kMebibyte);
}

TEST_F(StrangerTest, ThereIsNoReflection) {
  const auto context = MakeContext("");
  EXPECT_EQ(RawCall(server_.MakeChannel(), kReflection, "", *context).status.error_code(),
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
  const Cost cost = CostOf("520 silent streams to each method", [&] {
    for (const std::string& method : methods) {
      const SilentStreams streams(server_.MakeChannel(), method, 520);
      absl::SleepFor(absl::Milliseconds(100));
    }
  });
  // Each may take a thread for the moment in which it is refused.
  EXPECT_LT(cost.bytes, 128 * kMebibyte);
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

TEST_F(StrangerTest, SilentConnectionsAreLimitedAndKeepNobodyOut) {
  // From another address than the callers', then from their own.
  for (const std::string from : {"127.0.0.2", "127.0.0.1"}) {
    const Cost cost = CostOf("5,000 silent connections from " + from, [&] {
      const SilentConnections silent(server_.address(), from, 5'000, SilentConnections::Kind::kTcp);
      ExpectService(server_, *early_);
    });
    EXPECT_LT(cost.bytes, 128 * kMebibyte);
    EXPECT_LT(cost.descriptors, 2'100) << "beside those that were cut off a moment ago";
    EXPECT_LT(cost.threads, 64);
  }
}

TEST_F(StrangerTest, ConnectionsThatFallSilentAfterTheHandshakeAreLimitedAndKeepNobodyOut) {
  const Cost cost = CostOf("1,500 connections that are silent after the handshake", [&] {
    const SilentConnections silent(server_.address(), "127.0.0.1", 1'500, SilentConnections::Kind::kTls);
    ExpectService(server_, *early_);
  });
  EXPECT_LT(cost.bytes, 192 * kMebibyte);
  EXPECT_LT(cost.descriptors, 2'100);
  EXPECT_LT(cost.threads, 64);
}

TEST_F(StrangerTest, SilentConnectionsToHealthAndThePageGiveWay) {
  for (const std::string& address : {server_.metrics_address(), server_.page_address()}) {
    const Cost cost = CostOf("5,000 silent connections to " + address, [&] {
      const SilentConnections silent(address, "127.0.0.1", 5'000, SilentConnections::Kind::kTcp);
      ExpectService(server_, *early_);
    });
    EXPECT_LT(cost.bytes, 32 * kMebibyte);
    EXPECT_LT(cost.descriptors, 320);
    EXPECT_LT(cost.threads, 64);
  }
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
