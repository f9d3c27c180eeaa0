#include "server/auth/tls_identity.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <utility>

#include "core/status_macros.h"

namespace dpar {

absl::StatusOr<TlsFiles> ReadTlsFiles(const TlsPaths& paths, absl::Time now) {
  TlsFiles files;
  DPAR_ASSIGN_OR_RETURN(files.server, ReadServerCertificate(paths.certificate, paths.key, now));
  if (!paths.client_authorities.empty()) {
    DPAR_ASSIGN_OR_RETURN(files.client_authorities, ReadClientAuthorities(paths.client_authorities, now));
  }
  return files;
}

// gRPC's C++ interface has no credentials that ask for their certificate at each handshake; its C interface has.
class ReloadedCredentials : public grpc::ServerCredentials {
 public:
  ReloadedCredentials(TlsIdentity& identity, grpc_ssl_client_certificate_request_type request)
      : credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(request, &Fetch, &identity))) {}
  ~ReloadedCredentials() override { grpc_server_credentials_release(credentials_); }
  ReloadedCredentials(const ReloadedCredentials&) = delete;
  ReloadedCredentials& operator=(const ReloadedCredentials&) = delete;

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(void* data, grpc_ssl_server_certificate_config** config) {
    const std::optional<TlsFiles> taken = static_cast<TlsIdentity*>(data)->TakeNew();
    if (!taken.has_value()) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    const TlsFiles& files = *taken;
    const grpc_ssl_pem_key_cert_pair pair = {files.server.key.c_str(), files.server.certificate.c_str()};
    // gRPC wants some authority even where it asks no client for a certificate and so never looks at it.
    const std::string& authorities =
        files.client_authorities.empty() ? files.server.certificate : files.client_authorities;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  grpc_server_credentials* const credentials_;
};

void TlsIdentity::Replace(TlsFiles files) {
  const MutexLock lock(&mutex_);
  files_ = std::move(files);
  is_new_ = true;
}

std::optional<TlsFiles> TlsIdentity::TakeNew() {
  const MutexLock lock(&mutex_);
  return std::exchange(is_new_, false) ? std::optional<TlsFiles>(files_) : std::nullopt;
}

absl::Time TlsIdentity::Expiry() const {
  const MutexLock lock(&mutex_);
  return CertificateExpiry(files_.server.certificate);
}

std::shared_ptr<grpc::ServerCredentials> TlsIdentity::MakeCredentials() {
  const MutexLock lock(&mutex_);
  is_new_ = true;
  return std::make_shared<ReloadedCredentials>(*this, files_.client_authorities.empty()
                                                          ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                          : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
}

}  // namespace dpar
