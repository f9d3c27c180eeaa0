// HTTP/1.1 on one address, plain or over TLS, for metrics, health and the operator's page.
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

// Has no body, and at most one each of Authorization, Cookie, Host and Origin.
struct HttpRequest {
  std::string method;
  std::string path;
  std::multimap<std::string, std::string> query;  // decoded
  std::string peer;                               // "ipv4:10.0.0.1:50000", as gRPC has it
  // A header's value; empty when absent. Names are case-insensitive.
  std::function<std::string(const std::string& name)> header;
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = "";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// Only handlers take threads; connections do not. Limits: connections in all and per address, bytes of a request, time
// for a request and its answer. A connection carries one request, so trailing bytes are never taken for another.
class HttpServer {
 public:
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;

  // `handler` runs on up to `threads` threads at once.
  HttpServer(Handler handler, size_t threads);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // TLS 1.2 and 1.3 only; PEM certificate with its chain, and key. Before Start, and again
  // for connections that begin later. INVALID_ARGUMENT on a mismatch, and nothing changes.
  absl::Status UseTls(const std::string& certificate_pem, const std::string& key_pem);
  // Listens, once; returns the port, picked by the kernel for 0. IPv6 hosts may be in brackets. UNAVAILABLE if taken.
  absl::StatusOr<int> Start(const std::string& host, int port);
  // Closes all connections and returns when no handler runs. Cannot be started again.
  void Stop();

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_HTTP_HTTP_SERVER_H_
