#include "server/auth/tls.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/files.h"

namespace dpar {
namespace {

constexpr absl::Duration kAuthorityLife = absl::Hours(24 * 3652);
constexpr absl::Duration kServerLife = absl::Hours(24 * 1826);
// A client whose clock is behind still accepts a new certificate.
constexpr absl::Duration kClockSkew = absl::Hours(24);
constexpr size_t kSerialBytes = 16;
constexpr size_t kMaxDnsName = 253;
constexpr size_t kMaxDnsLabel = 63;

struct Free {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
};
using BioPtr = std::unique_ptr<BIO, Free>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Free>;
using CertificatePtr = std::unique_ptr<X509, Free>;

absl::Status Failed(absl::string_view what) { return absl::InternalError(absl::StrCat("OpenSSL could not ", what)); }

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

BioPtr Reading(absl::string_view pem) { return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

CertificatePtr ReadCertificate(absl::string_view pem) {
  return CertificatePtr(PEM_read_bio_X509(Reading(pem).get(), nullptr, nullptr, nullptr));
}

// Otherwise OpenSSL asks the terminal for the passphrase of an encrypted key.
int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

KeyPtr ReadKey(absl::string_view pem) {
  return KeyPtr(PEM_read_bio_PrivateKey(Reading(pem).get(), nullptr, NoPassphrase, nullptr));
}

absl::StatusOr<CertifiedKey> ToPem(X509* certificate, EVP_PKEY* key) {
  const BioPtr certificate_pem(BIO_new(BIO_s_mem()));
  const BioPtr key_pem(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_pem.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_pem.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed("write PEM");
  }
  return CertifiedKey{Contents(certificate_pem.get()), Contents(key_pem.get())};
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free> extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// The caller sets the issuer.
absl::StatusOr<CertificatePtr> NewCertificate(EVP_PKEY* key, const std::string& common_name, absl::Time now,
                                              absl::Duration life) {
  CertificatePtr certificate(X509_new());
  std::array<unsigned char, kSerialBytes> serial;
  if (certificate == nullptr || RAND_bytes(serial.data(), serial.size()) != 1) {
    return Failed("start a certificate");
  }
  serial[0] &= 0x7f;  // a serial number is positive
  BIGNUM* number = BN_bin2bn(serial.data(), serial.size(), nullptr);
  const bool has_serial =
      number != nullptr && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get())) != nullptr;
  BN_free(number);
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const bool has_rest =
      X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0) == 1 &&
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), absl::ToTimeT(now - kClockSkew)) != nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), absl::ToTimeT(now + life)) != nullptr &&
      X509_set_pubkey(certificate.get(), key) == 1;
  if (!has_serial || !has_rest) {
    return Failed("fill a certificate");
  }
  return certificate;
}

bool IsIpAddress(const std::string& name) {
  std::array<unsigned char, sizeof(in6_addr)> address;
  return inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
}

bool IsDnsLabel(absl::string_view label) {
  const auto is_edge = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !label.empty() && label.size() <= kMaxDnsLabel && is_edge(label.front()) && is_edge(label.back()) &&
         std::all_of(label.begin(), label.end(), [&](char c) { return is_edge(c) || c == '-'; });
}

bool IsDnsName(absl::string_view name) {
  if (name.empty() || name.size() > kMaxDnsName) {
    return false;
  }
  const std::vector<absl::string_view> labels = absl::StrSplit(name, '.');
  return std::all_of(labels.begin(), labels.end(), IsDnsLabel);
}

absl::Status BadFile(const std::string& path, absl::string_view what) {
  return MakeError(absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD, absl::StrCat(path, " ", what),
                   {{"field", path}});
}

absl::StatusOr<std::string> ReadPemFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_empty(path, error)) {
    return BadFile(path, "is empty");
  }
  absl::StatusOr<std::string> pem = ReadWholeFile(path);
  return pem.ok() ? pem : BadFile(path, absl::StrCat("cannot be used: ", pem.status().message()));
}

// At least one certificate, all readable and valid now.
absl::Status CheckCertificates(const std::string& path, const std::string& pem, absl::Time now) {
  const BioPtr reading = Reading(pem);
  time_t time = absl::ToTimeT(now);
  int read = 0;
  while (const CertificatePtr certificate{PEM_read_bio_X509(reading.get(), nullptr, nullptr, nullptr)}) {
    ++read;
    if (X509_cmp_time(X509_get0_notAfter(certificate.get()), &time) <= 0) {
      return BadFile(path, absl::StrCat("holds a certificate that has expired (number ", read, "); renew it"));
    }
    if (X509_cmp_time(X509_get0_notBefore(certificate.get()), &time) > 0) {
      return BadFile(path, absl::StrCat("holds a certificate that is not valid yet (number ", read, ")"));
    }
  }
  // PEM_R_NO_START_LINE means the end of the file; any other error is an unreadable certificate.
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return read > 0 && at_end ? absl::OkStatus() : BadFile(path, "is not a file of certificates in PEM");
}

}  // namespace

