// Certificates and client authorities that are replaced under a running server.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/http/testing/http_client.h"
#include "tests/end_to_end/client_authority.h"
#include "tests/end_to_end/workflow.h"

namespace dpar::e2e {
namespace {

// An authority for servers, made with openssl as an operator would.
class ServerAuthority {
 public:
  explicit ServerAuthority(const TemporaryDirectory& directory, const std::string& name)
      : prefix_(directory.File(name)) {
    OpenSsl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj",
             "/CN=" + name, "-keyout", prefix_ + ".ca.key", "-out", ca()});
  }
  [[nodiscard]] std::string ca() const { return prefix_ + ".ca.pem"; }

  // Writes a certificate for 127.0.0.1 and its key over these files.
  void Issue(const std::string& certificate, const std::string& key) const {
    OpenSsl({"req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=server",
             "-keyout", key, "-out", prefix_ + ".csr"});
    WriteFile(prefix_ + ".ext", "subjectAltName=IP:127.0.0.1\n");
    OpenSsl({"x509", "-req", "-in", prefix_ + ".csr", "-CA", ca(), "-CAkey", prefix_ + ".ca.key", "-CAcreateserial",
             "-days", "30", "-extfile", prefix_ + ".ext", "-out", certificate});
  }

 private:
  const std::string prefix_;
};

class ReloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    old_.Issue(certificate_, key_);
    ASSERT_TRUE(server_.Start());
  }
  // Whether a caller who trusts this authority gets an answer, over gRPC and from the page.
  [[nodiscard]] bool Serves(const ServerAuthority& authority) const {
    const bool calls = Call(Channel(authority)).ok();
    const HttpReply page = SendHttp({.address = server_.page_address(), .tls = HttpTls{.ca_file = authority.ca()}});
    EXPECT_EQ(page.status == 200, calls) << "gRPC and the page show different certificates";
    return calls;
  }
  [[nodiscard]] std::shared_ptr<grpc::Channel> Channel(const ServerAuthority& authority,
                                                       const ClientCertificate& certificate = {}) const {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = ReadFile(authority.ca());
    tls.pem_cert_chain = certificate.certificate;
    tls.pem_private_key = certificate.key;
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(server_.address(), grpc::SslCredentials(tls), arguments);
  }
  // The owner of a new tenant acme, on the same connection.
  static Client NewOwner(const std::shared_ptr<grpc::Channel>& channel, const Client& operators) {
    v1::CreateTenantRequest request;
    request.set_tenant_id("acme");
    request.set_request_id(NewRequestId());
    EXPECT_THAT(operators.Call(&v1::OperatorService::Stub::CreateTenant, request).status, IsOk());
    const auto token = operators.Call(&v1::OperatorService::Stub::CreateToken, TokenRequest("tenants/acme", v1::OWNER));
    EXPECT_THAT(token.status, IsOk());
    return {channel, token.value.secret()};
  }
  [[nodiscard]] grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel) const {
    return Client(channel, server_.operator_token()).Call(&v1::ServerService::Stub::WhoAmI, v1::WhoAmIRequest()).status;
  }
  // SIGHUP, and what the log says of TLS afterwards.
  void Reload(const std::string& expected) {
    const std::string before = server_.log();
    server_.Signal(SIGHUP);
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (server_.log().find(expected, before.size()) == std::string::npos) {
      ASSERT_LT(absl::Now(), deadline) << "the log does not say: " << expected;
      absl::SleepFor(absl::Milliseconds(10));
    }
  }

  const TemporaryDirectory directory_;
  const ServerAuthority old_{directory_, "old"};
  const ServerAuthority new_{directory_, "new"};
  const std::string certificate_ = directory_.File("server.pem");
  const std::string key_ = directory_.File("server.key");
  ClientAuthority clients_;
  const std::string client_ca_ = directory_.File("clients.pem");
  TestServer server_{{"--tls-cert", certificate_, "--tls-key", key_, "--client-ca", CopyOf(clients_.file())}};

 private:
  [[nodiscard]] std::string CopyOf(const std::string& file) const {
    std::filesystem::copy_file(file, client_ca_);
    return client_ca_;
  }
};

