#include "server/http/http_server.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <list>
#include <optional>
#include <thread>

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/error.h"
#include "core/mutex.h"

namespace dpar {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;
using TlsSocket = asio::ssl::stream<beast::tcp_stream>;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr uint32_t kMaxRequestBytes = 16 << 10;
constexpr size_t kMaxConnections = 256;
constexpr size_t kMaxOfAddress = 64;
// For a whole request with its handshake, and for its answer to begin.
constexpr std::chrono::seconds kPatience{5};
// An answer that is taken at this many bytes a second may take up to kMaxPatience.
constexpr size_t kSlowestBytes = 32 << 10;
constexpr std::chrono::seconds kMaxPatience{60};
// Pause after accept failed for lack of resources.
constexpr std::chrono::milliseconds kAcceptPause{100};

constexpr int kBadRequest = 400;
constexpr int kContentTooLarge = 413;
constexpr int kFault = 500;

HttpAnswer Refused(int status, absl::string_view why) { return {.status = status, .body = absl::StrCat(why, "\n")}; }

// Decodes a part of a query. Debian 12's Boost is older than 1.81, the first with a URL parser.
std::optional<std::string> Decoded(absl::string_view part) {
  std::string text;
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] != '%') {
      text += part[i] == '+' ? ' ' : part[i];
      continue;
    }
    const absl::string_view digits = part.substr(i + 1, 2);
    uint32_t byte = 0;
    if (digits.size() != 2 || !absl::c_all_of(digits, [](unsigned char c) { return absl::ascii_isxdigit(c); }) ||
        !absl::SimpleHexAtoi(digits, &byte)) {
      return std::nullopt;
    }
    text += static_cast<char>(byte);
    i += 2;
  }
  return text;
}

bool ReadTarget(absl::string_view target, HttpRequest& request) {
  const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(target, absl::MaxSplits('?', 1));
  request.path = std::string(halves.first);
  for (const absl::string_view parameter : absl::StrSplit(halves.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair = absl::StrSplit(parameter, absl::MaxSplits('=', 1));
    std::optional<std::string> name = Decoded(pair.first);
    std::optional<std::string> value = Decoded(pair.second);
    if (!name.has_value() || !value.has_value()) {
      return false;
    }
    request.query.emplace(*std::move(name), *std::move(value));
  }
  return true;
}

using ReadRequest = http::request<http::empty_body>;

HttpAnswer Answer(const ReadRequest& read, const std::string& peer, const HttpServer::Handler& handler) {
  const std::string length(read[http::field::content_length]);
  if (read.count(http::field::transfer_encoding) > 0 || !(length.empty() || length == "0")) {
    return Refused(kContentTooLarge, "send no body");
  }
  for (const char* name : {"Authorization", "Cookie", "Host", "Origin"}) {
    // Which of two counts is ambiguous.
    if (read.count(name) > 1) {
      return Refused(kBadRequest, absl::StrCat("send one ", name, " header"));
    }
  }
  HttpRequest request;
  request.method = std::string(read.method_string());
  request.peer = peer;
  request.header = [&read](const std::string& name) { return std::string(read[name]); };
  if (!ReadTarget({read.target().data(), read.target().size()}, request)) {
    return Refused(kBadRequest, "the query is not percent-encoded");
  }
  return handler(request);
}

http::response<http::string_body> ResponseOf(HttpAnswer answer, bool to_head) {
  http::response<http::string_body> response;
  response.result(static_cast<unsigned>(answer.status));
  response.set(http::field::cache_control, "no-store");
  response.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : answer.headers) {
    response.set(name, value);
  }
  response.keep_alive(false);
  if (response.result() != http::status::no_content && response.result() != http::status::not_modified) {
    response.set(http::field::content_type, answer.content_type);
    response.content_length(answer.body.size());
    response.body() = to_head ? "" : std::move(answer.body);
  }
  return response;
}

// A connection that waits for its caller.
class Waiting {
 public:
  explicit Waiting(std::string from) : address(std::move(from)) {}
  virtual ~Waiting() = default;
  virtual void CutOff() = 0;

  const std::string address;
  bool waits = true;  // until its request is there
};

class Places {
 public:
  bool Take(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    if (taken_ >= kMaxConnections || by_address_[address] >= kMaxOfAddress) {
      return false;
    }
    ++taken_;
    ++by_address_[address];
    return true;
  }
  // In place of a connection that was cut off and is about to go.
  bool TakeBeyond(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    ++taken_;
    ++by_address_[address];
    return true;
  }
  bool IsFullOf(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    const auto found = by_address_.find(address);
    return found != by_address_.end() && found->second >= kMaxOfAddress;
  }
  void Return(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    --taken_;
    if (--by_address_[address] == 0) {
      by_address_.erase(address);
    }
  }

 private:
  Mutex mutex_;
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, size_t> by_address_ ABSL_GUARDED_BY(mutex_);
};

