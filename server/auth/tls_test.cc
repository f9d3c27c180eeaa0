#include "server/auth/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "absl/time/clock.h"
#include "core/error.h"

namespace dpar {
namespace {

using CertificatePtr = std::unique_ptr<X509, decltype(&X509_free)>;

CertificatePtr Read(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  CertificatePtr certificate(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr), X509_free);
  BIO_free(bio);
  return certificate;
}

// OpenSSL's own verdict on the server certificate, for a client that trusts `authority` and means `host`.
int Verify(const CertificatePtr& server, const CertificatePtr& authority, const std::string& host, bool is_address) {
  std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(), X509_STORE_free);
  X509_STORE_add_cert(store.get(), authority.get());
  std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(X509_STORE_CTX_new(), X509_STORE_CTX_free);
  X509_STORE_CTX_init(context.get(), store.get(), server.get(), nullptr);
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_X509_STRICT);
  if (is_address) {
    X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(parameters, host.c_str(), 0);
  }
  X509_verify_cert(context.get());
  return X509_STORE_CTX_get_error(context.get());
}

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    authority_ = MakeCertificateAuthority(now_).value();
    server_ = MakeServerCertificate(authority_, {"localhost", "127.0.0.1", "::1", "dpar.example"}, now_).value();
  }
  const absl::Time now_ = absl::Now();
  CertifiedKey authority_;
  CertifiedKey server_;
};

TEST_F(TlsTest, TheServerCertificateIsAcceptedForEachOfItsNames) {
  const CertificatePtr server = Read(server_.certificate);
  const CertificatePtr authority = Read(authority_.certificate);
  EXPECT_EQ(Verify(server, authority, "localhost", false), X509_V_OK);
  EXPECT_EQ(Verify(server, authority, "dpar.example", false), X509_V_OK);
  EXPECT_EQ(Verify(server, authority, "127.0.0.1", true), X509_V_OK);
  EXPECT_EQ(Verify(server, authority, "::1", true), X509_V_OK);
}

TEST_F(TlsTest, TheServerCertificateIsRefusedForOtherNamesAndOtherAuthorities) {
  const CertificatePtr server = Read(server_.certificate);
  EXPECT_EQ(Verify(server, Read(authority_.certificate), "other.example", false), X509_V_ERR_HOSTNAME_MISMATCH);
  EXPECT_EQ(Verify(server, Read(authority_.certificate), "10.0.0.1", true), X509_V_ERR_IP_ADDRESS_MISMATCH);
  const CertifiedKey other = MakeCertificateAuthority(now_).value();
  EXPECT_NE(Verify(server, Read(other.certificate), "localhost", false), X509_V_OK);
}

TEST_F(TlsTest, OnlyTheAuthorityMaySign) {
  EXPECT_EQ(X509_check_ca(Read(authority_.certificate).get()), 1);
  EXPECT_EQ(X509_check_ca(Read(server_.certificate).get()), 0);
  EXPECT_EQ(X509_get_pathlen(Read(authority_.certificate).get()), 0);
}

TEST_F(TlsTest, KeyUsageIsNoWiderThanNeeded) {
  EXPECT_EQ(X509_get_key_usage(Read(authority_.certificate).get()), uint32_t{KU_KEY_CERT_SIGN | KU_CRL_SIGN});
  EXPECT_EQ(X509_get_key_usage(Read(server_.certificate).get()), uint32_t{KU_DIGITAL_SIGNATURE});
  EXPECT_EQ(X509_get_extended_key_usage(Read(server_.certificate).get()), uint32_t{XKU_SSL_SERVER});
}

TEST_F(TlsTest, KeysAreP256) {
  char group[64] = {};
  const CertificatePtr certificate = Read(server_.certificate);
  ASSERT_EQ(EVP_PKEY_get_group_name(X509_get0_pubkey(certificate.get()), group, sizeof(group), nullptr), 1);
  EXPECT_STREQ(group, "prime256v1");
}

TEST_F(TlsTest, CertificatesAreValidFromYesterdayForYears) {
  const CertificatePtr server = Read(server_.certificate);
  const CertificatePtr authority = Read(authority_.certificate);
  time_t yesterday = absl::ToTimeT(now_ - absl::Hours(23));
  EXPECT_LT(X509_cmp_time(X509_get0_notBefore(server.get()), &yesterday), 0);
  time_t four_years = absl::ToTimeT(now_ + absl::Hours(24 * 365 * 4));
  EXPECT_GT(X509_cmp_time(X509_get0_notAfter(server.get()), &four_years), 0);
  time_t nine_years = absl::ToTimeT(now_ + absl::Hours(24 * 365 * 9));
  EXPECT_GT(X509_cmp_time(X509_get0_notAfter(authority.get()), &nine_years), 0);
}

TEST_F(TlsTest, AKeyMatchesItsOwnCertificateOnly) {
  EXPECT_TRUE(KeyMatches(server_));
  EXPECT_TRUE(KeyMatches(authority_));
  EXPECT_FALSE(KeyMatches({server_.certificate, authority_.key}));
  EXPECT_FALSE(KeyMatches({server_.certificate, "nonsense"}));
  EXPECT_FALSE(KeyMatches({"", ""}));
}

