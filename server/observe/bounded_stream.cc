#include "server/observe/bounded_stream.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <climits>

#include "absl/time/clock.h"
#include "core/error.h"

namespace dpar {
namespace {

// For all of a request, and for all of its answer.
constexpr absl::Duration kPatience = absl::Seconds(5);
// An answer over TLS has longer while this much of it is taken in a second, but not for ever.
constexpr size_t kSlowestBytes = 32 << 10;
constexpr absl::Duration kMaxPatience = absl::Minutes(1);

using BioPtr = std::unique_ptr<BIO, decltype(&BIO_free)>;
using CertificatePtr = std::unique_ptr<X509, decltype(&X509_free)>;
using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

BioPtr Reading(const std::string& pem) { return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free}; }

absl::Status NoCertificate() {
  ERR_clear_error();
  return InvalidField("tls_cert", "the HTTP port cannot use the server's certificate and key for TLS");
}

// What leads from a server's certificate to its authority, for whoever does not know it.
bool AddChain(SSL_CTX* context, BIO* reading) {
  while (X509* const authority = PEM_read_bio_X509(reading, nullptr, nullptr, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, authority) != 1) {
      X509_free(authority);
      return false;
    }
  }
  ERR_clear_error();
  return true;
}

}  // namespace

BoundedStream::BoundedStream(int socket) : socket_(socket), deadline_(absl::Now() + kPatience) {}

ssize_t BoundedStream::read(char* to, size_t size) {
  if (next_ == received_) {
    if (received_ == buffer_.size() || !AwaitData()) {
      return -1;
    }
    const ssize_t count = Receive(buffer_.data() + received_, buffer_.size() - received_);
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

ssize_t BoundedStream::write(const char* from, size_t size) {
  if (!answer_time_.has_value()) {
    answer_time_ = absl::Now();
    deadline_ = *answer_time_ + AnswerPatience(0);
  }
  const ssize_t count = Await(POLLOUT) ? Send(from, size) : -1;
  if (count > 0) {
    sent_ += static_cast<size_t>(count);
    deadline_ = *answer_time_ + AnswerPatience(sent_);
  }
  return count;
}

absl::Duration BoundedStream::AnswerPatience(size_t /*sent*/) const { return kPatience; }

bool BoundedStream::Await(int16_t events) const {
  const absl::Duration left = std::max(absl::ZeroDuration(), deadline_ - absl::Now());
  pollfd ready = {socket_, events, 0};
  return poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left))) > 0;
}

ssize_t BoundedStream::Receive(char* to, size_t size) { return recv(socket_, to, size, MSG_DONTWAIT); }

ssize_t BoundedStream::Send(const char* from, size_t size) {
  return send(socket_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void BoundedStream::Nowhere(std::string& ip, int& port) {
  ip.clear();
  port = 0;
}

absl::StatusOr<TlsContext> MakeTlsContext(const std::string& certificate_pem, const std::string& key_pem) {
  TlsContext context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  const BioPtr certificates = Reading(certificate_pem);
  const BioPtr keys = Reading(key_pem);
  const CertificatePtr certificate(PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr), X509_free);
  const KeyPtr key(PEM_read_bio_PrivateKey(keys.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  if (context == nullptr || certificate == nullptr || key == nullptr ||
      SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_use_certificate(context.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1 || SSL_CTX_check_private_key(context.get()) != 1 ||
      !AddChain(context.get(), certificates.get())) {
    return NoCertificate();
  }
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  // A write may be taken in part, so that the deadline is looked at in between.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

TlsStream::TlsStream(int socket, SSL_CTX* context) : BoundedStream(socket), ssl_(SSL_new(context), SSL_free) {
  if (ssl_ != nullptr) {
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    SSL_set_fd(ssl_.get(), socket);
  }
}

bool TlsStream::AwaitWanted(int result) const {
  const int error = SSL_get_error(ssl_.get(), result);
  ERR_clear_error();
  return (error == SSL_ERROR_WANT_READ && Await(POLLIN)) || (error == SSL_ERROR_WANT_WRITE && Await(POLLOUT));
}

bool TlsStream::Handshake() {
  if (ssl_ == nullptr) {
    return false;
  }
  while (true) {
    const int result = SSL_accept(ssl_.get());
    if (result == 1) {
      return true;
    }
    if (!AwaitWanted(result)) {
      return false;
    }
  }
}

void TlsStream::Close() {
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

void TlsStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  std::array<char, INET6_ADDRSTRLEN> text = {};
  BoundedStream::get_remote_ip_and_port(ip, port);
  if (getpeername(socket(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return;
  }
  if (address.ss_family == AF_INET) {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&address);
    ip = inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
    port = ntohs(v4->sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&address);
    ip = inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
    port = ntohs(v6->sin6_port);
  }
}

absl::Duration TlsStream::AnswerPatience(size_t sent) const {
  return std::min(kMaxPatience, kPatience + absl::Seconds(static_cast<double>(sent) / kSlowestBytes));
}

bool TlsStream::AwaitData() const { return SSL_pending(ssl_.get()) > 0 || Await(POLLIN); }

ssize_t TlsStream::Receive(char* to, size_t size) {
  while (true) {
    const int count = SSL_read(ssl_.get(), to, static_cast<int>(std::min<size_t>(size, INT_MAX)));
    if (count > 0) {
      return count;
    }
    if (SSL_get_error(ssl_.get(), count) == SSL_ERROR_ZERO_RETURN) {
      return 0;
    }
    if (!AwaitWanted(count)) {
      return -1;
    }
  }
}

ssize_t TlsStream::Send(const char* from, size_t size) {
  while (true) {
    const int count = SSL_write(ssl_.get(), from, static_cast<int>(std::min<size_t>(size, INT_MAX)));
    if (count > 0) {
      return count;
    }
    if (!AwaitWanted(count)) {
      return -1;
    }
  }
}

}  // namespace dpar