// One request and its answer. Lives while an operation on its socket, or its handler, is under way.
template <typename Stream>
class Connection : public Waiting, public std::enable_shared_from_this<Connection<Stream>> {
 public:
  template <typename... Tls>
  Connection(tcp::socket socket, const tcp::endpoint& peer, Places& places, asio::thread_pool& pool,
             const HttpServer::Handler& handler, Tls&... tls)
      : Waiting(peer.address().to_string()),
        stream_(std::move(socket), tls...),
        peer_(peer.address().is_v6() ? absl::StrCat("ipv6:[", address, "]:", peer.port())
                                     : absl::StrCat("ipv4:", address, ":", peer.port())),
        places_(places),
        pool_(pool),
        handler_(handler) {
    parser_.header_limit(kMaxRequestBytes);
    // Bodies are refused, not read.
    parser_.body_limit(std::numeric_limits<uint64_t>::max());
  }
  ~Connection() override { places_.Return(address); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void CutOff() override { Lowest().close(); }

  void Begin() {
    Lowest().expires_after(kPatience);
    if constexpr (std::is_same_v<Stream, TlsSocket>) {
      stream_.async_handshake(asio::ssl::stream_base::server, [self = this->shared_from_this()](error_code error) {
        if (!error) {
          self->Read();
        }
      });
    } else {
      Read();
    }
  }

 private:
  beast::tcp_stream& Lowest() { return beast::get_lowest_layer(stream_); }

  void Read() {
    http::async_read_header(stream_, buffer_, parser_, [self = this->shared_from_this()](error_code error, size_t) {
      if (!error) {
        self->Handle();
      } else if (error.category() == http::make_error_code(http::error::bad_method).category() &&
                 error != http::error::end_of_stream && error != http::error::partial_message) {
        self->Write(Refused(kBadRequest, "this is no request of HTTP, or too long"));
      }
    });
  }

  void Handle() {
    waits = false;
    asio::post(pool_, [self = this->shared_from_this()] {
      HttpAnswer answer;
      try {
        answer = Answer(self->parser_.get(), self->peer_, self->handler_);
      } catch (const std::exception&) {
        answer = Refused(kFault, "the server met a fault of its own");
      }
      asio::post(self->Lowest().get_executor(),
                 [self, answer = std::move(answer)]() mutable { self->Write(std::move(answer)); });
    });
  }

  void Write(HttpAnswer answer) {
    response_ = ResponseOf(std::move(answer), parser_.get().method() == http::verb::head);
    serializer_.emplace(response_);
    write_time_ = std::chrono::steady_clock::now();
    WriteMore();
  }

  void WriteMore() {
    const std::chrono::seconds patience = kPatience + std::chrono::seconds(sent_ / kSlowestBytes);
    Lowest().expires_at(write_time_ + std::min(patience, kMaxPatience));
    http::async_write_some(stream_, *serializer_, [self = this->shared_from_this()](error_code error, size_t count) {
      self->sent_ += count;
      if (error) {
        return;
      }
      if (self->serializer_->is_done()) {
        self->Close();
      } else {
        self->WriteMore();
      }
    });
  }

  // Shuts TLS down properly, so that the other end can tell that nothing was cut off.
  void Close() {
    if constexpr (std::is_same_v<Stream, TlsSocket>) {
      stream_.async_shutdown([self = this->shared_from_this()](error_code) {});
    } else {
      error_code ignored;
      stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    }
  }

  Stream stream_;
  const std::string peer_;
  Places& places_;
  asio::thread_pool& pool_;
  const HttpServer::Handler& handler_;
  beast::flat_buffer buffer_{kMaxRequestBytes};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  SteadyTime write_time_;
  size_t sent_ = 0;
};

}  // namespace

// Members that connections use precede the context, which ends the connections.
class HttpServer::Library {
 public:
  Library(Handler handler, size_t threads) : handler_(std::move(handler)), pool_(threads) {}
  ~Library() {
    context_.stop();
    if (thread_.joinable()) {
      thread_.join();
    }
    pool_.stop();
    pool_.join();
  }

  absl::Status UseTls(const std::string& certificate_pem, const std::string& key_pem) ABSL_LOCKS_EXCLUDED(tls_mutex_) {
    auto tls = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
    asio::ssl::context& context = *tls;
    error_code certificate_error;
    error_code key_error;
    context.use_certificate_chain(asio::buffer(certificate_pem), certificate_error);
    context.use_private_key(asio::buffer(key_pem), asio::ssl::context::pem, key_error);
    SSL_CTX* const native = context.native_handle();
    SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    const bool usable = !certificate_error && !key_error && SSL_CTX_check_private_key(native) == 1 &&
                        SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION) == 1 &&
                        // TLS 1.2 with AEAD ciphers only.
                        SSL_CTX_set_cipher_list(native, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
    ERR_clear_error();
    if (!usable) {
      return InvalidField("tls_cert", "the operator's page cannot use the server's certificate and key for TLS");
    }
    const MutexLock lock(&tls_mutex_);
    tls_ = std::move(tls);
    return absl::OkStatus();
  }

