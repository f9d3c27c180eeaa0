// One request and its answer on a socket, plain or over TLS, within bounds that the HTTP library does not have: it
// would read lines and headers without end.
#ifndef DPAR_SERVER_OBSERVE_BOUNDED_STREAM_H_
#define DPAR_SERVER_OBSERVE_BOUNDED_STREAM_H_

#include <httplib.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace dpar {

class BoundedStream : public httplib::Stream {
 public:
  explicit BoundedStream(int socket);

  [[nodiscard]] bool is_readable() const override { return next_ < received_ || AwaitData(); }
  [[nodiscard]] bool is_writable() const override { return Await(POLLOUT); }
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  // Nobody is told where a plain request came from.
  void get_remote_ip_and_port(std::string& ip, int& port) const override { Nowhere(ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { Nowhere(ip, port); }
  [[nodiscard]] socket_t socket() const override { return socket_; }

 protected:
  // Waits for the socket until the deadline.
  [[nodiscard]] bool Await(int16_t events) const;
  // Whether there is something to receive by then.
  [[nodiscard]] virtual bool AwaitData() const { return Await(POLLIN); }
  // Some bytes, 0 at the end, below 0 after an error.
  virtual ssize_t Receive(char* to, size_t size);
  virtual ssize_t Send(const char* from, size_t size);
  // How long the answer may take in all, once so many bytes of it are sent.
  [[nodiscard]] virtual absl::Duration AnswerPatience(size_t sent) const;

 private:
  static constexpr size_t kMaxRequestBytes = 16 << 10;

  static void Nowhere(std::string& ip, int& port);

  const int socket_;
  absl::Time deadline_;
  std::optional<absl::Time> answer_time_;  // when it began
  size_t sent_ = 0;
  std::array<char, kMaxRequestBytes> buffer_;
  size_t next_ = 0;
  size_t received_ = 0;
};

using TlsContext = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
// TLS 1.2 and 1.3 with a certificate, what leads to its authority after it, and its key, in PEM. INVALID_ARGUMENT /
// INVALID_FIELD when they are no such thing.
absl::StatusOr<TlsContext> MakeTlsContext(const std::string& certificate_pem, const std::string& key_pem);

// The same over TLS; the handshake is within the bounds of the request. It does tell where it came from.
class TlsStream final : public BoundedStream {
 public:
  TlsStream(int socket, SSL_CTX* context);

  // False when there is no connection by then: nothing can be read or written.
  bool Handshake();
  // Tells the other end that nothing was cut off.
  void Close();
  void get_remote_ip_and_port(std::string& ip, int& port) const override;

 protected:
  [[nodiscard]] bool AwaitData() const override;
  ssize_t Receive(char* to, size_t size) override;
  ssize_t Send(const char* from, size_t size) override;
  // Longer for an answer that is taken at a good pace.
  [[nodiscard]] absl::Duration AnswerPatience(size_t sent) const override;

 private:
  // Waits for what TLS asks for after a call that did not succeed; false when it is an error, or time is up.
  [[nodiscard]] bool AwaitWanted(int result) const;

  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_OBSERVE_BOUNDED_STREAM_H_
