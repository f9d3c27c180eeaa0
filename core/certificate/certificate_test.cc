#include "core/certificate/certificate.h"

#include <openssl/bio.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <unistd.h>

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

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

class CertificateTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) / ("certificate_test_" + std::to_string(getpid()));
    std::filesystem::create_directory(directory_);
    npz_ = Write("model.npz", "npz");
    pt_ = Write("renamed.bin", "pt");
    other_ = Write("other.npz", "another model");
  }

  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& content) {
    std::string path = (directory_ / name).string();
    std::ofstream(path) << content;
    return path;
  }

  std::vector<KnownKey> trusted() const { return {key_.verifying_key()}; }

  // What becomes of a certificate that says `statement` and is validly signed.
  Verification Verify(const Statement& statement) const {
    return VerifyCertificate(SignPayload(StatementToJson(statement), key_), trusted(), {npz_}).value();
  }

  SigningKey key_ = SigningKey::Generate().value();
  std::filesystem::path directory_;
  std::string npz_;
  std::string pt_;
  std::string other_;
};

const Check* Find(const Verification& verification, const std::string& name) {
  for (const Check& check : verification.checks) {
    if (check.name == name) {
      return &check;
    }
  }
  return nullptr;
}

// Only the check of this name failed, with this in its detail.
void ExpectOnlyFailure(const Verification& verification, const std::string& name, const std::string& detail) {
  EXPECT_FALSE(verification.passed());
  for (const Check& check : verification.checks) {
    EXPECT_EQ(check.passed, check.name != name) << check.name << ": " << check.detail;
  }
  const Check* failed = Find(verification, name);
  ASSERT_NE(failed, nullptr);
  EXPECT_THAT(failed->detail, HasSubstr(detail));
}

// A plan of this method with every part that it can have, all of whose mechanisms are Gaussian.
v1::TrainingSpec FullSpec() {
  v1::TrainingSpec spec = ExampleSpec();
  spec.set_method(v1::DPAR_GM);
  spec.mutable_options()->set_center(true);
  spec.mutable_options()->set_hidden_size(4);
  spec.mutable_evaluation()->set_held_out_share(0.25);
  spec.mutable_evaluation()->set_budget_share(0.1);
  return spec;
}

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
  EXPECT_THAT(names, testing::ElementsAre("signature", "statement", "model.npz digest", "model.pt digest", "mechanism",
                                          "epsilon", "ledger", "ledger entry"));
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

