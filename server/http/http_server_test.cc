#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/mutex.h"
#include "server/auth/tls.h"
#include "server/http/testing/http_client.h"

namespace dpar {
namespace {

constexpr size_t kThreads = 2;
constexpr int kMaxOfAddress = 64;

HttpAnswer Echo(const HttpRequest& request) {
  if (request.path == "/throws") {
    throw std::runtime_error("label 7");
  }
  HttpAnswer answer{.status = 201, .content_type = "text/x"};
  answer.body = request.method + " " + request.path + " " + request.header("x-a");
  for (const auto& [name, value] : request.query) {
    answer.body += " " + name + "=" + value;
  }
  answer.headers = {{"X-Peer", request.peer.substr(0, request.peer.rfind(':'))}};
  if (request.path == "/cached") {
    answer.headers.emplace_back("Cache-Control", "no-cache");
  }
  if (request.path == "/none") {
    answer = {.status = 204};
  }
  return answer;
}

class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> port = server_.Start("127.0.0.1", 0);
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *port;
  }
  [[nodiscard]] HttpReply Send(HttpCall call) const {
    call.address = absl::StrCat("127.0.0.1:", port_);
    return SendHttp(call);
  }
  [[nodiscard]] HttpReply Get(const std::string& path, const HttpHeaders& headers = {}) const {
    return Send({.address = "", .path = path, .headers = headers});
  }

  HttpServer server_{Echo, kThreads};
  int port_ = 0;
};

TEST_F(HttpServerTest, AHandlerGetsTheRequestAndItsAnswerGoesOut) {
  const HttpReply answer = Get("/a?x=1&y=%20z+%2B&e", {{"X-A", "b"}});
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "GET /a b e= x=1 y= z +");
  EXPECT_EQ(answer.header("Content-Type"), "text/x");
  EXPECT_EQ(answer.header("Cache-Control"), "no-store");
  EXPECT_EQ(answer.header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(answer.header("X-Peer"), "ipv4:127.0.0.1");
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_EQ(Send({.address = "", .path = "/b", .method = "DELETE"}).body, "DELETE /b ");
  EXPECT_EQ(Send({.address = "", .path = "/b", .method = "HEAD"}).body, "");
}

TEST_F(HttpServerTest, AHandlersHeadersTakeThePlaceOfTheUsualOnes) {
  const HttpReply answer = Get("/cached");
  EXPECT_EQ(answer.headers.count("cache-control"), 1U);
  EXPECT_EQ(answer.header("Cache-Control"), "no-cache");
  const HttpReply none = Get("/none");
  EXPECT_EQ(none.status, 204);
  EXPECT_EQ(none.headers.count("content-length"), 0U);
}

TEST_F(HttpServerTest, WhatAHandlerThrowsStaysInside) {
  const HttpReply answer = Get("/throws");
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body, "the server met a fault of its own\n");
}

TEST_F(HttpServerTest, ARequestWithABodyIsRefused) {
  EXPECT_EQ(Get("/a", {{"Content-Length", "1"}}).status, 413);
  EXPECT_EQ(Get("/a", {{"Content-Length", "100000000000"}}).status, 413);
  EXPECT_EQ(Get("/a", {{"Content-Length", "0"}}).status, 201);
  EXPECT_EQ(Get("/a", {{"Transfer-Encoding", "chunked"}}).status, 413);
}

TEST_F(HttpServerTest, WhatCanBeReadInTwoWaysIsRefused) {
  for (const char* name : {"Authorization", "Cookie", "Host", "Origin"}) {
    const HttpReply answer = Get("/a", {{name, "a"}, {name, "b"}});
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(answer.body, absl::StrCat("send one ", name, " header\n"));
  }
  for (const char* path : {"/a?x=%", "/a?x=%1", "/a?%zz=1", "/a?x=%+1"}) {
    EXPECT_EQ(Get(path).body, "the query is not percent-encoded\n") << path;
  }
}

TEST_F(HttpServerTest, RangesDoNotMultiplyTheAnswer) {
  std::string ranges = "bytes=-";
  for (int i = 0; i < 2'000; ++i) {
    ranges += ",-";
  }
  const HttpReply answer = Get("/a", {{"Range", ranges}});
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "GET /a ");
}

