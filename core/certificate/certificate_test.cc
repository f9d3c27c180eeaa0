#include "core/certificate/certificate.h"

#include <openssl/bio.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/certificate/digest.h"
#include "core/certificate/ledger_entry.h"
#include "core/certificate/testing/certificate_fixture.h"
#include "core/certificate/testing/example_statement.h"
#include "core/error.h"
#include "core/message_json.h"
#include "core/plan/plan_event.h"
#include "core/privacy/accountant.h"
#include "core/privacy/budget.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::CertificateTest;
using testing::ExpectOnlyFailure;
using testing::Find;
using testing::FullSpec;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

TEST_F(CertificateTest, PreAuthenticationEncodingIsThatOfTheSpecification) {
  EXPECT_EQ(PreAuthenticationEncoding("http://example.com/HelloWorld", "hello world"),
            "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
  EXPECT_EQ(PreAuthenticationEncoding("", ""), "DSSEv1 0  0 ");
  EXPECT_EQ(PreAuthenticationEncoding("t", std::string("a\0b", 3)), std::string("DSSEv1 1 t 3 a\0b", 16));
}

// The specification's own example is signed with ECDSA, which certificates never are: what it shows is that the bytes
// to sign are put together as others put them together.
TEST_F(CertificateTest, ThePublishedSignatureOfDsseHoldsForOurEncoding) {
  const std::string pem =
      "-----BEGIN PUBLIC KEY-----\n"
      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZ805D3eqNZywjCI19lInBJOp7YMr\n"
      "CrzAH3CVTAOQ0jgMeCvVTiaRJaRPRDOv8UMs6U4SvKc6pnrIDOoSYI3fdA==\n"
      "-----END PUBLIC KEY-----\n";
  const std::string raw =
      Base64Decode("A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA==").value();
  const auto bytes = [](const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); };
  const auto holds = [&](const std::string& message) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                        &BIO_free);
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
        PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr), &EVP_PKEY_free);
    const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> signature(ECDSA_SIG_new(), &ECDSA_SIG_free);
    ECDSA_SIG_set0(signature.get(), BN_bin2bn(bytes(raw), 32, nullptr), BN_bin2bn(bytes(raw) + 32, 32, nullptr));
    unsigned char* der = nullptr;
    const int size = i2d_ECDSA_SIG(signature.get(), &der);
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
    const bool good =
        EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
        EVP_DigestVerify(context.get(), der, static_cast<size_t>(size), bytes(message), message.size()) == 1;
    OPENSSL_free(der);
    return good;
  };
  EXPECT_TRUE(holds(PreAuthenticationEncoding("http://example.com/HelloWorld", "hello world")));
  EXPECT_FALSE(holds(PreAuthenticationEncoding("http://example.com/HelloWorld", "hello worlds")));
}

TEST_F(CertificateTest, ATrueCertificatePassesEveryCheck) {
  const std::string envelope = SignStatement(ExampleStatement(), key_).value();
  const Verification verification = VerifyCertificate(envelope, trusted(), {npz_, pt_}).value();
  for (const Check& check : verification.checks) {
    EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
  }
  EXPECT_TRUE(verification.passed());
  std::vector<std::string> names;
  for (const Check& check : verification.checks) {
    names.push_back(check.name);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("signature", "statement", "model.npz digest", "model.pt digest",
                                            "mechanism", "epsilon", "delta", "ledger", "ledger entry"));
  EXPECT_LE(verification.recomputed_epsilon, 1 + 1e-9);
  EXPECT_GT(verification.recomputed_epsilon, 0.9999);
  EXPECT_EQ(verification.statement.job, "tenants/acme/jobs/j-1");
}

TEST_F(CertificateTest, TheEnvelopeIsCompactJsonWithOneSignature) {
  const std::string envelope = SignStatement(ExampleStatement(), key_).value();
  const Json json = Json::parse(envelope);
  EXPECT_EQ(json.dump(), envelope);
  EXPECT_EQ(json["payloadType"], "application/vnd.in-toto+json");
  EXPECT_EQ(Base64Decode(json["payload"].get<std::string>()).value(), StatementToJson(ExampleStatement()));
  ASSERT_EQ(json["signatures"].size(), 1U);
  EXPECT_EQ(json["signatures"][0]["keyid"], key_.verifying_key().key_id());
  EXPECT_EQ(envelope, SignPayload(StatementToJson(ExampleStatement()), key_));
}

