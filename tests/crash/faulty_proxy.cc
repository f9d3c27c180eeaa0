#include "tests/crash/faulty_proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

namespace dpar::crash {
namespace {

constexpr int kPollMilliseconds = 5;
constexpr size_t kChunkBytes = 1 << 16;
constexpr size_t kSlowBytes = 256;  // in each round

// The directory in postgresql:///NAME?host=DIRECTORY&user=USER.
std::string SocketOf(const std::string& uri) {
  const size_t start = uri.find("host=") + 5;
  return absl::StrCat(uri.substr(start, uri.find('&', start) - start), "/.s.PGSQL.5432");
}

}  // namespace

FaultyProxy::FaultyProxy(const std::string& uri) : socket_path_(SocketOf(uri)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener_, SOMAXCONN), 0);
  EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Loop(); });
}

FaultyProxy::~FaultyProxy() {
  stop_ = true;
  thread_.join();
  for (Pipe& pipe : pipes_) {
    Reset(pipe);
  }
  close(listener_);
}

std::string FaultyProxy::UriOf(const std::string& uri) const {
  const size_t start = std::strlen("postgresql:///");
  return absl::StrCat("postgresql://127.0.0.1:", port_, "/", uri.substr(start, uri.find('?') - start), "?user=app");
}

void FaultyProxy::Accept() {
  const int caller = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (caller < 0) {
    return;
  }
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  socket_path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  Pipe pipe;
  pipe.caller = caller;
  pipe.server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connect(pipe.server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    Reset(pipe);
    return;
  }
  pipes_.push_back(std::move(pipe));
}

void FaultyProxy::Reset(Pipe& pipe) {
  const linger at_once = {1, 0};
  for (int* end : {&pipe.caller, &pipe.server}) {
    if (*end >= 0) {
      setsockopt(*end, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      close(*end);
      *end = -1;
    }
  }
  pipe.broken = true;
}

bool FaultyProxy::Forward(int from, int to, std::string& waiting, size_t at_once) {
  std::array<char, kChunkBytes> chunk;
  if (waiting.empty()) {
    const ssize_t got = recv(from, chunk.data(), std::min(at_once, chunk.size()), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      return false;
    }
    waiting.append(chunk.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  if (!waiting.empty() && to >= 0) {
    const ssize_t sent = send(to, waiting.data(), waiting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      return false;
    }
    waiting.erase(0, static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  return true;
}

void FaultyProxy::Move(Pipe& pipe, Mode mode) {
  if (mode == Mode::kHalfOpen && pipe.server >= 0) {
    close(pipe.server);
    pipe.server = -1;
  }
  if (pipe.server < 0) {
    // The network is whole again, and the other end knows nothing of this connection.
    if (mode == Mode::kPass || !Forward(pipe.caller, -1, pipe.to_server, kChunkBytes)) {
      Reset(pipe);
    }
    pipe.to_server.clear();
    return;
  }
  const size_t at_once = mode == Mode::kSlow ? kSlowBytes : kChunkBytes;
  if (!Forward(pipe.caller, pipe.server, pipe.to_server, at_once) ||
      !Forward(pipe.server, pipe.caller, pipe.to_caller, at_once)) {
    Reset(pipe);
  }
}

void FaultyProxy::Loop() {
  while (!stop_) {
    const Mode mode = mode_;
    if (cut_.exchange(false)) {
      for (Pipe& pipe : pipes_) {
        Reset(pipe);
      }
    }
    pipes_.remove_if([](const Pipe& pipe) { return pipe.broken; });
    if (mode == Mode::kStall) {
      absl::SleepFor(absl::Milliseconds(kPollMilliseconds));
      continue;
    }
    std::vector<pollfd> polled = {{listener_, POLLIN, 0}};
    for (const Pipe& pipe : pipes_) {
      polled.push_back({pipe.caller, POLLIN, 0});
      polled.push_back({pipe.server, POLLIN, 0});
    }
    poll(polled.data(), polled.size(), kPollMilliseconds);
    if (mode == Mode::kSlow) {
      absl::SleepFor(absl::Milliseconds(kPollMilliseconds));
    }
    if (mode != Mode::kHalfOpen) {
      Accept();
    }
    for (Pipe& pipe : pipes_) {
      Move(pipe, mode);
    }
  }
}

}  // namespace dpar::crash
