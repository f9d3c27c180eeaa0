// HTTP for operators' tools, on a port of its own: GET of a few fixed paths, without authentication or TLS, so on
// loopback unless the operator says otherwise.
#ifndef DPAR_SERVER_OBSERVE_HTTP_SERVER_H_
#define DPAR_SERVER_OBSERVE_HTTP_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace dpar {

struct HttpRequest {
  std::string accept;  // the header
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Few threads, small requests within seconds, one a connection, no request bodies. Handlers run on several threads at
// once and answer from memory: one that waited would hold up the others.
class HttpServer {
 public:
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;

  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Answers GET of exactly `path`. Before Start only.
  void Handle(const std::string& path, Handler handler);
  // Starts to listen; the port, which the kernel picks for 0. `host` is a name or an address; IPv6 may stand in
  // brackets. UNAVAILABLE when the port is taken.
  absl::StatusOr<int> Start(const std::string& host, int port);
  void Stop();

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::thread thread_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_HTTP_SERVER_H_
