#include "server/observe/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <vector>

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

}  // namespace
}  // namespace dpar
