// What the server shows and whom it trusts in TLS, read again while it serves.
#ifndef DPAR_SERVER_AUTH_TLS_IDENTITY_H_
#define DPAR_SERVER_AUTH_TLS_IDENTITY_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "grpcpp/security/server_credentials.h"
#include "server/auth/tls.h"

namespace dpar {

struct TlsPaths {
  std::string certificate;
  std::string key;
  std::string client_authorities;  // empty without
};

struct TlsFiles {
  CertifiedKey server;
  std::string client_authorities;
};

// Errors as ReadServerCertificate and ReadClientAuthorities have them.
absl::StatusOr<TlsFiles> ReadTlsFiles(const TlsPaths& paths, absl::Time now);

// Thread-safe.
class TlsIdentity {
 public:
  explicit TlsIdentity(TlsFiles files) : files_(std::move(files)) {}

  // For handshakes from now on. Open connections keep what they began with.
  void Replace(TlsFiles files) ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] absl::Time Expiry() const ABSL_LOCKS_EXCLUDED(mutex_);

  // TLS 1.2 and 1.3 (gRPC's lower bound), for one server, which this object outlives. With client authorities, callers
  // may present a certificate, and one that no such authority signed ends the connection.
  std::shared_ptr<grpc::ServerCredentials> MakeCredentials() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class ReloadedCredentials;

  // The files, once after each change.
  std::optional<TlsFiles> TakeNew() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  TlsFiles files_ ABSL_GUARDED_BY(mutex_);
  bool is_new_ ABSL_GUARDED_BY(mutex_) = true;  // to gRPC
};

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_TLS_IDENTITY_H_