class Socket {
 public:
  explicit Socket(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Socket() { close(socket_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool Send(const std::string& text) const {
    return send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // All that comes until the other side closes.
  [[nodiscard]] std::string Receive() const {
    std::string text;
    char more[4096];
    for (ssize_t count = 0; (count = recv(socket_, more, sizeof(more), 0)) > 0;) {
      text.append(more, static_cast<size_t>(count));
    }
    return text;
  }

 private:
  const int socket_;
};

TEST_F(HttpServerTest, AConnectionHasOneRequest) {
  const Socket socket(port_);
  ASSERT_TRUE(socket.Send("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"));
  const std::string text = socket.Receive();
  EXPECT_THAT(text, ::testing::HasSubstr("GET /a "));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("GET /b ")));
}

TEST_F(HttpServerTest, WhatIsNoRequestIsRefused) {
  const Socket socket(port_);
  ASSERT_TRUE(socket.Send("nonsense\r\n\r\n"));
  EXPECT_THAT(socket.Receive(), ::testing::StartsWith("HTTP/1.1 400 "));
}

// Sends `head` and then `more` until the other side has had enough. Stops by itself far above every bound that could be
// meant.
void SendWithoutEnd(int port, const std::string& head, const std::string& more) {
  constexpr size_t kFarTooMuch = 16 << 20;
  const Socket socket(port);
  size_t sent = 0;
  for (bool taken = socket.Send(head); taken && sent < kFarTooMuch; taken = socket.Send(more)) {
    sent += more.size();
  }
  EXPECT_LT(sent, kFarTooMuch) << "it took everything";
}

TEST_F(HttpServerTest, RequestsWithoutEndAreCutOffAndOthersAnswered) {
  const std::string line(4096, 'a');
  std::string headers;
  for (int i = 0; i < 500; ++i) {
    headers += "X-A: b\r\n";
  }
  SendWithoutEnd(port_, line, line);
  SendWithoutEnd(port_, "GET /a HTTP/1.1\r\n", headers);
  EXPECT_EQ(Get("/a").status, 201);
}

TEST_F(HttpServerTest, ARequestThatTricklesInIsCutOffAsAWhole) {
  const absl::Time start = absl::Now();
  const Socket socket(port_);
  ASSERT_TRUE(socket.Send("GET /a HTTP/1.1\r\n"));
  while (socket.Send("X-A: b\r\n") && absl::Now() - start < absl::Seconds(30)) {
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_GT(absl::Now() - start, absl::Seconds(4));
  EXPECT_LT(absl::Now() - start, absl::Seconds(15));
}

TEST_F(HttpServerTest, ConnectionsThatSayNothingKeepNobodyWaiting) {
  std::vector<std::unique_ptr<Socket>> silent;
  for (int i = 0; i < kMaxOfAddress - 1; ++i) {
    silent.push_back(std::make_unique<Socket>(port_));
  }
  const absl::Time start = absl::Now();
  EXPECT_EQ(Get("/a").status, 201);
  EXPECT_LT(absl::Now() - start, absl::Seconds(3)) << "before the silent ones are cut off";
}

TEST_F(HttpServerTest, SilentConnectionsGiveWayToNewOnes) {
  std::vector<std::unique_ptr<Socket>> silent;
  for (int i = 0; i < 4 * kMaxOfAddress; ++i) {
    silent.push_back(std::make_unique<Socket>(port_));
  }
  const absl::Time start = absl::Now();
  EXPECT_EQ(Get("/a").status, 201);
  EXPECT_EQ(Get("/a").status, 201);
  EXPECT_LT(absl::Now() - start, absl::Seconds(3)) << "before the silent ones run out of time";
}

TEST_F(HttpServerTest, APortThatIsTakenIsRefusedAndTheFirstServerGoesOn) {
  HttpServer second(Echo, kThreads);
  const absl::StatusOr<int> port = second.Start("127.0.0.1", port_);
  EXPECT_EQ(port.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(port.status().message(),
            absl::StrCat("cannot listen for HTTP on 127.0.0.1:", port_, ": Address already in use"));
  EXPECT_EQ(Get("/a").status, 201);
}

TEST_F(HttpServerTest, AfterStopNobodyAnswersAndStoppingAgainDoesNothing) {
  server_.Stop();
  server_.Stop();
  EXPECT_EQ(Get("/a").status, 0);
}

TEST(HttpServerStartTest, StartAndStopAtOnceManyTimes) {
  for (int i = 0; i < 50; ++i) {
    HttpServer server(Echo, kThreads);
    ASSERT_TRUE(server.Start(i % 2 == 0 ? "localhost" : "127.0.0.1", 0).ok());
  }
}

TEST(HttpServerStartTest, StopWaitsForTheHandlerThatRuns) {
  Notification began;
  std::atomic<bool> ended = false;
  HttpServer server(
      [&](const HttpRequest&) {
        began.Notify();
        absl::SleepFor(absl::Milliseconds(200));
        ended = true;
        return HttpAnswer{};
      },
      1);
  const int port = server.Start("127.0.0.1", 0).value();
  std::thread caller([&] { SendHttp({.address = absl::StrCat("127.0.0.1:", port)}); });
  began.WaitForNotification();
  server.Stop();
  EXPECT_TRUE(ended);
  caller.join();
}

class TlsServerTest : public HttpServerTest {
 protected:
  void SetUp() override {
    // The client's writes would raise it.
    std::signal(SIGPIPE, SIG_IGN);
    const absl::Time now = absl::Now();
    pair_ = MakeServerCertificate(MakeCertificateAuthority(now).value(), {"localhost"}, now).value();
    ASSERT_TRUE(server_.UseTls(pair_.certificate, pair_.key).ok());
    HttpServerTest::SetUp();
  }
  [[nodiscard]] int Status(const HttpTls& tls) const { return Send({.address = "", .path = "/a", .tls = tls}).status; }

  CertifiedKey pair_;
};

TEST_F(TlsServerTest, ARequestOverTlsIsAnswered) {
  const HttpReply answer = Send({.address = "", .path = "/a?x=1", .headers = {{"X-A", "b"}}, .tls = HttpTls{}});
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "GET /a b x=1");
  EXPECT_EQ(answer.header("X-Peer"), "ipv4:127.0.0.1");
}

TEST_F(TlsServerTest, ABodyOrATooLargeRequestIsRefused) {
  // The answer comes before the body is read, so that a client may see no more than the end of the connection.
  const int with_body = Send({.address = "", .method = "POST", .body = "body", .tls = HttpTls{}}).status;
  EXPECT_TRUE(with_body == 413 || with_body == 0) << with_body;
  const std::string large(7'000, 'a');
  const int too_large =
      Send({.address = "", .headers = {{"X-1", large}, {"X-2", large}, {"X-3", large}}, .tls = HttpTls{}}).status;
  EXPECT_TRUE(too_large == 400 || too_large == 0) << too_large;
}

TEST_F(TlsServerTest, OldVersionsAndWeakSuitesAndPlainRequestsAreClosed) {
  EXPECT_EQ(Get("/a").status, 0);
  EXPECT_EQ(Status({.max_version = TLS1_1_VERSION}), 0);
  EXPECT_EQ(Status({.max_version = TLS1_2_VERSION}), 201);
  EXPECT_EQ(Status({.max_version = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-AES256-SHA384"}), 0);
  EXPECT_EQ(Status({.max_version = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384"}), 201);
}

TEST_F(TlsServerTest, WhatIsNoCertificateAndItsKeyIsRefused) {
  const CertifiedKey other =
      MakeServerCertificate(MakeCertificateAuthority(absl::Now()).value(), {"localhost"}, absl::Now()).value();
  HttpServer server(Echo, kThreads);
  EXPECT_TRUE(absl::IsInvalidArgument(server.UseTls("", "")));
  EXPECT_TRUE(absl::IsInvalidArgument(server.UseTls("nonsense", pair_.key)));
  EXPECT_TRUE(absl::IsInvalidArgument(server.UseTls(pair_.certificate, other.key)));
  EXPECT_TRUE(server.UseTls(pair_.certificate, pair_.key).ok());
}

}  // namespace
}  // namespace dpar