TEST_F(ReloadTest, ANewCertificateIsShownToNewConnectionsAndOpenCallsGoOn) {
  EXPECT_TRUE(Serves(old_));
  const auto open = Channel(old_);
  const Client owner = NewOwner(open, Client(open, server_.operator_token()));
  const Graph graph = MakeGraph(1);
  const std::string bytes = GraphBytes(graph);
  const auto upload =
      owner.Call(&v1::DatasetService::Stub::OpenUpload, OpenRequest("tenants/acme", bytes, graph.sizes));
  ASSERT_THAT(upload.status, IsOk());
  const std::unique_ptr<grpc::ClientContext> context = MakeContext(owner.token());
  v1::WriteUploadResponse written;
  const auto stream = owner.stub<v1::DatasetService::Stub>().WriteUpload(context.get(), &written);
  v1::WriteUploadRequest piece;
  piece.set_name(upload.value.name());
  piece.set_data(bytes.substr(0, 10));
  ASSERT_TRUE(stream->Write(piece));
  new_.Issue(certificate_, key_);
  EXPECT_TRUE(Serves(old_)) << "before the signal nothing changes";
  Reload("TLS was opened again");
  EXPECT_TRUE(Serves(new_));
  EXPECT_FALSE(Serves(old_));
  EXPECT_THAT(Call(open), IsOk()) << "on the connection of before";
  piece.Clear();
  piece.set_data(bytes.substr(10));
  EXPECT_TRUE(stream->Write(piece)) << "in the middle of an upload";
  stream->WritesDone();
  EXPECT_THAT(stream->Finish(), IsOk());
  EXPECT_EQ(written.committed_offset(), static_cast<int64_t>(bytes.size()));
}

TEST_F(ReloadTest, ABadCertificateLeavesTheOldOneAndIsLogged) {
  const std::string good_key = ReadFile(key_);
  const std::string good_certificate = ReadFile(certificate_);
  new_.Issue(certificate_, directory_.File("other.key"));
  Reload("TLS stays as it was on SIGHUP: " + key_ + " is not the key of");
  EXPECT_TRUE(Serves(old_));
  WriteFile(certificate_, "nonsense");
  Reload("is not a file of certificates");
  EXPECT_TRUE(Serves(old_));
  std::filesystem::remove(certificate_);
  Reload("cannot be used");
  EXPECT_TRUE(Serves(old_));
  // Too weak for TLS, though a certificate.
  OpenSsl({"req", "-x509", "-newkey", "rsa:512", "-nodes", "-days", "30", "-subj", "/CN=weak", "-keyout", key_, "-out",
           certificate_});
  Reload("TLS stays as it was on SIGHUP");
  EXPECT_TRUE(Serves(old_));
  WriteFile(client_ca_, "nonsense");
  WriteFile(key_, good_key);
  WriteFile(certificate_, good_certificate);
  Reload(client_ca_ + " is not a file of certificates");
  EXPECT_TRUE(Serves(old_));
}

TEST_F(ReloadTest, NewClientAuthoritiesAreTrustedAndOldOnesNoMore) {
  ClientAuthority later;
  const ClientCertificate early_one = clients_.Issue("early", "URI:spiffe://acme/early");
  const ClientCertificate late_one = later.Issue("late", "URI:spiffe://acme/late");
  EXPECT_THAT(Call(Channel(old_, early_one)), IsOk());
  EXPECT_EQ(Call(Channel(old_, late_one)).error_code(), grpc::StatusCode::UNAVAILABLE);
  WriteFile(client_ca_, ReadFile(later.file()));
  Reload("TLS was opened again");
  EXPECT_THAT(Call(Channel(old_, late_one)), IsOk());
  EXPECT_EQ(Call(Channel(old_, early_one)).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ReloadTest, FiftyReloadsUnderCallsDropNone) {
  std::atomic<bool> stop = false;
  std::atomic<int> calls = 0;
  std::thread caller([&] {
    const auto kept = Channel(old_);
    while (!stop) {
      EXPECT_THAT(Call(kept), IsOk());
      EXPECT_THAT(Call(Channel(old_)), IsOk()) << "on a new connection";
      ++calls;
    }
  });
  for (int i = 0; i < 50; ++i) {
    old_.Issue(directory_.File("next.pem"), directory_.File("next.key"));
    std::filesystem::rename(directory_.File("next.pem"), certificate_);
    std::filesystem::rename(directory_.File("next.key"), key_);
    Reload("TLS was opened again");
  }
  stop = true;
  caller.join();
  EXPECT_GT(calls, 50);
}

}  // namespace
}  // namespace dpar::e2e
