// Ed25519 keys that sign certificates.
#ifndef DPAR_CORE_CERTIFICATE_SIGNING_KEY_H_
#define DPAR_CORE_CERTIFICATE_SIGNING_KEY_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

// The key id is the SHA-256 of the SubjectPublicKeyInfo (DER) in lower-case hex.
class VerifyingKey {
 public:
  // INVALID_ARGUMENT unless the PEM SubjectPublicKeyInfo holds an Ed25519 key.
  static absl::StatusOr<VerifyingKey> FromPem(absl::string_view pem);

  [[nodiscard]] const std::string& key_id() const { return key_id_; }
  [[nodiscard]] const std::string& pem() const { return pem_; }
  [[nodiscard]] bool Verify(absl::string_view message, absl::string_view signature) const;

 private:
  VerifyingKey() = default;
  std::shared_ptr<void> key_;
  std::string key_id_;
  std::string pem_;
};

class SigningKey {
 public:
  static absl::StatusOr<SigningKey> Generate();
  // INVALID_ARGUMENT unless the PEM PKCS#8 private key is an Ed25519 key.
  static absl::StatusOr<SigningKey> FromPem(absl::string_view pem);

  [[nodiscard]] const VerifyingKey& verifying_key() const { return verifying_key_; }
  [[nodiscard]] std::string private_pem() const;
  // 64 bytes. Any number of threads may sign at once.
  [[nodiscard]] absl::StatusOr<std::string> Sign(absl::string_view message) const;

 private:
  SigningKey(std::shared_ptr<void> key, VerifyingKey verifying_key);
  static absl::StatusOr<SigningKey> Make(std::shared_ptr<void> key);
  std::shared_ptr<void> key_;
  VerifyingKey verifying_key_;
};

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_SIGNING_KEY_H_
