#include "server/observe/http_server.h"

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/observe/bounded_stream.h"

namespace dpar {
namespace {

constexpr size_t kThreads = 4;
constexpr int kMaxWaiting = 64;  // connections that no thread has taken up
constexpr size_t kTlsThreads = 16;
// For the first byte, which tells what a connection is.
constexpr absl::Duration kFirstBytePatience = absl::Seconds(5);
// The first byte of a TLS connection: a record of its handshake. No method of HTTP begins with it.
constexpr char kTlsHandshake = 22;

constexpr int kBadRequest = 400;
constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;
constexpr int kContentTooLarge = 413;
constexpr int kFault = 500;

// Hands connections to threads; one that finds too many waiting is taken up, and closed, where it was accepted.
class BoundedPool final : public httplib::TaskQueue {
 public:
  explicit BoundedPool(size_t threads) : threads_(threads) {}

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
  httplib::ThreadPool threads_;
};

void CloseSocket(int socket) {
  ::shutdown(socket, SHUT_RDWR);
  close(socket);
}

// What a connection begins with, without taking it; nothing when nothing comes.
std::optional<char> FirstByte(int socket) {
  pollfd ready = {socket, POLLIN, 0};
  char first = 0;
  const bool arrived = poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(kFirstBytePatience))) > 0 &&
                       recv(socket, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
  return arrived ? std::optional<char>(first) : std::nullopt;
}

// The library's half of a server: it reads a request from a stream and writes its answer.
class RequestServer : public httplib::Server {
 public:
  bool Process(httplib::Stream& stream) {
    bool closed = false;
    // Without ranges: the library would give the whole answer once for each of thousands that a request can name.
    return process_request(stream, /*close_connection=*/true, closed,
                           [](httplib::Request& request) { request.ranges.clear(); });
  }
};

// What TLS connections are handed to. It never listens itself.
class TlsSide {
 public:
  TlsSide(TlsContext context, HttpServer::TlsHandler handler)
      : context_(std::move(context)), handler_(std::move(handler)) {
    SetUp(server_, [this](const httplib::Request& request, httplib::Response& response) {
      for (const char* name : {"Authorization", "Cookie", "Host", "Origin"}) {
        // Which of two counts is nothing to guess at.
        if (request.get_header_value_count(name) > 1) {
          return Answer({kBadRequest, HttpAnswer().content_type, absl::StrCat("send one ", name, " header\n")},
                        response);
        }
      }
      TlsRequest asked{request.method, request.path, request.params, PeerOf(request),
                       [&request](const std::string& name) { return request.get_header_value(name.c_str()); }};
      Answer(handler_(asked), response);
    });
  }
  ~TlsSide() {
    ended_ = true;
    threads_.shutdown();
  }

  // Takes the socket.
  void Take(int socket) {
    const std::thread::id taking = std::this_thread::get_id();
    threads_.enqueue([this, socket, taking] {
      // Too many wait: it is closed by whoever brought it.
      if (!ended_ && std::this_thread::get_id() != taking) {
        TlsStream stream(socket, context_.get());
        if (stream.Handshake()) {
          server_.Process(stream);
          stream.Close();
        }
      }
      CloseSocket(socket);
    });
  }

  using Respond = std::function<void(const httplib::Request&, httplib::Response&)>;
  // Has every request answered by `respond`, but for those with a body, which none has.
  static void SetUp(httplib::Server& server, Respond respond) {
    server.set_default_headers({{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}});
    // The library would answer with what the exception says.
    server.set_exception_handler([](const httplib::Request&, httplib::Response& response, const std::exception_ptr&) {
      Answer({kFault, HttpAnswer().content_type, "the server met a fault of its own\n"}, response);
    });
    server.set_pre_routing_handler(
        [respond = std::move(respond)](const httplib::Request& request, httplib::Response& response) {
          const std::string length = request.get_header_value("Content-Length");
          if (request.has_header("Transfer-Encoding") || !(length.empty() || length == "0")) {
            Answer({kContentTooLarge, HttpAnswer().content_type, "send no body\n"}, response);
          } else {
            respond(request, response);
          }
          return httplib::Server::HandlerResponse::Handled;
        });
  }

