// The server's certificates (ECDSA P-256): its own authority, which clients pin, and a server certificate under it.
#ifndef DPAR_SERVER_AUTH_TLS_H_
#define DPAR_SERVER_AUTH_TLS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace dpar {

// A certificate and its private key (PKCS#8), both in PEM.
struct CertifiedKey {
  std::string certificate;
  std::string key;
};

// A self-signed authority, valid for ten years, that may sign certificates of servers only one level down.
absl::StatusOr<CertifiedKey> MakeCertificateAuthority(absl::Time now);

// For `names` (DNS names and IP addresses), valid for five years. INVALID_ARGUMENT / INVALID_FIELD for any other name.
absl::StatusOr<CertifiedKey> MakeServerCertificate(const CertifiedKey& authority, const std::vector<std::string>& names,
                                                   absl::Time now);

bool KeyMatches(const CertifiedKey& pair);

// When the first certificate expires; the far past without one.
absl::Time CertificateExpiry(const std::string& certificate_pem);

absl::Status ValidateTlsName(absl::string_view field, absl::string_view name);

// A server certificate, with its chain if any, and its key, from PEM files. FAILED_PRECONDITION / INVALID_FIELD, with
// file and reason, when one is unreadable, wrong or not valid now, or they do not belong together.
absl::StatusOr<CertifiedKey> ReadServerCertificate(const std::string& certificate_path, const std::string& key_path,
                                                   absl::Time now);

// Authorities for client certificates, from a file in PEM. The same errors.
absl::StatusOr<std::string> ReadClientAuthorities(const std::string& path, absl::Time now);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_TLS_H_
