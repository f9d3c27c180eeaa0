// HTTP for operators, on a port of its own. What a connection begins with decides what it is: plain HTTP gets GET of a
// few fixed paths, without authentication, so on loopback unless the operator says otherwise; TLS gets what a handler
// of its own gives.
#ifndef DPAR_SERVER_OBSERVE_HTTP_SERVER_H_
#define DPAR_SERVER_OBSERVE_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace dpar {

struct HttpRequest {
  std::string accept;  // the header
};

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = "";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// A request that came over TLS. Its method may be any, its body is empty, and what says who asks stands in it once.
struct TlsRequest {
  std::string method;
  std::string path;
  std::multimap<std::string, std::string> query;
  std::string peer;  // "ipv4:10.0.0.1:50000", as gRPC has it
  // A header's value; empty when there is none. The name in any case.
  std::function<std::string(const std::string& name)> header;
};

// Few threads, small requests within seconds, one a connection, no request bodies. Handlers of plain requests run on
// several threads at once and answer from memory: one that waited would hold up the others. That of TLS has threads of
// its own, so that however long it takes, health is told.
class HttpServer {
 public:
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;
  using TlsHandler = std::function<HttpAnswer(const TlsRequest&)>;

  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Answers GET of exactly `path`. Before Start only.
  void Handle(const std::string& path, Handler handler);
  // Answers what comes over TLS, also while it listens already. Until then, and after EndTls, such connections are
  // closed. INVALID_ARGUMENT when these are no certificate and its key.
  absl::Status HandleTls(const std::string& certificate_pem, const std::string& key_pem, TlsHandler handler);
  // Returns once no handler of TLS runs, and none will.
  void EndTls();
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
