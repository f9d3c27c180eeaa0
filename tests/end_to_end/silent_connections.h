// Connections that hold on and say nothing.
#ifndef DPAR_TESTS_END_TO_END_SILENT_CONNECTIONS_H_
#define DPAR_TESTS_END_TO_END_SILENT_CONNECTIONS_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

namespace dpar::e2e {

class SilentConnections {
 public:
  enum class Kind {
    kTcp,  // not a byte
    kTls,  // the handshake of TLS, and nothing more
  };

  // Makes `count` connections to HOST:PORT from the address `from`; whether the server keeps them is its own affair.
  SilentConnections(const std::string& address, const std::string& from, int count, Kind kind);
  ~SilentConnections();
  SilentConnections(const SilentConnections&) = delete;
  SilentConnections& operator=(const SilentConnections&) = delete;

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::vector<std::unique_ptr<SSL, decltype(&SSL_free)>> sessions_;
  std::vector<int> sockets_;
};

}  // namespace dpar::e2e

#endif  // DPAR_TESTS_END_TO_END_SILENT_CONNECTIONS_H_
