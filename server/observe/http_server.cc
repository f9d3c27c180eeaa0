#include "server/observe/http_server.h"

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/error.h"

namespace dpar {
namespace {

constexpr size_t kThreads = 4;
constexpr int kMaxWaiting = 64;  // connections that no thread has taken up
constexpr size_t kMaxRequestBytes = 16 << 10;
// For all of a request, and for all of its answer.
constexpr absl::Duration kPatience = absl::Seconds(5);

constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;
constexpr int kContentTooLarge = 413;
constexpr int kFault = 500;

void Answer(int status, const std::string& content_type, const std::string& body, httplib::Response& response) {
  response.status = status;
  response.set_content(body, content_type);
}

// One request and its answer on a socket, within bounds that the library does not have: it would read lines and headers
// without end.
class BoundedStream final : public httplib::Stream {
 public:
  explicit BoundedStream(int socket) : socket_(socket), deadline_(absl::Now() + kPatience) {}

  [[nodiscard]] bool is_readable() const override { return next_ < received_ || Await(POLLIN); }
  [[nodiscard]] bool is_writable() const override { return Await(POLLOUT); }

  ssize_t read(char* to, size_t size) override {
    if (next_ == received_) {
      if (received_ == buffer_.size() || !Await(POLLIN)) {
        return -1;
      }
      const ssize_t count = recv(socket_, buffer_.data() + received_, buffer_.size() - received_, MSG_DONTWAIT);
      if (count <= 0) {
        return count;
      }
      received_ += static_cast<size_t>(count);
    }
    const size_t count = std::min(size, received_ - next_);
    std::copy_n(buffer_.data() + next_, count, to);
    next_ += count;
    return static_cast<ssize_t>(count);
  }

  ssize_t write(const char* from, size_t size) override {
    if (!answering_) {
      answering_ = true;
      deadline_ = absl::Now() + kPatience;
    }
    return Await(POLLOUT) ? send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL) : -1;
  }

  // Nobody is told where a request came from.
  void get_remote_ip_and_port(std::string& ip, int& port) const override { Nowhere(ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { Nowhere(ip, port); }
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  static void Nowhere(std::string& ip, int& port) {
    ip.clear();
    port = 0;
  }

  [[nodiscard]] bool Await(int16_t events) const {
    const absl::Duration left = std::max(absl::ZeroDuration(), deadline_ - absl::Now());
    pollfd ready = {socket_, events, 0};
    return poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left))) > 0;
  }

  const int socket_;
  absl::Time deadline_;
  bool answering_ = false;
  std::array<char, kMaxRequestBytes> buffer_;
  size_t next_ = 0;
  size_t received_ = 0;
};

// Hands connections to threads; one that finds too many waiting is taken up, and closed, where it was accepted.
class BoundedPool final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override {
    if (waiting_ >= kMaxWaiting) {
      task();
      return;
    }
    ++waiting_;
    threads_.enqueue([this, task = std::move(task)] {
      --waiting_;
      task();
    });
  }
  void shutdown() override { threads_.shutdown(); }

 private:
  std::atomic<int> waiting_ = 0;
  httplib::ThreadPool threads_{kThreads};
};

class BoundedServer final : public httplib::Server {
 public:
  void Listen() {
    accepting_ = std::this_thread::get_id();
    listen_after_bind();
    ended_ = true;
  }
  [[nodiscard]] bool ended() const { return ended_; }
  // Connections that still wait are closed without an answer.
  void StopListening() {
    stopping_ = true;
    stop();
  }

 private:
  // One request a connection, so that what a caller sends behind it is never taken for another.
  bool process_and_close_socket(socket_t socket) override {
    bool answered = false;
    if (!stopping_ && std::this_thread::get_id() != accepting_) {
      BoundedStream stream(socket);
      bool closed = false;
      // Without ranges: the library would give the whole answer once for each of thousands that a request can name.
      answered = process_request(stream, /*close_connection=*/true, closed,
                                 [](httplib::Request& request) { request.ranges.clear(); });
    }
    ::shutdown(socket, SHUT_RDWR);
    close(socket);
    return answered;
  }

  std::thread::id accepting_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> ended_ = false;
};

}  // namespace

struct HttpServer::Library {
  BoundedServer server;
  std::map<std::string, Handler> handlers;
};

// Paths are looked up here and not by the library, which takes them for regular expressions.
HttpServer::HttpServer() : library_(std::make_unique<Library>()) {
  httplib::Server& server = library_->server;
  server.new_task_queue = [] { return new BoundedPool(); };
  server.set_default_headers({{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}});
  // The library would allow a second server on the same port, which would take half of the connections.
  server.set_socket_options([](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  // The library would answer with what the exception says.
  server.set_exception_handler([](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
    Answer(kFault, HttpAnswer().content_type, "the server met a fault of its own\n", response);
  });
  server.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    const std::string plain = HttpAnswer().content_type;
    const auto handler = library_->handlers.find(request.path);
    const std::string length = request.get_header_value("Content-Length");
    if (request.has_header("Transfer-Encoding") || !(length.empty() || length == "0")) {
      Answer(kContentTooLarge, plain, "send no body\n", response);
    } else if (request.method != "GET") {
      response.set_header("Allow", "GET");
      Answer(kMethodNotAllowed, plain, "only GET is answered\n", response);
    } else if (handler == library_->handlers.end()) {
      Answer(kNotFound, plain, "there is nothing at this path\n", response);
    } else {
      const HttpAnswer answer = handler->second({request.get_header_value("Accept")});
      Answer(answer.status, answer.content_type, answer.body, response);
    }
    return httplib::Server::HandlerResponse::Handled;
  });
}

HttpServer::~HttpServer() { Stop(); }

void HttpServer::Handle(const std::string& path, Handler handler) { library_->handlers[path] = std::move(handler); }

absl::StatusOr<int> HttpServer::Start(const std::string& host, int port) {
  absl::string_view name = host;
  if (absl::ConsumePrefix(&name, "[")) {
    absl::ConsumeSuffix(&name, "]");
  }
  httplib::Server& server = library_->server;
  const std::string bare(name);
  const int bound = port == 0 ? server.bind_to_any_port(bare) : server.bind_to_port(bare, port) ? port : -1;
  if (bound <= 0) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                     absl::StrCat("cannot listen for HTTP on ", host, ":", port,
                                  "; is the port taken? --http-listen sets another, or none when it is empty"));
  }
  thread_ = std::thread([this] { library_->server.Listen(); });
  return bound;
}

void HttpServer::Stop() {
  if (!thread_.joinable()) {
    return;
  }
  // A thread that has not begun to listen would not see an earlier stop.
  while (!library_->server.is_running() && !library_->server.ended()) {
    std::this_thread::yield();
  }
  library_->server.StopListening();
  thread_.join();
}

}  // namespace dpar
