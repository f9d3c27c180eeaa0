#include "server/http/testing/http_client.h"

#include <openssl/ssl.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cstdint>
#include <limits>

#include "absl/strings/ascii.h"

namespace dpar {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;

template <typename Stream>
HttpReply Exchange(Stream& stream, const HttpCall& call) {
  http::request<http::string_body> request;
  request.method_string(call.method);
  request.target(call.path);
  request.set(http::field::host, call.host.empty() ? call.address : call.host);
  for (const auto& [name, value] : call.headers) {
    request.insert(name, value);
  }
  if (!call.body.empty()) {
    request.body() = call.body;
    request.content_length(call.body.size());
  }
  http::write(stream, request);
  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.skip(call.method == "HEAD");
  parser.body_limit(std::numeric_limits<uint64_t>::max());
  http::read(stream, buffer, parser);
  HttpReply reply{static_cast<int>(parser.get().result_int()), parser.get().body(), {}};
  for (const auto& field : parser.get()) {
    reply.headers.emplace(absl::AsciiStrToLower(std::string(field.name_string())), std::string(field.value()));
  }
  return reply;
}

asio::ssl::context ContextFor(const HttpTls& tls) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  if (!tls.ca_file.empty()) {
    context.load_verify_file(tls.ca_file);
    context.set_verify_mode(asio::ssl::verify_peer);
  }
  SSL_CTX* const native = context.native_handle();
  SSL_CTX_set_max_proto_version(native, tls.max_version);
  if (!tls.ciphers.empty()) {
    SSL_CTX_set_cipher_list(native, tls.ciphers.c_str());
  }
  return context;
}

}  // namespace

std::string HttpReply::header(const std::string& name) const {
  const auto found = headers.find(absl::AsciiStrToLower(name));
  return found == headers.end() ? "" : found->second;
}

HttpReply SendHttp(const HttpCall& call) {
  try {
    asio::io_context io;
    tcp::socket socket(io);
    const size_t colon = call.address.rfind(':');
    asio::connect(socket, tcp::resolver(io).resolve(call.address.substr(0, colon), call.address.substr(colon + 1)));
    if (!call.tls.has_value()) {
      return Exchange(socket, call);
    }
    asio::ssl::context context = ContextFor(*call.tls);
    asio::ssl::stream<tcp::socket&> stream(socket, context);
    stream.handshake(asio::ssl::stream_base::client);
    return Exchange(stream, call);
  } catch (const boost::system::system_error&) {
    return {};
  }
}

}  // namespace dpar
