// HTTP from strangers: bytes to a real server on loopback, then the end of the stream.
//
// Any bytes get one answer of a known kind or none, and the next good request is answered.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/http/http_server.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

constexpr int kGood = 299;  // a status that only the handler gives

HttpAnswer Echo(const HttpRequest& request) {
  Require(!request.method.empty(), "a request has a method");
  Require(absl::StartsWith(request.peer, "ipv4:127.0.0.1:"), "a request has a peer");
  std::string body = absl::StrCat(request.path, "\n", request.header("Host"), "\n", request.header("Cookie"), "\n");
  for (const auto& [name, value] : request.query) {
    absl::StrAppend(&body, name, "=", value, "\n");
  }
  return {.status = kGood, .body = body};
}

int ServerPort() {
  static auto* const server = new HttpServer(Echo, 1);
  static const int port = server->Start("127.0.0.1", 0).value();
  return port;
}

std::string Exchange(const std::string& bytes) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(ServerPort()));
  Require(connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "the server accepts");
  // Its end leaves no port behind that waits.
  const linger at_once = {1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(socket, SHUT_WR);
  std::string answer;
  char chunk[4096];
  for (ssize_t got = 0; (got = recv(socket, chunk, sizeof(chunk), 0)) > 0;) {
    answer.append(chunk, static_cast<size_t>(got));
  }
  close(socket);
  return answer;
}

void Run(const std::string& bytes) {
  const std::string answer = Exchange(bytes);
  if (!answer.empty()) {
    int status = 0;
    Require(absl::StartsWith(answer, "HTTP/1.1 ") && absl::SimpleAtoi(answer.substr(9, 3), &status), "HTTP answers");
    Require(status == kGood || status == 400 || status == 413, absl::StrCat("a known answer, not ", status));
    Require(answer.find("\r\n\r\n") != std::string::npos, "an answer has an end of its headers");
  }
  static int turns = 0;
  if (++turns % 64 == 0) {
    Require(absl::StartsWith(Exchange("GET /good HTTP/1.1\r\nHost: here\r\n\r\n"), "HTTP/1.1 299"), "the server lives");
  }
}

}  // namespace
}  // namespace dpar::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dpar::fuzz::Run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