TEST_F(CertificateTest, ALedgerEntryOfAnotherJobPriceOrEventIsRefused) {
  const std::function<void(Statement&)> kChanges[] = {
      [](Statement& s) { s.job = "tenants/acme/jobs/j-2"; },
      [](Statement& s) { s.budget_id = "another"; },
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
  EXPECT_EQ(ChainedEntryHash({.budget_id = "budget",
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

TEST_F(CertificateTest, ARevokedKeyIsReportedBesideEveryOtherCheck) {
  KnownKey known = key_.verifying_key();
  known.retire_time = absl::FromUnixSeconds(1767323045);
  const std::string envelope = SignStatement(ExampleStatement(), key_).value();
  const Verification retired = VerifyCertificate(envelope, {known}, {npz_}).value();
  EXPECT_TRUE(retired.passed());
  EXPECT_THAT(Find(retired, "signature")->detail, HasSubstr("in use until 2026-01-02T03:04:05Z"));
  EXPECT_EQ(Find(retired, "key"), nullptr);
  known.revoke_time = absl::FromUnixSeconds(1767323046);
  known.revoke_reason = "the disk was sold";
  const Verification revoked = VerifyCertificate(envelope, {known}, {npz_}).value();
  ExpectOnlyFailure(revoked, "key", "revoked on 2026-01-02T03:04:06Z: the disk was sold; somebody else may");
  EXPECT_EQ(revoked.checks.size(), retired.checks.size() + 1);
  EXPECT_TRUE(OpenSigned(envelope, {known}).ok());
}

TEST_F(CertificateTest, EveryChangedFieldSignedByAStrangerIsRefused) {
  const SigningKey stranger = SigningKey::Generate().value();
  const Json json = Json::parse(StatementToJson(ExampleStatement(FullSpec())));
  const Json fields = json.flatten();
  size_t changed = 0;
  for (const auto& [path, value] : fields.items()) {
    Json altered = json;
    Json& field = altered[Json::json_pointer(path)];
    field = value.is_string() ? Json(value.get<std::string>() + "x") : value.is_number() ? Json(7.5) : Json("x");
    const std::string payload = altered.dump();
    const Verification unknown = VerifyCertificate(SignPayload(payload, stranger), trusted(), {}).value();
    ASSERT_EQ(unknown.checks.size(), 1U) << path;
    ExpectOnlyFailure(unknown, "signature", "not trusted");
    Json claimed = Json::parse(SignPayload(payload, stranger));
    claimed["signatures"][0]["keyid"] = key_.verifying_key().key_id();
    ExpectOnlyFailure(VerifyCertificate(claimed.dump(), trusted(), {}).value(), "signature", "not a signature of key");
    ++changed;
  }
  EXPECT_GT(changed, 120U);
}

TEST_F(CertificateTest, EveryMethodIsRecomputed) {
  const struct {
    std::string name;
    std::function<void(v1::TrainingSpec&)> set;
  } kCases[] = {
      {"batches", [](v1::TrainingSpec& s) { s.mutable_options()->set_batch_size(300); }},
      {"a hidden layer", [](v1::TrainingSpec& s) { s.mutable_options()->set_hidden_size(8); }},
      {"a sample of nodes", [](v1::TrainingSpec& s) { s.mutable_options()->set_node_sampling_rate(0.5); }},
      {"a private mean", [](v1::TrainingSpec& s) { s.mutable_options()->set_center(true); }},
      {"an evaluation",
       [](v1::TrainingSpec& s) {
         s.mutable_evaluation()->set_held_out_share(0.2);
         s.mutable_evaluation()->set_budget_share(0.1);
       }},
      {"EM0", [](v1::TrainingSpec& s) { s.set_method(v1::DPAR_EM0); }},
      {"EM1", [](v1::TrainingSpec& s) { s.set_method(v1::DPAR_EM1); }},
      {"GM", [](v1::TrainingSpec& s) { s.set_method(v1::DPAR_GM); }},
      {"GM, its rows only, on a sample, in batches",
       [](v1::TrainingSpec& s) {
         s.set_method(v1::DPAR_GM);
         s.mutable_options()->set_rows(v1::APPR_ONLY);
         s.mutable_options()->set_node_sampling_rate(0.5);
         s.mutable_options()->set_batch_size(10);
       }},
      {"the published epsilon beside it",
       [](v1::TrainingSpec& s) {
         s.set_method(v1::DPAR_GM);
         s.set_accountant(v1::AS_PUBLISHED);
         s.mutable_options()->set_batch_size(300);
       }},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    v1::TrainingSpec spec = ExampleSpec();
    test.set(spec);
    const Verification verification = Verify(ExampleStatement(spec));
    for (const Check& check : verification.checks) {
      EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    }
    EXPECT_TRUE(verification.passed());
    EXPECT_LE(verification.recomputed_epsilon, 1 + 1e-9);
    EXPECT_GT(verification.recomputed_epsilon, 0.99);
  }
}

TEST_F(CertificateTest, EveryChangedNumberOfThePlanIsRefused) {
  // The price does not depend on what is done with the noisy sums afterwards, on the shares that noise was calibrated
  // by, or on a solver whose rows are clipped. The held-out share counts through the slots that it rounds to. Epsilon
  // and delta have a check of their own.
  const std::set<std::string> free = {"/epsilon",
                                      "/delta",
                                      "/learning_rate",
                                      "/momentum",
                                      "/logit_noise",
                                      "/structure/share",
                                      "/structure/rho",
                                      "/structure/alpha",
                                      "/structure/gamma",
                                      "/structure/column_clip",
                                      "/evaluation/held_out_share"};
  const Statement statement = ExampleStatement(FullSpec());
  const Json plan = MessageToJson(statement.plan, {"event", "price_units", "left_units"});
  const Json numbers = plan.flatten();
  size_t checked = 0;
  for (const auto& [path, value] : numbers.items()) {
    if (!value.is_number() || free.contains(path)) {
      continue;
    }
    std::vector<Json> others = {value.get<double>() * (1 + 1e-9) + 1e-300, value.get<double>() * (1 - 1e-9) - 1e-300};
    if (value.is_number_integer()) {
      others = {value.get<int64_t>() + 1, value.get<int64_t>() - 1};
    }
    for (const Json& other : others) {
      SCOPED_TRACE(path + " " + other.dump());
      Json changed = plan;
      changed[Json::json_pointer(path)] = other;
      Statement altered = statement;
      v1::Plan altered_plan;
      ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(changed.dump(), &altered_plan).ok());
      *altered_plan.mutable_event() = statement.plan.event();
      altered.plan = altered_plan;
      altered.evaluation->set_held_out_slots(altered_plan.evaluation().held_out_slots());
      ExpectOnlyFailure(Verify(altered), "mechanism", "");
      ++checked;
    }
  }
  EXPECT_GE(checked, 2U * 20);
}

TEST_F(CertificateTest, AnEventThatDoesNotFollowFromThePlanIsRefused) {
  const struct {
    std::string detail;
    std::function<void(v1::Plan&)> spoil;
  } kCases[] = {
      {"not the one that follows", [](v1::Plan& p) { p.set_noise_multiplier(p.noise_multiplier() * (1 - 1e-9)); }},
      {"not the one that follows", [](v1::Plan& p) { p.set_steps(96); }},
      {"lattice_bits", [](v1::Plan& p) { p.set_lattice_bits(30); }},
      {"summation_error", [](v1::Plan& p) { p.clear_structure(), p.set_rows_per_node(1); }},
      {"not the one that follows", [](v1::Plan& p) { p.clear_mean(); }},
      {"no event", [](v1::Plan& p) { p.set_noise_multiplier(0); }},
      {"no event", [](v1::Plan& p) { p.mutable_mean()->set_noise_stddev(-1); }},
      {"no event", [](v1::Plan& p) { p.set_method(v1::FEATURES); }},
      {"rows_per_node", [](v1::Plan& p) { p.mutable_structure()->set_max_occurrence(2); }},
      {"rows_per_node", [](v1::Plan& p) { p.set_rows_per_node(1); }},
      {"sampling_rate", [](v1::Plan& p) { p.set_sampling_rate(0.5); }},
      {"sampling_rate", [](v1::Plan& p) { p.mutable_structure()->set_rows(v1::APPR_ONLY); }},
      {"summation_error", [](v1::Plan& p) { p.set_summation_error(0); }},
      {"mean.summation_error", [](v1::Plan& p) { p.mutable_mean()->set_summation_error(0); }},
      {"unit length", [](v1::Plan& p) { p.set_transform(v1::RAW); }},
      {"held_out_slots", [](v1::Plan& p) { p.mutable_evaluation()->set_held_out_share(0.5); }},
      {"SOUND", [](v1::Plan& p) { p.set_accountant(v1::AS_PUBLISHED); }},
      {"SOUND", [](v1::Plan& p) { p.set_published_epsilon(0.1); }},
      {"SOUND", [](v1::Plan& p) { p.set_accountant(v1::ACCOUNTANT_UNSPECIFIED); }},
      {"out of range", [](v1::Plan& p) { p.set_training_slots(int64_t{1} << 62); }},
      {"out of range", [](v1::Plan& p) { p.set_hidden_size(int64_t{1} << 62); }},
      {"out of range", [](v1::Plan& p) { p.mutable_structure()->set_top_k(int64_t{1} << 62); }},
      {"out of range", [](v1::Plan& p) { p.mutable_structure()->set_appr_nodes(0); }},
      {"out of range", [](v1::Plan& p) { p.mutable_structure()->set_max_occurrence(int64_t{1} << 62); }},
      {"out of range", [](v1::Plan& p) { p.mutable_evaluation()->set_held_out_share(1e300); }},
  };
  const Statement example = ExampleStatement(FullSpec());
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.detail);
    Statement statement = example;
    test.spoil(statement.plan);
    ExpectOnlyFailure(Verify(statement), "mechanism", test.detail);
  }
}

TEST_F(CertificateTest, SlotsThatAreNeitherTrainedOnNorHeldOutAreRefused) {
  Statement statement = ExampleStatement();
  statement.sizes.node_count += 1;
  ExpectOnlyFailure(Verify(statement), "mechanism", "training and held-out slots are not all slots");
}

TEST_F(CertificateTest, ASensitivityThatForgetsTheLatticeIsRefused) {
  Statement statement = ExampleStatement();
  v1::StageEvent& stage = *statement.plan.mutable_event()->mutable_composition()->mutable_events(0)->mutable_stage();
  ASSERT_EQ(stage.name(), kTrainingStage);
  stage.mutable_event()->mutable_gaussian()->set_sensitivity(statement.plan.gradient_clip());
  Reprice(statement);
  statement.accountant_epsilon = EventEpsilon(statement.plan.event(), statement.plan.delta()).value();
  ExpectOnlyFailure(Verify(statement), "mechanism", "not the one that follows");
}

TEST_F(CertificateTest, AnEventWithoutOneOfItsStagesIsRefused) {
  Statement statement = ExampleStatement(FullSpec());
  statement.plan.mutable_event()->mutable_composition()->mutable_events()->RemoveLast();
  Reprice(statement);
  statement.accountant_epsilon = EventEpsilon(statement.plan.event(), statement.plan.delta()).value();
  ExpectOnlyFailure(Verify(statement), "mechanism", "not the one that follows");
}

TEST_F(CertificateTest, AnEventOutOfRangeIsRefused) {
  for (const double bad : {0.0, -1.0}) {
    Statement statement = ExampleStatement();
    statement.plan.mutable_event()
        ->mutable_composition()
        ->mutable_events(0)
        ->mutable_stage()
        ->mutable_event()
        ->mutable_gaussian()
        ->set_noise_stddev(bad);
    EXPECT_FALSE(Verify(statement).passed());
  }
}

TEST_F(CertificateTest, ThePapersNoiseIsCertifiedAtItsSoundCost) {
  v1::TrainingSpec spec;
  spec.set_epsilon(0.5);
  spec.set_method(v1::FEATURES);
  spec.set_preset(v1::PAPER);
  Statement statement = ExampleStatement(spec);
  EXPECT_NEAR(statement.plan.published_epsilon(), 0.5, 1e-6);
  EXPECT_GT(statement.plan.epsilon(), 0.5);
  const Verification verification = Verify(statement);
  EXPECT_TRUE(Find(verification, "mechanism")->passed) << Find(verification, "mechanism")->detail;
  EXPECT_TRUE(Find(verification, "epsilon")->passed) << Find(verification, "epsilon")->detail;
  statement.plan.set_epsilon(statement.plan.published_epsilon());
  RehashEntry(statement);
  ExpectOnlyFailure(Verify(statement), "epsilon", "understates");
}

TEST_F(CertificateTest, ALedgerEntryThatChargedAnotherPriceIsRefused) {
  Statement statement = ExampleStatement();
  statement.units -= 1;
  RehashEntry(statement);
  ExpectOnlyFailure(Verify(statement), "ledger", "the ledger charged");
  statement.units += 2;
  RehashEntry(statement);
  ExpectOnlyFailure(Verify(statement), "ledger", "the ledger charged");
}

TEST_F(CertificateTest, SaysWhatWasUsedOfTheCap) {
  Statement statement = ExampleStatement();
  EXPECT_THAT(Find(Verify(statement), "ledger")->detail,
              HasSubstr(absl::StrCat("; 1234567 of ", statement.cap_units, " units were used before, ",
                                     1234567 + statement.units, " after")));
  // After a debit by hand for spend elsewhere, which is not refused, because it took place.
  statement.units_before = statement.cap_units;
  const Verification beyond = Verify(statement);
  EXPECT_TRUE(beyond.passed());
  EXPECT_THAT(Find(beyond, "ledger")->detail, HasSubstr("which is beyond the cap"));
  statement = ExampleStatement();
  statement.cap_units += 1;
  ExpectOnlyFailure(Verify(statement), "ledger", "the certificate says");
}

TEST_F(CertificateTest, AnEventAboveTheCapIsRefused) {
  Statement statement = ExampleStatement();
  statement.cap_epsilon = 0.5;
  ExpectOnlyFailure(Verify(statement), "ledger", "exceeds the budget's cap");
}

TEST_F(CertificateTest, AnOrderOrCapOutOfRangeIsRefused) {
  Statement statement = ExampleStatement();
  statement.order = 1;
  ExpectOnlyFailure(Verify(statement), "ledger", "order");
  statement = ExampleStatement();
  statement.cap_delta = 1;
  ExpectOnlyFailure(Verify(statement), "ledger", "cap_delta");
}

TEST_F(CertificateTest, ASignedPayloadThatIsNotAStatementIsRefused) {
  for (const char* payload : {"", "{}", "hello world"}) {
    const Verification verification = VerifyCertificate(SignPayload(payload, key_), trusted(), {npz_}).value();
    ExpectOnlyFailure(verification, "statement", "");
    EXPECT_EQ(verification.checks.size(), 2U);
  }
}

TEST_F(CertificateTest, ACertificateWhoseEvaluationIsNotThePlansIsRefused) {
  Statement statement = ExampleStatement(FullSpec());
  statement.evaluation.reset();
  EXPECT_EQ(SignStatement(statement, key_).status().code(), absl::StatusCode::kInvalidArgument);
  const Verification verification = Verify(statement);
  ExpectOnlyFailure(verification, "statement", "predicate.evaluation");
}

TEST_F(CertificateTest, APublicCertificateSaysThatNothingIsPromised) {
  const std::string envelope = SignStatement(ExamplePublicStatement(), key_).value();
  const Verification verification = VerifyCertificate(envelope, trusted(), {npz_}).value();
  EXPECT_TRUE(verification.passed());
  ASSERT_NE(Find(verification, "guarantee"), nullptr);
  EXPECT_THAT(Find(verification, "guarantee")->detail, HasSubstr("nothing is guaranteed"));
  EXPECT_EQ(Find(verification, "epsilon"), nullptr);
  EXPECT_EQ(verification.recomputed_epsilon, 0);
  EXPECT_FALSE(VerifyCertificate(envelope, trusted(), {other_}).value().passed());
}

TEST_F(CertificateTest, AStatementThatWouldNotBeTakenBackIsNotSigned) {
  Statement statement = ExampleStatement();
  statement.job = "not a name";
  EXPECT_EQ(SignStatement(statement, key_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CertificateTest, AnEmptyVerificationHasNotPassed) { EXPECT_FALSE(Verification().passed()); }

}  // namespace
}  // namespace dpar
