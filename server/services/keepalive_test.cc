#include "server/services/keepalive.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/mutex.h"
#include "dpar/v1/training.grpc.pb.h"

namespace dpar {
namespace {

// A stream that says nothing until it is let go.
class QuietTraining final : public v1::TrainingService::Service {
 public:
  grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* /*request*/,
                        grpc::ServerWriter<v1::WatchJobResponse>* /*writer*/) override {
    while (!let_go.WaitForNotificationWithTimeout(absl::Milliseconds(5)) && !context->IsCancelled()) {
    }
    return grpc::Status::OK;
  }

  Notification let_go;
};

class KeepaliveTest : public ::testing::Test {
 protected:
  void StartServer(const KeepaliveSettings* settings) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&training_);
    if (settings != nullptr) {
      SetKeepalive(*settings, builder);
    }
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void TearDown() override {
    if (!training_.let_go.HasBeenNotified()) {
      training_.let_go.Notify();
    }
    server_->Shutdown();
  }

  // Watches with a client that pings every 20 ms, for as long as `while_watching` takes.
  template <typename Function>
  grpc::Status WatchPinging(const Function& while_watching) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 60'000);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = v1::TrainingService::NewStub(
        grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(2)));
    const auto reader = stub->WatchJob(&context, {});
    std::thread other(while_watching);
    v1::WatchJobResponse message;
    EXPECT_FALSE(reader->Read(&message));
    const grpc::Status status = reader->Finish();
    other.join();
    return status;
  }

  int port_ = 0;
  QuietTraining training_;
  std::unique_ptr<grpc::Server> server_;
};

TEST(KeepaliveNumbersTest, OurOwnClientIsFarFromWhatTheServerRefuses) { EXPECT_GE(kPingPeriod, 2 * kLeastPingPeriod); }

// What the next test is worth: such a client really pings, and is disconnected for it by a server that is not told.
TEST_F(KeepaliveTest, WithoutOurSettingsAPingingClientOfAQuietStreamIsDisconnected) {
  StartServer(nullptr);
  const grpc::Status status = WatchPinging([] {});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
}

TEST_F(KeepaliveTest, AClientThatPingsAsOftenAsItMayKeepsItsQuietStream) {
  KeepaliveSettings settings;
  settings.least_period = absl::Milliseconds(10);
  StartServer(&settings);
  const grpc::Status status = WatchPinging([this] {
    // Some fifty pings, where three would do.
    absl::SleepFor(absl::Seconds(1));
    training_.let_go.Notify();
  });
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// A peer that took part in HTTP/2 until now, and answers nothing any more.
TEST_F(KeepaliveTest, AConnectionWhoseOtherEndVanishedIsClosed) {
  KeepaliveSettings settings;
  settings.period = absl::Milliseconds(50);
  settings.timeout = absl::Milliseconds(50);
  StartServer(&settings);
  const int peer = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  // The connection's preface and an empty SETTINGS frame.
  const std::string hello = std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + std::string("\0\0\0\x04\0\0\0\0\0", 9);
  ASSERT_EQ(send(peer, hello.data(), hello.size(), 0), static_cast<ssize_t>(hello.size()));
  char bytes[4096];
  ssize_t received = 1;
  pollfd readable = {.fd = peer, .events = POLLIN, .revents = 0};
  while (received > 0 && poll(&readable, 1, 60'000) == 1) {
    received = recv(peer, bytes, sizeof(bytes), 0);
  }
  EXPECT_EQ(received, 0) << "the connection is still open after a minute";
  close(peer);
}

}  // namespace
}  // namespace dpar
