// HTTP/1.1 on one address, plain or over TLS: for metrics and health, and for the operator's page.
#ifndef DPAR_SERVER_HTTP_HTTP_SERVER_H_
#define DPAR_SERVER_HTTP_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace dpar {

// A request has no body. Headers that say who asks (Authorization, Cookie, Host, Origin) stand in it at most once.
struct HttpRequest {
  std::string method;
  std::string path;
  std::multimap<std::string, std::string> query;  // decoded
  std::string peer;                               // "ipv4:10.0.0.1:50000", as gRPC has it
  // A header's value; empty when there is none. The name in any case.
  std::function<std::string(const std::string& name)> header;
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = "";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// Connections take no thread while they send, receive or say nothing; only handlers do. There is a limit on
// connections, in all and of one address, on the bytes of a request, and on the time for all of a request and for its
// answer. A connection has one request, so that what a caller sends behind it is never taken for another.
class HttpServer {
 public:
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;

  // `handler` runs on up to `threads` threads at once.
  HttpServer(Handler handler, size_t threads);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Takes TLS 1.2 and 1.3 only, with this certificate, what leads to its authority after it, and its key, in PEM.
  // Before Start. INVALID_ARGUMENT when these are no certificate and its key.
  absl::Status UseTls(const std::string& certificate_pem, const std::string& key_pem);
  // Starts to listen, once; the port, which the kernel picks for 0. `host` is a name or an address; IPv6 may stand in
  // brackets. UNAVAILABLE when the port is taken.
  absl::StatusOr<int> Start(const std::string& host, int port);
  // Closes all connections, and returns once no handler runs. There is no second Start.
  void Stop();

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_HTTP_HTTP_SERVER_H_