  error_code Start(const std::string& host, int port) {
    error_code error;
    const auto endpoints = tcp::resolver(context_).resolve(host, std::to_string(port), tcp::resolver::passive, error);
    for (const auto& endpoint : endpoints) {
      error = Bind(endpoint.endpoint());
      if (!error) {
        Accept();
        thread_ = std::thread([this] { Run(); });
        break;
      }
    }
    return error;
  }

  [[nodiscard]] int port() const { return acceptor_.local_endpoint().port(); }

 private:
  error_code Bind(const tcp::endpoint& endpoint) {
    error_code error;
    acceptor_.close(error);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) {
      // Not SO_REUSEPORT: a second server on the same port would take half of the connections.
      acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
      acceptor_.bind(endpoint, error);
    }
    if (!error) {
      acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    }
    return error;
  }

  void Run() {
    const auto work = asio::make_work_guard(context_);
    // Only lack of memory throws here; that connection is lost, and no other.
    while (!context_.stopped()) {
      try {
        if (!accepting_) {
          Accept();
        }
        context_.run();
      } catch (const std::exception&) {
        continue;
      }
    }
  }

  void Accept() {
    accepting_ = false;
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      accepting_ = false;
      if (error) {
        pause_.expires_after(kAcceptPause);
        pause_.async_wait([this](error_code) { Accept(); });
        accepting_ = true;
        return;
      }
      Accept();
      Take(std::move(socket));
    });
    accepting_ = true;
  }

  // Cuts off the connection that waits longest, of this address where it has as many as it may; false without one.
  bool MakeRoom(const std::string& address) {
    const bool own = places_.IsFullOf(address);
    const auto oldest = absl::c_find_if(waiting_, [&](const std::weak_ptr<Waiting>& one) {
      const std::shared_ptr<Waiting> connection = one.lock();
      return connection != nullptr && (!own || connection->address == address);
    });
    if (oldest == waiting_.end()) {
      return false;
    }
    oldest->lock()->CutOff();
    waiting_.erase(oldest);
    return true;
  }

  void Take(tcp::socket socket) {
    error_code error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    const std::string address = error ? "" : peer.address().to_string();
    std::erase_if(waiting_, [](const std::weak_ptr<Waiting>& one) {
      const std::shared_ptr<Waiting> connection = one.lock();
      return connection == nullptr || !connection->waits;
    });
    // Callers who say nothing give way to new ones, so that health answers whatever others do.
    if (error || !(places_.Take(address) || (MakeRoom(address) && places_.TakeBeyond(address)))) {
      return;
    }
    absl::Cleanup give_back = [&] { places_.Return(address); };
    const auto begin = [&](auto connection) {
      std::move(give_back).Cancel();  // the connection gives it back
      waiting_.push_back(connection);
      connection->Begin();
    };
    if (const std::shared_ptr<asio::ssl::context> tls = Tls(); tls != nullptr) {
      begin(std::make_shared<Connection<TlsSocket>>(std::move(socket), peer, places_, pool_, handler_, *tls));
    } else {
      begin(std::make_shared<Connection<beast::tcp_stream>>(std::move(socket), peer, places_, pool_, handler_));
    }
  }

  std::shared_ptr<asio::ssl::context> Tls() ABSL_LOCKS_EXCLUDED(tls_mutex_) {
    const MutexLock lock(&tls_mutex_);
    return tls_;
  }

  const Handler handler_;
  Places places_;
  Mutex tls_mutex_;
  std::shared_ptr<asio::ssl::context> tls_ ABSL_GUARDED_BY(tls_mutex_);  // a connection needs it to begin, not to go on
  asio::io_context context_{1};
  asio::thread_pool pool_;
  tcp::acceptor acceptor_{context_};
  bool accepting_ = false;                     // of the context's thread, as is what follows
  std::list<std::weak_ptr<Waiting>> waiting_;  // oldest first
  asio::steady_timer pause_{context_};
  std::thread thread_;
};

HttpServer::HttpServer(Handler handler, size_t threads)
    : library_(std::make_unique<Library>(std::move(handler), threads)) {}

HttpServer::~HttpServer() = default;

absl::Status HttpServer::UseTls(const std::string& certificate_pem, const std::string& key_pem) {
  return library_->UseTls(certificate_pem, key_pem);
}

absl::StatusOr<int> HttpServer::Start(const std::string& host, int port) {
  absl::string_view name = host;
  if (absl::ConsumePrefix(&name, "[")) {
    absl::ConsumeSuffix(&name, "]");
  }
  const error_code error = library_->Start(std::string(name), port);
  if (error) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                     absl::StrCat("cannot listen for HTTP on ", host, ":", port, ": ", error.message()));
  }
  return library_->port();
}

void HttpServer::Stop() { library_.reset(); }

}  // namespace dpar
