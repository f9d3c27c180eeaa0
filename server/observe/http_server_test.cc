#include "server/observe/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <stdexcept>
#include <string>

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

TEST_F(HttpServerTest, APortThatIsTakenIsRefusedAndTheFirstServerGoesOn) {
  HttpServer second;
  const absl::StatusOr<int> port = second.Start("127.0.0.1", port_);
  EXPECT_EQ(port.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(port.status().message()), ::testing::HasSubstr("--http-listen"));
  httplib::Client client("127.0.0.1", port_);
  EXPECT_EQ(client.Get("/a")->status, 503);
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
