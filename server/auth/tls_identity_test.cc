#include "server/auth/tls_identity.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace dpar {
namespace {

class TlsIdentityTest : public ::testing::Test {
 protected:
  struct Issued {
    CertifiedKey authority;
    TlsFiles files;
  };
  static Issued Issue(absl::Time now = absl::Now()) {
    Issued issued;
    issued.authority = MakeCertificateAuthority(now).value();
    issued.files.server = MakeServerCertificate(issued.authority, {"127.0.0.1"}, now).value();
    return issued;
  }
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    queue_ = builder.AddCompletionQueue();
    builder.AddListeningPort("127.0.0.1:0", identity_.MakeCredentials(), &port);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    address_ = absl::StrCat("127.0.0.1:", port);
  }
  void TearDown() override {
    server_->Shutdown();
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
    }
  }
  [[nodiscard]] std::shared_ptr<grpc::Channel> Connect(const CertifiedKey& authority) const {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = authority.certificate;
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(address_, grpc::SslCredentials(tls), arguments);
  }
  static bool Connects(grpc::Channel& channel) {
    return channel.WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(2));
  }

  const Issued first_ = Issue();
  TlsIdentity identity_{first_.files};
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(TlsIdentityTest, HandshakesAfterAReplacementShowTheNewCertificateAndOpenConnectionsStay) {
  const auto old_channel = Connect(first_.authority);
  ASSERT_TRUE(Connects(*old_channel));
  const Issued second = Issue(absl::Now() - absl::Hours(1));
  identity_.Replace(second.files);
  EXPECT_TRUE(Connects(*Connect(second.authority)));
  EXPECT_FALSE(Connects(*Connect(first_.authority)));
  EXPECT_EQ(old_channel->GetState(false), GRPC_CHANNEL_READY);
  EXPECT_EQ(identity_.Expiry(), CertificateExpiry(second.files.server.certificate));
  EXPECT_LT(identity_.Expiry(), CertificateExpiry(first_.files.server.certificate));
}

}  // namespace
}  // namespace dpar
