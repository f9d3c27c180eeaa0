#include "core/certificate/signing_key.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <utility>

#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr size_t kSignatureBytes = 64;
constexpr size_t kMaxPemBytes = 16384;  // far above any Ed25519 key in PEM

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

EVP_PKEY* KeyOf(const std::shared_ptr<void>& key) { return static_cast<EVP_PKEY*>(key.get()); }

std::shared_ptr<void> Own(EVP_PKEY* key) {
  return {key, [](void* owned) { EVP_PKEY_free(static_cast<EVP_PKEY*>(owned)); }};
}

const unsigned char* Bytes(absl::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

absl::Status CryptographyFailed() {
  ERR_clear_error();
  return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT, "the cryptographic library failed");
}

// Without this, OpenSSL would ask for an encrypted key's password at the terminal.
int RefusePassword(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*context*/) { return -1; }

using PemReader = EVP_PKEY* (*)(BIO*, EVP_PKEY**, pem_password_cb*, void*);

absl::StatusOr<std::shared_ptr<void>> ReadKey(PemReader read, absl::string_view field, absl::string_view pem) {
  if (pem.size() > kMaxPemBytes) {
    return InvalidField(field, "the PEM text is too long for an Ed25519 key");
  }
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  if (bio == nullptr) {
    return CryptographyFailed();
  }
  std::shared_ptr<void> key = Own(read(bio.get(), nullptr, &RefusePassword, nullptr));
  ERR_clear_error();
  if (key == nullptr || EVP_PKEY_get_id(KeyOf(key)) != EVP_PKEY_ED25519) {
    return InvalidField(field, "not an unencrypted Ed25519 key in PEM");
  }
  return key;
}

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

// Empty when memory is exhausted.
std::string PublicPem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
  return bio != nullptr && PEM_write_bio_PUBKEY(bio.get(), key) == 1 ? Contents(bio.get()) : std::string();
}

}  // namespace

absl::StatusOr<VerifyingKey> VerifyingKey::FromPem(absl::string_view pem) {
  VerifyingKey result;
  DPAR_ASSIGN_OR_RETURN(result.key_, ReadKey(&PEM_read_bio_PUBKEY, "public_key", pem));
  result.pem_ = PublicPem(KeyOf(result.key_));
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(KeyOf(result.key_), &der);
  if (size <= 0 || result.pem_.empty()) {
    return CryptographyFailed();
  }
  result.key_id_ = Sha256Hex(absl::string_view(reinterpret_cast<const char*>(der), static_cast<size_t>(size)));
  OPENSSL_free(der);
  return result;
}

bool VerifyingKey::Verify(absl::string_view message, absl::string_view signature) const {
  const DigestContext context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  const bool valid =
      signature.size() == kSignatureBytes && context != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, KeyOf(key_)) == 1 &&
      EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(message), message.size()) == 1;
  ERR_clear_error();
  return valid;
}

SigningKey::SigningKey(std::shared_ptr<void> key, VerifyingKey verifying_key)
    : key_(std::move(key)), verifying_key_(std::move(verifying_key)) {}

absl::StatusOr<SigningKey> SigningKey::Make(std::shared_ptr<void> key) {
  DPAR_ASSIGN_OR_RETURN(VerifyingKey verifying_key, VerifyingKey::FromPem(PublicPem(KeyOf(key))));
  return SigningKey(std::move(key), std::move(verifying_key));
}

absl::StatusOr<SigningKey> SigningKey::Generate() {
  std::shared_ptr<void> key = Own(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (key == nullptr) {
    return CryptographyFailed();
  }
  return Make(std::move(key));
}

absl::StatusOr<SigningKey> SigningKey::FromPem(absl::string_view pem) {
  DPAR_ASSIGN_OR_RETURN(std::shared_ptr<void> key, ReadKey(&PEM_read_bio_PrivateKey, "private_key", pem));
  return Make(std::move(key));
}

std::string SigningKey::private_pem() const {
  const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
  const bool written = bio != nullptr && PEM_write_bio_PKCS8PrivateKey(bio.get(), KeyOf(key_), nullptr, nullptr, 0,
                                                                       nullptr, nullptr) == 1;
  return written ? Contents(bio.get()) : std::string();
}

absl::StatusOr<std::string> SigningKey::Sign(absl::string_view message) const {
  const DigestContext context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  if (context == nullptr || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, KeyOf(key_)) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, Bytes(message),
                     message.size()) != 1 ||
      size != kSignatureBytes) {
    return CryptographyFailed();
  }
  return signature;
}

}  // namespace dpar