  static void Answer(const HttpAnswer& answer, httplib::Response& response) {
    response.status = answer.status;
    for (const auto& [name, value] : answer.headers) {
      // Instead of what is there by default.
      response.headers.erase(name);
      response.set_header(name, value);
    }
    response.set_content(answer.body, answer.content_type);
  }

 private:
  static std::string PeerOf(const httplib::Request& request) {
    const bool v6 = absl::StrContains(request.remote_addr, ':');
    return v6 ? absl::StrCat("ipv6:[", request.remote_addr, "]:", request.remote_port)
              : absl::StrCat("ipv4:", request.remote_addr, ":", request.remote_port);
  }

  const TlsContext context_;
  const HttpServer::TlsHandler handler_;
  RequestServer server_;
  std::atomic<bool> ended_ = false;
  BoundedPool threads_{kTlsThreads};
};

class BoundedServer final : public RequestServer {
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
  // Null ends it, once none of its handlers runs any more.
  void SetTls(std::unique_ptr<TlsSide> tls) {
    std::unique_ptr<TlsSide> before;
    {
      const absl::MutexLock lock(&mutex_);
      before = std::exchange(tls_, std::move(tls));
    }
  }

 private:
  // One request a connection, so that what a caller sends behind it is never taken for another.
  bool process_and_close_socket(socket_t socket) override {
    const bool refused = stopping_ || std::this_thread::get_id() == accepting_;
    const std::optional<char> first = refused ? std::nullopt : FirstByte(socket);
    if (first == kTlsHandshake) {
      const absl::MutexLock lock(&mutex_);
      if (tls_ != nullptr) {
        tls_->Take(socket);
        return true;
      }
    }
    bool answered = false;
    if (first.has_value() && first != kTlsHandshake) {
      BoundedStream stream(socket);
      answered = Process(stream);
    }
    CloseSocket(socket);
    return answered;
  }

  std::thread::id accepting_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> ended_ = false;
  absl::Mutex mutex_;
  std::unique_ptr<TlsSide> tls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

struct HttpServer::Library {
  BoundedServer server;
  std::map<std::string, Handler> handlers;
};

// Paths are looked up here and not by the library, which takes them for regular expressions.
HttpServer::HttpServer() : library_(std::make_unique<Library>()) {
  httplib::Server& server = library_->server;
  server.new_task_queue = [] { return new BoundedPool(kThreads); };
  // The library would allow a second server on the same port, which would take half of the connections.
  server.set_socket_options([](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  TlsSide::SetUp(server, [this](const httplib::Request& request, httplib::Response& response) {
    const std::string plain = HttpAnswer().content_type;
    const auto handler = library_->handlers.find(request.path);
    if (request.method != "GET") {
      TlsSide::Answer({kMethodNotAllowed, plain, "only GET is answered\n", {{"Allow", "GET"}}}, response);
    } else if (handler == library_->handlers.end()) {
      TlsSide::Answer({kNotFound, plain, "there is nothing at this path\n"}, response);
    } else {
      TlsSide::Answer(handler->second({request.get_header_value("Accept")}), response);
    }
  });
}

HttpServer::~HttpServer() { Stop(); }

void HttpServer::Handle(const std::string& path, Handler handler) { library_->handlers[path] = std::move(handler); }

absl::Status HttpServer::HandleTls(const std::string& certificate_pem, const std::string& key_pem, TlsHandler handler) {
  DPAR_ASSIGN_OR_RETURN(TlsContext context, MakeTlsContext(certificate_pem, key_pem));
  library_->server.SetTls(std::make_unique<TlsSide>(std::move(context), std::move(handler)));
  return absl::OkStatus();
}

void HttpServer::EndTls() { library_->server.SetTls(nullptr); }

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
