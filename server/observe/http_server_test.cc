#include "server/observe/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "server/auth/tls.h"

namespace dpar {
namespace {

class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Handle("/a", [](const HttpRequest& request) {
      return HttpAnswer{.status = 503, .content_type = "text/x", .body = "accepts " + request.accept};
    });
    server_.Handle("/throws", [](const HttpRequest&) -> HttpAnswer { throw std::runtime_error("label 7"); });
    const absl::StatusOr<int> port = server_.Start("127.0.0.1", 0);
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *port;
  }

  HttpServer server_;
  int port_ = 0;
};

TEST_F(HttpServerTest, AHandlersAnswerGoesOut) {
  httplib::Client client("127.0.0.1", port_);
  const httplib::Result answer = client.Get("/a", {{"Accept", "text/y"}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/x");
  EXPECT_EQ(answer->get_header_value("Cache-Control"), "no-store");
  EXPECT_EQ(answer->body, "accepts text/y");
}

TEST_F(HttpServerTest, WhatAHandlerThrowsStaysInside) {
  httplib::Client client("127.0.0.1", port_);
  const httplib::Result answer = client.Get("/throws");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 500);
  EXPECT_EQ(answer->body, "the server met a fault of its own\n");
  EXPECT_FALSE(answer->has_header("EXCEPTION_WHAT"));
}

TEST_F(HttpServerTest, OtherPathsAreNotFound) {
  httplib::Client client("127.0.0.1", port_);
  for (const char* path : {"/", "/a/", "/b", "/a/../a", "/.*"}) {
    const httplib::Result answer = client.Get(path);
    ASSERT_TRUE(answer) << path;
    EXPECT_EQ(answer->status, 404) << path;
  }
  EXPECT_EQ(client.Get("/a?x=1")->status, 503) << "a query changes no path";
}

TEST_F(HttpServerTest, OtherMethodsAreNotAllowed) {
  httplib::Client client("127.0.0.1", port_);
  for (const httplib::Result& answer : {client.Head("/a"), client.Options("/a"), client.Delete("/a")}) {
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 405);
    EXPECT_EQ(answer->get_header_value("Allow"), "GET");
  }
}

