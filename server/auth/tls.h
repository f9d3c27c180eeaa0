// The server's certificates: a certificate authority of its own, which clients pin, and a server certificate under it.
// ECDSA P-256.
#ifndef DPAR_SERVER_AUTH_TLS_H_
#define DPAR_SERVER_AUTH_TLS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"

namespace dpar {

// A certificate and its private key (PKCS#8), both in PEM.
struct CertifiedKey {
  std::string certificate;
  std::string key;
};

// A self-signed authority, valid for ten years, that may sign certificates of servers only one level down.
absl::StatusOr<CertifiedKey> MakeCertificateAuthority(absl::Time now);

// A server certificate for `names` (DNS names and IP addresses), signed by `authority`, valid for five years.
// INVALID_ARGUMENT / INVALID_FIELD for a name that is neither.
absl::StatusOr<CertifiedKey> MakeServerCertificate(const CertifiedKey& authority, const std::vector<std::string>& names,
                                                   absl::Time now);

// Whether both parse and the key is the certificate's.
bool KeyMatches(const CertifiedKey& pair);

// When the first certificate of a PEM stops to be valid; the far past when there is none.
absl::Time CertificateExpiry(const std::string& certificate_pem);

// Whether `name` can stand in a server certificate: an IP address, or a DNS name.
absl::Status ValidateTlsName(absl::string_view field, absl::string_view name);

// A server certificate, with what leads from it to its authority after it where there is more, and its key, from files
// in PEM. FAILED_PRECONDITION / INVALID_FIELD, with the file and the reason, when one cannot be read, is not what it
// should be, does not belong to the other, or is not valid at the time.
absl::StatusOr<CertifiedKey> ReadServerCertificate(const std::string& certificate_path, const std::string& key_path,
                                                   absl::Time now);

// Authorities for client certificates, from a file in PEM. The same errors.
absl::StatusOr<std::string> ReadClientAuthorities(const std::string& path, absl::Time now);

// TLS 1.2 and 1.3 (gRPC's own lower bound). With `client_authorities`, callers may show a certificate that one of them
// signed, and a connection with any other is refused; none need to.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const CertifiedKey& server,
                                                               const std::string& client_authorities = "");

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_TLS_H_