absl::Status ValidateTlsName(absl::string_view field, absl::string_view name) {
  if (IsIpAddress(std::string(name)) || IsDnsName(name)) {
    return absl::OkStatus();
  }
  return InvalidField(field, absl::StrCat(field, " must be a DNS name or an IP address, got '", name, "'"));
}

absl::StatusOr<CertifiedKey> MakeCertificateAuthority(absl::Time now) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) {
    return Failed("make a key");
  }
  DPAR_ASSIGN_OR_RETURN(const CertificatePtr certificate,
                        NewCertificate(key.get(), "DPAR certificate authority", now, kAuthorityLife));
  X509* const x509 = certificate.get();
  const bool made = X509_set_issuer_name(x509, X509_get_subject_name(x509)) == 1 &&
                    AddExtension(x509, x509, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    AddExtension(x509, x509, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                    AddExtension(x509, x509, NID_subject_key_identifier, "hash") &&
                    X509_sign(x509, key.get(), EVP_sha256()) != 0;
  if (!made) {
    return Failed("sign the certificate authority");
  }
  return ToPem(x509, key.get());
}

absl::StatusOr<CertifiedKey> MakeServerCertificate(const CertifiedKey& authority, const std::vector<std::string>& names,
                                                   absl::Time now) {
  std::vector<std::string> alternatives;
  for (const std::string& name : names) {
    DPAR_RETURN_IF_ERROR(ValidateTlsName("tls_name", name));
    alternatives.push_back(absl::StrCat(IsIpAddress(name) ? "IP:" : "DNS:", name));
  }
  const CertificatePtr issuer = ReadCertificate(authority.certificate);
  const KeyPtr issuer_key = ReadKey(authority.key);
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (issuer == nullptr || issuer_key == nullptr || key == nullptr) {
    return Failed("read the certificate authority or make a key");
  }
  DPAR_ASSIGN_OR_RETURN(const CertificatePtr certificate, NewCertificate(key.get(), "dpard", now, kServerLife));
  X509* const x509 = certificate.get();
  const bool made = X509_set_issuer_name(x509, X509_get_subject_name(issuer.get())) == 1 &&
                    AddExtension(x509, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                    AddExtension(x509, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
                    AddExtension(x509, issuer.get(), NID_ext_key_usage, "serverAuth") &&
                    AddExtension(x509, issuer.get(), NID_subject_key_identifier, "hash") &&
                    AddExtension(x509, issuer.get(), NID_authority_key_identifier, "keyid:always") &&
                    AddExtension(x509, issuer.get(), NID_subject_alt_name, absl::StrJoin(alternatives, ",")) &&
                    X509_sign(x509, issuer_key.get(), EVP_sha256()) != 0;
  if (!made) {
    return Failed("sign the server certificate");
  }
  return ToPem(x509, key.get());
}

absl::Time CertificateExpiry(const std::string& certificate_pem) {
  const CertificatePtr certificate = ReadCertificate(certificate_pem);
  tm until = {};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &until) != 1) {
    return absl::InfinitePast();
  }
  return absl::FromTM(until, absl::UTCTimeZone());
}

bool KeyMatches(const CertifiedKey& pair) {
  const CertificatePtr certificate = ReadCertificate(pair.certificate);
  const KeyPtr key = ReadKey(pair.key);
  return certificate != nullptr && key != nullptr && X509_check_private_key(certificate.get(), key.get()) == 1;
}

absl::StatusOr<CertifiedKey> ReadServerCertificate(const std::string& certificate_path, const std::string& key_path,
                                                   absl::Time now) {
  CertifiedKey pair;
  DPAR_ASSIGN_OR_RETURN(pair.certificate, ReadPemFile(certificate_path));
  DPAR_ASSIGN_OR_RETURN(pair.key, ReadPemFile(key_path));
  DPAR_RETURN_IF_ERROR(CheckCertificates(certificate_path, pair.certificate, now));
  if (ReadKey(pair.key) == nullptr) {
    return BadFile(key_path, "holds no private key in PEM without a passphrase");
  }
  if (!KeyMatches(pair)) {
    return BadFile(key_path, absl::StrCat("is not the key of the first certificate in ", certificate_path));
  }
  return pair;
}

absl::StatusOr<std::string> ReadClientAuthorities(const std::string& path, absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(std::string pem, ReadPemFile(path));
  DPAR_RETURN_IF_ERROR(CheckCertificates(path, pem, now));
  return pem;
}

}  // namespace dpar