TEST_F(HttpServerTest, ARequestWithABodyIsRefused) {
  httplib::Client client("127.0.0.1", port_);
  const httplib::Result answer = client.Get("/a", {{"Content-Length", "1"}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 413);
}

int Connect(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return socket;
}

// Sends `head` and then `more` until the other side has had enough. Stops by itself far above every bound that could be
// meant.
void SendWithoutEnd(int port, const std::string& head, const std::string& more) {
  constexpr size_t kFarTooMuch = 16 << 20;
  const int socket = Connect(port);
  size_t sent = 0;
  std::string next = head;
  while (sent < kFarTooMuch) {
    const ssize_t count = send(socket, next.data(), next.size(), MSG_NOSIGNAL);
    if (count <= 0) {
      break;
    }
    sent += static_cast<size_t>(count);
    next = more;
  }
  EXPECT_LT(sent, kFarTooMuch) << "it took everything";
  close(socket);
}

TEST_F(HttpServerTest, RequestsWithoutEndAreCutOffAndOthersAnswered) {
  const std::string line(4096, 'a');
  std::string headers;
  for (int i = 0; i < 500; ++i) {
    headers += "X-A: b\r\n";
  }
  SendWithoutEnd(port_, line, line);
  SendWithoutEnd(port_, "GET /a HTTP/1.1\r\n", headers);
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(60);
  const httplib::Result answer = client.Get("/a");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
}

TEST_F(HttpServerTest, ConnectionsThatSayNothingDoNotKeepOthersOutForLong) {
  // One more than there are threads.
  std::vector<int> silent;
  for (int i = 0; i < 5; ++i) {
    silent.push_back(Connect(port_));
  }
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(60);
  const httplib::Result answer = client.Get("/a");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  for (const int socket : silent) {
    close(socket);
  }
}

TEST_F(HttpServerTest, RangesDoNotMultiplyTheAnswer) {
  std::string ranges = "bytes=-";
  for (int i = 0; i < 2'000; ++i) {
    ranges += ",-";
  }
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(60);
  const httplib::Result plain = client.Get("/a");
  const httplib::Result answer = client.Get("/a", {{"Range", ranges}});
  ASSERT_TRUE(plain && answer);
  EXPECT_EQ(answer->status, plain->status);
  EXPECT_EQ(answer->body, plain->body);
}

TEST_F(HttpServerTest, APortThatIsTakenIsRefusedAndTheFirstServerGoesOn) {
  HttpServer second;
  const absl::StatusOr<int> port = second.Start("127.0.0.1", port_);
  EXPECT_EQ(port.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(port.status().message()), ::testing::HasSubstr("--http-listen"));
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(60);
  const httplib::Result answer = client.Get("/a");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
}

TEST_F(HttpServerTest, AfterStopNobodyAnswersAndStoppingAgainDoesNothing) {
  server_.Stop();
  server_.Stop();
  httplib::Client client("127.0.0.1", port_);
  EXPECT_FALSE(client.Get("/a"));
}

TEST(HttpServerStartTest, StartAndStopAtOnceManyTimes) {
  for (int i = 0; i < 50; ++i) {
    HttpServer server;
    ASSERT_TRUE(server.Start("127.0.0.1", 0).ok());
  }
}

// A server that also answers over TLS, with a certificate for localhost.
class TlsServerTest : public HttpServerTest {
 protected:
  void SetUp() override {
    // OpenSSL writes without asking for none; the server ignores it, too.
    std::signal(SIGPIPE, SIG_IGN);
    const absl::Time now = absl::Now();
    const CertifiedKey authority = MakeCertificateAuthority(now).value();
    pair_ = MakeServerCertificate(authority, {"localhost"}, now).value();
    HttpServerTest::SetUp();
  }
  absl::Status Serve() {
    return server_.HandleTls(pair_.certificate, pair_.key, [](const TlsRequest& request) {
      HttpAnswer answer{.status = 201, .body = request.method + " " + request.path + " " + request.header("x-a")};
      for (const auto& [name, value] : request.query) {
        answer.body += " " + name + "=" + value;
      }
      answer.headers = {{"X-Peer", request.peer.substr(0, request.peer.rfind(':'))}, {"Cache-Control", "no-cache"}};
      return answer;
    });
  }
  [[nodiscard]] std::unique_ptr<httplib::SSLClient> Client() const {
    auto client = std::make_unique<httplib::SSLClient>("127.0.0.1", port_);
    client->enable_server_certificate_verification(false);
    return client;
  }

  CertifiedKey pair_;
};

TEST_F(TlsServerTest, WhatComesOverTlsHasAHandlerOfItsOwn) {
  ASSERT_TRUE(Serve().ok());
  const std::unique_ptr<httplib::SSLClient> client = Client();
  const httplib::Result answer = client->Get("/a?x=1&y=%20z", {{"X-A", "b"}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->body, "GET /a b x=1 y= z");
  EXPECT_EQ(answer->get_header_value("X-Peer"), "ipv4:127.0.0.1");
  EXPECT_EQ(answer->get_header_value_count("Cache-Control"), 1U);
  EXPECT_EQ(answer->get_header_value("Cache-Control"), "no-cache");
  EXPECT_EQ(answer->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(client->Delete("/b")->body, "DELETE /b ");
  httplib::Client plain("127.0.0.1", port_);
  EXPECT_EQ(plain.Get("/a")->status, 503) << "plain requests go where they went";
}

TEST_F(TlsServerTest, ABodyOrATooLargeRequestIsRefused) {
  ASSERT_TRUE(Serve().ok());
  // The answer comes before the body is read, so that a client may see no more than the end of the connection.
  const httplib::Result with_body = Client()->Post("/a", "body", "text/plain");
  EXPECT_TRUE(!with_body || with_body->status == 413);
  const httplib::Result large = Client()->Get(
      "/a", {{"X-1", std::string(7000, 'a')}, {"X-2", std::string(7000, 'a')}, {"X-3", std::string(7000, 'a')}});
  EXPECT_TRUE(!large || large->status == 400);
}

TEST_F(TlsServerTest, WithoutAHandlerTlsIsClosed) {
  EXPECT_FALSE(Client()->Get("/a"));
  ASSERT_TRUE(Serve().ok());
  EXPECT_TRUE(Client()->Get("/a"));
  server_.EndTls();
  EXPECT_FALSE(Client()->Get("/a"));
  EXPECT_EQ(httplib::Client("127.0.0.1", port_).Get("/a")->status, 503);
}

TEST_F(TlsServerTest, OldVersionsAndNonsenseAreClosed) {
  ASSERT_TRUE(Serve().ok());
  const std::unique_ptr<httplib::SSLClient> old = Client();
  SSL_CTX_set_max_proto_version(old->ssl_context(), TLS1_1_VERSION);
  EXPECT_FALSE(old->Get("/a"));
  EXPECT_TRUE(Client()->Get("/a"));
}

TEST_F(TlsServerTest, WhatIsNoCertificateAndItsKeyIsRefused) {
  const CertifiedKey other =
      MakeServerCertificate(MakeCertificateAuthority(absl::Now()).value(), {"localhost"}, absl::Now()).value();
  const auto handler = [](const TlsRequest&) { return HttpAnswer{}; };
  EXPECT_TRUE(absl::IsInvalidArgument(server_.HandleTls("", "", handler)));
  EXPECT_TRUE(absl::IsInvalidArgument(server_.HandleTls("nonsense", pair_.key, handler)));
  EXPECT_TRUE(absl::IsInvalidArgument(server_.HandleTls(pair_.certificate, other.key, handler)));
}

}  // namespace
}  // namespace dpar