class TlsFilesTest : public TlsTest {
 protected:
  void SetUp() override {
    TlsTest::SetUp();
    std::string pattern = ::testing::TempDir() + "/tls_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  static void ExpectRefused(const absl::Status& status, const std::string& file, const std::string& words) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(file + " " + words));
  }

  std::string directory_;
};

TEST_F(TlsFilesTest, ACertificateItsChainAndItsKeyAreRead) {
  const std::string chain = server_.certificate + authority_.certificate;
  const CertifiedKey read = ReadServerCertificate(Write("chain", chain), Write("key", server_.key), now_).value();
  EXPECT_EQ(read.certificate, chain);
  EXPECT_EQ(read.key, server_.key);
  EXPECT_EQ(ReadClientAuthorities(Write("ca", authority_.certificate), now_).value(), authority_.certificate);
}

TEST_F(TlsFilesTest, WhatIsNotValidNowIsRefused) {
  const std::string certificate = Write("certificate", server_.certificate);
  const std::string key = Write("key", server_.key);
  ExpectRefused(ReadServerCertificate(certificate, key, now_ + absl::Hours(24 * 1827)).status(), certificate,
                "holds a certificate that has expired (number 1)");
  EXPECT_TRUE(ReadServerCertificate(certificate, key, now_ + absl::Hours(24 * 1825)).ok());
  ExpectRefused(ReadServerCertificate(certificate, key, now_ - absl::Hours(25)).status(), certificate,
                "holds a certificate that is not valid yet (number 1)");
  ExpectRefused(ReadClientAuthorities(Write("ca", authority_.certificate), now_ + absl::Hours(24 * 3653)).status(),
                directory_ + "/ca", "holds a certificate that has expired");
  const std::string both = Write("both", authority_.certificate + server_.certificate);
  ExpectRefused(ReadClientAuthorities(both, now_ + absl::Hours(24 * 1827)).status(), both,
                "holds a certificate that has expired (number 2)");
}

TEST_F(TlsFilesTest, WhatIsNotACertificateOrItsKeyIsRefused) {
  const std::string certificate = Write("certificate", server_.certificate);
  const std::string key = Write("key", server_.key);
  const std::string other = Write("other", authority_.key);
  ExpectRefused(ReadServerCertificate(certificate, other, now_).status(), other, "is not the key of");
  ExpectRefused(ReadServerCertificate(certificate, certificate, now_).status(), certificate, "holds no private key");
  ExpectRefused(ReadServerCertificate(key, key, now_).status(), key, "is not a file of certificates");
  const std::string empty = Write("empty", "");
  ExpectRefused(ReadServerCertificate(empty, key, now_).status(), empty, "is empty");
  const std::string missing = directory_ + "/missing";
  ExpectRefused(ReadServerCertificate(missing, key, now_).status(), missing, "cannot be used");
  ExpectRefused(ReadServerCertificate(certificate, missing, now_).status(), missing, "cannot be used");
  for (const std::string& text :
       {std::string("\n"), std::string("nonsense"), server_.certificate.substr(0, 200),
        server_.certificate + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}) {
    const std::string bad = Write("bad", text);
    ExpectRefused(ReadClientAuthorities(bad, now_).status(), bad, "is not a file of certificates");
  }
}

TEST_F(TlsFilesTest, AKeyWithAPassphraseIsRefusedAndNobodyIsAskedForIt) {
  BIO* reading = BIO_new_mem_buf(server_.key.data(), static_cast<int>(server_.key.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(reading, nullptr, nullptr, nullptr);
  BIO* writing = BIO_new(BIO_s_mem());
  char passphrase[] = "secret";
  ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(writing, key, EVP_aes_256_cbc(), passphrase, 6, nullptr, nullptr), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(writing, &data);
  const std::string file = Write("encrypted", std::string(data, static_cast<size_t>(size)));
  BIO_free(reading);
  BIO_free(writing);
  EVP_PKEY_free(key);
  ExpectRefused(ReadServerCertificate(Write("certificate", server_.certificate), file, now_).status(), file,
                "holds no private key in PEM without a passphrase");
}

TEST_F(TlsTest, ANameThatIsNoneIsRefusedAndCannotInjectAnotherEntry) {
  for (const std::string name :
       {"", "a b", "localhost,DNS:evil.example", "a..b", "-a", "a_b", "*.example", "[::1]", "http://example"}) {
    const absl::Status status = MakeServerCertificate(authority_, {name}, now_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    ASSERT_TRUE(GetErrorInfo(status).has_value()) << name;
    EXPECT_EQ(GetErrorInfo(status)->reason(), "INVALID_FIELD") << name;
  }
}

TEST_F(TlsTest, SerialNumbersDiffer) {
  const CertifiedKey second = MakeServerCertificate(authority_, {"localhost"}, now_).value();
  const CertificatePtr a = Read(server_.certificate);
  const CertificatePtr b = Read(second.certificate);
  EXPECT_NE(ASN1_INTEGER_cmp(X509_get0_serialNumber(a.get()), X509_get0_serialNumber(b.get())), 0);
}

}  // namespace
}  // namespace dpar
