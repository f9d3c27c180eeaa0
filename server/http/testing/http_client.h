// One HTTP request over a connection of its own, for tests.
#ifndef DPAR_SERVER_HTTP_TESTING_HTTP_CLIENT_H_
#define DPAR_SERVER_HTTP_TESTING_HTTP_CLIENT_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dpar {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// What a caller offers over TLS.
struct HttpTls {
  std::string ca_file = "";  // empty: any certificate is taken
  int max_version = 0;       // TLS1_2_VERSION and the like; 0 is the newest
  std::string ciphers = "";  // of TLS 1.2; empty is the library's choice
};

struct HttpCall {
  std::string address;  // host:port
  std::string path = "/";
  std::string method = "GET";
  HttpHeaders headers = {};
  std::string body = "";
  std::optional<HttpTls> tls = std::nullopt;
  std::string host = "";  // the header; empty: the address
};

struct HttpReply {
  int status = 0;  // 0 when no answer came
  std::string body = "";
  std::multimap<std::string, std::string> headers = {};  // by name in lower case

  // Empty when there is none.
  [[nodiscard]] std::string header(const std::string& name) const;
};

HttpReply SendHttp(const HttpCall& call);

}  // namespace dpar

#endif  // DPAR_SERVER_HTTP_TESTING_HTTP_CLIENT_H_
