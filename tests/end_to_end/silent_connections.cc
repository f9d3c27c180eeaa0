#include "tests/end_to_end/silent_connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dpar::e2e {
namespace {

sockaddr_in Address(const std::string& host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1) << host;
  return address;
}

// Connections that only wait need a descriptor each.
void AllowDescriptors(int count) {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::clamp<rlim_t>(static_cast<rlim_t>(count) + 1'000, limit.rlim_cur, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_GT(limit.rlim_cur, static_cast<rlim_t>(count)) << "too few descriptors for this test";
}

}  // namespace

SilentConnections::SilentConnections(const std::string& address, const std::string& from, int count, Kind kind)
    : context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free) {
  AllowDescriptors(count);
  const size_t colon = address.rfind(':');
  const sockaddr_in server = Address(address.substr(0, colon), std::stoi(address.substr(colon + 1)));
  const sockaddr_in own = Address(from, 0);
  const unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context_.get(), kHttp2, sizeof(kHttp2));
  for (int i = 0; i < count; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockets_.push_back(socket);
    const bool connected = bind(socket, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) == 0 &&
                           connect(socket, reinterpret_cast<const sockaddr*>(&server), sizeof(server)) == 0;
    EXPECT_TRUE(connected) << "connection " << i << ": " << std::strerror(errno);
    if (!connected) {
      break;
    }
    if (kind == Kind::kTls) {
      sessions_.emplace_back(SSL_new(context_.get()), &SSL_free);
      SSL_set_fd(sessions_.back().get(), socket);
      SSL_connect(sessions_.back().get());
    }
  }
}

SilentConnections::~SilentConnections() {
  sessions_.clear();
  for (const int socket : sockets_) {
    close(socket);
  }
}

}  // namespace dpar::e2e
