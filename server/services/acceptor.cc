#include "server/services/acceptor.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/keepalive.h"

namespace dpar {
namespace {

// Without a descriptor, a connection stays in the kernel's queue until the next try.
constexpr std::chrono::milliseconds kShortagePause{100};

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
  sockaddr_storage storage;
};

bool Set(int socket, int level, int option, int value) {
  return setsockopt(socket, level, option, &value, sizeof(value)) == 0;
}

// As gRPC writes it, so that calls can be matched with their connections.
std::string PeerOf(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address.any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &address.v4.sin_addr, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(address.v4.sin_port));
  }
  const int port = ntohs(address.v6.sin6_port);
  if (IN6_IS_ADDR_V4MAPPED(&address.v6.sin6_addr)) {
    inet_ntop(AF_INET, &address.v6.sin6_addr.s6_addr[12], text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", port);
  }
  inet_ntop(AF_INET6, &address.v6.sin6_addr, text, sizeof(text));
  const std::string scope =
      address.v6.sin6_scope_id == 0 ? "" : absl::StrCat("%25", static_cast<uint32_t>(address.v6.sin6_scope_id));
  return absl::StrCat("ipv6:%5B", text, scope, "%5D:", port);
}

// A listening socket, or -1 and errno.
int Bind(const addrinfo& info, bool any, int port) {
  SocketAddress address = {};
  std::memcpy(&address.storage, info.ai_addr, info.ai_addrlen);
  const bool v6 = info.ai_family == AF_INET6;
  (v6 ? address.v6.sin6_port : address.v4.sin_port) = htons(static_cast<uint16_t>(port));
  const int socket = ::socket(info.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) {
    return -1;
  }
  // Not SO_REUSEPORT: a second server on the same port would take half of the connections. [::] takes IPv4 too.
  const bool bound = Set(socket, SOL_SOCKET, SO_REUSEADDR, 1) &&
                     (!v6 || Set(socket, IPPROTO_IPV6, IPV6_V6ONLY, any ? 0 : 1)) &&
                     bind(socket, &address.any, info.ai_addrlen) == 0 && listen(socket, SOMAXCONN) == 0;
  if (!bound) {
    const int error = errno;
    close(socket);
    errno = error;
    return -1;
  }
  return socket;
}

int PortOf(int socket) {
  SocketAddress address = {};
  socklen_t size = sizeof(address);
  getsockname(socket, &address.any, &size);
  return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

}  // namespace

absl::StatusOr<int> Acceptor::Listen(const std::string& host, int port) {
  const bool bracketed = host.size() > 2 && host.front() == '[';
  const std::string name = bracketed ? host.substr(1, host.size() - 2) : host;
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int unresolved = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  std::string why = unresolved == 0 ? "" : gai_strerror(unresolved);
  bool taken = false;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    const int socket = Bind(*info, name == "::", port);
    if (socket >= 0) {
      listeners_.push_back(socket);
      port = PortOf(socket);
    } else {
      why = std::strerror(errno);
      taken = taken || errno == EADDRINUSE;
    }
  }
  if (listeners_.empty() || taken) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                     absl::StrCat("cannot listen on ", host, ":", port, ": ", why, "; is the port taken?"));
  }
  return port;
}

void Acceptor::Start(HandOver hand_over) {
  hand_over_ = std::move(hand_over);
  stop_event_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Loop(); });
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    eventfd_write(stop_event_, 1);
    thread_.join();
    close(stop_event_);
  }
  for (const int listener : listeners_) {
    close(listener);
  }
  listeners_.clear();
}

void Acceptor::Loop() {
  std::vector<pollfd> polled;
  for (const int listener : listeners_) {
    polled.push_back({listener, POLLIN, 0});
  }
  polled.push_back({stop_event_, POLLIN, 0});
  while (true) {
    const int ready = poll(polled.data(), polled.size(), -1);
    if (polled.back().revents != 0) {
      return;
    }
    for (size_t i = 0; ready > 0 && i < listeners_.size(); ++i) {
      if (polled[i].revents != 0) {
        Accept(listeners_[i]);
      }
    }
  }
}

void Acceptor::Accept(int listener) {
  SocketAddress address = {};
  socklen_t size = sizeof(address);
  const int socket = accept4(listener, &address.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      pollfd stop = {stop_event_, POLLIN, 0};
      poll(&stop, 1, kShortagePause.count());
    }
    return;
  }
  if (!connections_.Take(socket, PeerOf(address))) {
    close(socket);
    return;
  }
  Set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  Set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(absl::ToInt64Milliseconds(kPingTimeout)));
  hand_over_(listener, socket);
}

}  // namespace dpar
