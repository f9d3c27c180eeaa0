#include "server/observe/http_server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <exception>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/error.h"

namespace dpar {
namespace {

constexpr size_t kThreads = 4;
constexpr time_t kTimeoutSeconds = 5;
// One, so that what a caller sends behind its request is never taken for another.
constexpr size_t kRequestsOfAConnection = 1;

constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;
constexpr int kContentTooLarge = 413;
constexpr int kFault = 500;

void Answer(int status, const std::string& content_type, const std::string& body, httplib::Response& response) {
  response.status = status;
  response.set_content(body, content_type);
}

}  // namespace

struct HttpServer::Library {
  httplib::Server server;
  std::map<std::string, Handler> handlers;
  std::atomic<bool> ended = false;
};

// Paths are looked up here and not by the library, which takes them for regular expressions.
HttpServer::HttpServer() : library_(std::make_unique<Library>()) {
  httplib::Server& server = library_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_read_timeout(kTimeoutSeconds);
  server.set_write_timeout(kTimeoutSeconds);
  server.set_keep_alive_timeout(kTimeoutSeconds);
  server.set_keep_alive_max_count(kRequestsOfAConnection);
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
  thread_ = std::thread([this] {
    library_->server.listen_after_bind();
    library_->ended = true;
  });
  return bound;
}

void HttpServer::Stop() {
  if (!thread_.joinable()) {
    return;
  }
  // A thread that has not begun to listen would not see an earlier stop.
  while (!library_->server.is_running() && !library_->ended) {
    std::this_thread::yield();
  }
  library_->server.stop();
  thread_.join();
}

}  // namespace dpar