TEST_F(CertificateTest, EveryFlippedByteIsRefused) {
  const std::string envelope = SignStatement(ExampleStatement(), key_).value();
  for (size_t i = 0; i < envelope.size(); ++i) {
    for (const int flip : {1, 0x20, 0x80}) {
      std::string altered = envelope;
      altered[i] = static_cast<char>(altered[i] ^ flip);
      const auto verification = VerifyCertificate(altered, trusted(), {});
      EXPECT_FALSE(verification.ok() && verification->passed()) << i << " " << flip;
    }
  }
}

TEST_F(CertificateTest, EveryTruncationAndAddedByteIsRefused) {
  const std::string envelope = SignStatement(ExampleStatement(), key_).value();
  for (size_t i = 0; i < envelope.size(); ++i) {
    EXPECT_FALSE(VerifyCertificate(envelope.substr(0, i), trusted(), {}).ok()) << i;
  }
  for (const char* added : {" ", "\n", "x", "{}"}) {
    EXPECT_FALSE(VerifyCertificate(envelope + added, trusted(), {}).ok());
    EXPECT_FALSE(VerifyCertificate(added + envelope, trusted(), {}).ok());
  }
}

TEST_F(CertificateTest, WhatIsNotAnEnvelopeIsInvalid) {
  const Json json = Json::parse(SignStatement(ExampleStatement(), key_).value());
  std::vector<Json> wrong(8, json);
  wrong[0]["extra"] = 1;
  wrong[1].erase("payload");
  wrong[2]["payloadType"] = "text/plain";
  wrong[3]["signatures"].push_back(json["signatures"][0]);
  wrong[4]["signatures"] = Json::array();
  wrong[5]["signatures"][0]["extra"] = 1;
  wrong[6]["payload"] = 7;
  wrong[7]["signatures"][0]["sig"] = "not base64";
  for (const Json& envelope : wrong) {
    const absl::Status status = VerifyCertificate(envelope.dump(), trusted(), {}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << envelope.dump().substr(0, 80);
  }
  // The same content in another spelling.
  EXPECT_EQ(VerifyCertificate(json.dump(2), trusted(), {}).status().code(), absl::StatusCode::kInvalidArgument);
}

// The last character of base64 before padding carries bits that say nothing; only zeros are taken.
TEST_F(CertificateTest, AnotherSpellingOfTheSameBase64IsRefused) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const Json json = Json::parse(SignStatement(ExampleStatement(), key_).value());
  std::string signature = json["signatures"][0]["sig"];
  ASSERT_TRUE(signature.ends_with("=="));
  char& last = signature[signature.size() - 3];
  last = alphabet[alphabet.find(last) + 1];
  std::vector<Json> wrong(4, json);
  wrong[0]["signatures"][0]["sig"] = signature;
  wrong[1]["signatures"][0]["sig"] = signature.substr(0, signature.size() - 2);
  wrong[2]["signatures"][0]["sig"] = "\n" + json["signatures"][0]["sig"].get<std::string>();
  wrong[3]["payload"] = json["payload"].get<std::string>() + "====";
  for (const Json& envelope : wrong) {
    EXPECT_EQ(VerifyCertificate(envelope.dump(), trusted(), {}).status().code(), absl::StatusCode::kInvalidArgument);
  }
  std::string doubled = json.dump();
  doubled.insert(1, "\"payloadType\":\"application/vnd.in-toto+json\",");
  EXPECT_EQ(VerifyCertificate(doubled, trusted(), {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CertificateTest, AKeyThatIsNotTrustedIsRefused) {
  const SigningKey stranger = SigningKey::Generate().value();
  const std::string envelope = SignStatement(ExampleStatement(), stranger).value();
  const Verification verification = VerifyCertificate(envelope, trusted(), {npz_}).value();
  ASSERT_EQ(verification.checks.size(), 1U);
  ExpectOnlyFailure(verification, "signature", "not trusted");
  EXPECT_FALSE(VerifyCertificate(envelope, {}, {}).value().passed());
  const std::vector<KnownKey> both = {key_.verifying_key(), stranger.verifying_key()};
  EXPECT_TRUE(VerifyCertificate(envelope, both, {npz_}).value().passed());
}

TEST_F(CertificateTest, AStrangersSignatureUnderATrustedKeyIdIsRefused) {
  const SigningKey stranger = SigningKey::Generate().value();
  Json json = Json::parse(SignStatement(ExampleStatement(), stranger).value());
  json["signatures"][0]["keyid"] = key_.verifying_key().key_id();
  const Verification verification = VerifyCertificate(json.dump(), trusted(), {}).value();
  ASSERT_EQ(verification.checks.size(), 1U);
  ExpectOnlyFailure(verification, "signature", "not a signature of key");
}

TEST_F(CertificateTest, AnotherModelIsRefusedByName) {
  const std::string envelope = SignStatement(ExampleStatement(), key_).value();
  const Verification verification = VerifyCertificate(envelope, trusted(), {npz_, other_}).value();
  ExpectOnlyFailure(verification, "other.npz digest", "none of the certificate's files");
  EXPECT_TRUE(Find(verification, "model.npz digest")->passed);
}

TEST_F(CertificateTest, AModelThatCannotBeReadIsRefused) {
  const std::string envelope = SignStatement(ExampleStatement(), key_).value();
  const Verification verification = VerifyCertificate(envelope, trusted(), {"/nonexistent/model.npz"}).value();
  ExpectOnlyFailure(verification, "model.npz digest", "no file");
}

// Everything about it is consistent and validly signed, but its noise is too small.
TEST_F(CertificateTest, AnEpsilonOnePercentTooLowIsRefusedEvenWhenSigned) {
  for (const char* method : {"features", "batches"}) {
    v1::TrainingSpec spec = ExampleSpec();
    if (std::string(method) == "batches") {
      spec.mutable_options()->set_batch_size(300);
    }
    Statement statement = ExampleStatement(spec);
    statement.plan.set_epsilon(0.99);
    statement.accountant_epsilon = 0.99;
    RehashEntry(statement);
    const Verification verification = Verify(statement);
    ExpectOnlyFailure(verification, "epsilon", "understates");
    EXPECT_GT(verification.recomputed_epsilon, 0.9999);
  }
}

TEST_F(CertificateTest, APromiseThatIsWeakerThanItsCostIsAccepted) {
  Statement statement = ExampleStatement();
  statement.plan.set_epsilon(1.5);
  RehashEntry(statement);
  EXPECT_TRUE(Verify(statement).passed());
}

TEST_F(CertificateTest, TheSameAccountantGivesTheSameEpsilon) {
  Statement statement = ExampleStatement();
  const double given = statement.accountant_epsilon;
  statement.accountant_epsilon = given - 9e-7;
  EXPECT_TRUE(Verify(statement).passed());
  for (const double other : {given - 1.1e-6, given - 0.5}) {
    statement.accountant_epsilon = other;
    ExpectOnlyFailure(Verify(statement), "epsilon", "the same accountant gave");
  }
  statement.accountant_epsilon = 1.01;
  ExpectOnlyFailure(Verify(statement), "epsilon", "more than the stated");
  // Another version of it may have been less exact, and says which it was.
  statement.accountant_epsilon = given - 0.5;
  statement.accountant_version = 3;
  const Verification verification = Verify(statement);
  EXPECT_TRUE(verification.passed());
  EXPECT_THAT(Find(verification, "epsilon")->detail, HasSubstr("it was priced by version 3"));
}

TEST_F(CertificateTest, AnUnderstatedDeltaIsRefused) {
  Statement statement = ExampleStatement();
  statement.plan.set_delta(2e-5);
  RehashEntry(statement);
  ExpectOnlyFailure(Verify(statement), "epsilon", "understates");
  statement.plan.set_delta(0);
  RehashEntry(statement);
  ExpectOnlyFailure(Verify(statement), "epsilon", "delta");
}

TEST_F(CertificateTest, ADeltaThatIsNotBelowOneOverTheNodesIsSaidPlainly) {
  EXPECT_EQ(Find(Verify(ExampleStatement()), "delta")->detail, "3e-05, below 1/N = 0.0003338898164 for N = 2995 nodes");
  Statement statement = ExampleStatement();
  statement.plan.set_delta(0.3);
  RehashEntry(statement);
  EXPECT_EQ(Find(Verify(statement), "delta")->detail,
            "delta 0.3 is not below 1/N = 0.0003338898164 for N = 2995 nodes: it permits publishing whole nodes");
  EXPECT_FALSE(Verify(statement).passed());
  statement.plan.set_delta(1.0 / 2995);
  RehashEntry(statement);
  EXPECT_FALSE(Find(Verify(statement), "delta")->passed);
  statement.plan.set_delta(3e-4);
  RehashEntry(statement);
  EXPECT_EQ(Find(Verify(statement), "delta")->detail, "delta 0.0003 is above the cap's delta 3e-05");
  statement.cap_delta = 0.3;
  EXPECT_THAT(Find(Verify(statement), "delta")->detail, HasSubstr("the cap's delta 0.3 is not below 1/N"));
}

TEST_F(CertificateTest, ALedgerEntryOfAnotherJobPriceOrEventIsRefused) {
  const std::function<void(Statement&)> kChanges[] = {
      [](Statement& s) { s.job = "tenants/acme/jobs/j-2"; },
      [](Statement& s) { s.population += "-2"; },
      [](Statement& s) { s.previous_hash = Sha256Hex("another"); },
      [](Statement& s) { s.ledger_sequence += 1; },
      [](Statement& s) { s.entry_time_microseconds += 1; },
      [](Statement& s) { s.entry_actor = "server"; },
      [](Statement& s) { s.entry_attempt = 2; },
      [](Statement& s) { s.plan.set_epsilon(1.25); },
      [](Statement& s) { s.ledger_hash = Sha256Hex("another"); },
  };
  for (const auto& change : kChanges) {
    Statement statement = ExampleStatement();
    change(statement);
    ExpectOnlyFailure(Verify(statement), "ledger entry", "the hash of the ledger's entry");
  }
  // The text is hashed as it stands, so it must say what the event says, and say it once.
  const std::string events[] = {"{}", "text", ExampleStatement(FullSpec()).entry_event};
  for (const std::string& event : events) {
    Statement statement = ExampleStatement();
    statement.entry_event = event;
    RehashEntry(statement);
    ExpectOnlyFailure(Verify(statement), "ledger entry", "is not the certificate's");
  }
  Statement statement = ExampleStatement();
  const std::string composition = "{\"composition\":";
  ASSERT_EQ(statement.entry_event.rfind(composition, 0), 0U);
  statement.entry_event.insert(1, "\"composition\":{},");
  RehashEntry(statement);
  ExpectOnlyFailure(Verify(statement), "ledger entry", "is not the certificate's");
  // Nor in protobuf's other spelling, of which the last would count.
  statement = ExampleStatement();
  const std::string key = "\"noiseStddev\":";
  const size_t place = statement.entry_event.find(key);
  ASSERT_NE(place, std::string::npos);
  statement.entry_event.insert(place, "\"noise_stddev\":1000,");
  RehashEntry(statement);
  ExpectOnlyFailure(Verify(statement), "ledger entry", "is not the certificate's");
}

TEST_F(CertificateTest, TheHashOfALedgerEntryIsDocumented) {
  // By hand: sha256 of "19:dpar ledger entry 1;6:budget;0:;1:1;1:2;1:3;3:job;5:actor;1:4;19:0.10000000000000001;
  // 22:1.0000000000000001e-05;5:event;0:;1:5;".
  EXPECT_EQ(ChainedEntryHash({.population = "budget",
                              .previous_hash = "",
                              .sequence = 1,
                              .time_microseconds = 2,
                              .kind = 3,
                              .job = "job",
                              .actor = "actor",
                              .units = 4,
                              .epsilon = 0.1,
                              .delta = 1e-5,
                              .event_text = "event",
                              .reason = "",
                              .attempt = 5}),
            "3fb2322daf1a5dae05c10366171373020b411d01ca422c8b5444bb8a2890dd91");
}

}  // namespace
}  // namespace dpar
