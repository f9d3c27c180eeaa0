// Certificates that were made once and kept: those of versions 2 to 4, which dpar 0.2.0 made, keep verifying. What is
// read is compared with how it would be written now, so that they also fix every byte of that.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/certificate/certificate.h"
#include "core/certificate/testing/example_statement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Made by dpar 0.2.0 and kept as it was.
std::string OldFile(const std::string& name) {
  std::ifstream file(absl::StrCat(std::getenv("DPAR_SOURCE_DIR"), "/core/certificate/testing/", name),
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<KnownKey> OldKeys() { return ParseKeyList(OldFile("certificate_v2.pub")).value(); }
std::vector<KnownKey> FourthKeys() { return ParseKeyList(OldFile("certificate_v4.pub")).value(); }
std::vector<KnownKey> ThirdKeys() { return ParseKeyList(OldFile("certificate_v3.pub")).value(); }

std::vector<std::string> Names(const Verification& verification) {
  std::vector<std::string> names;
  for (const Check& check : verification.checks) {
    EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    names.push_back(check.name);
  }
  return names;
}

TEST(CertificateVersionTest, ASecondVersionIsVerifiedForWhatItStates) {
  const Verification verification = VerifyCertificate(OldFile("certificate_v2.json"), OldKeys(), {}).value();
  EXPECT_THAT(Names(verification), ElementsAre("signature", "statement", "mechanism", "epsilon", "ledger"));
  EXPECT_TRUE(verification.passed());
  EXPECT_EQ(verification.statement.predicate_version, 2);
  EXPECT_EQ(verification.statement.software, "dpar 0.2.0");
  EXPECT_EQ(verification.statement.build, "");
  EXPECT_EQ(verification.statement.ledger_sequence, 3);
  EXPECT_TRUE(verification.statement.evaluation.has_value());
  EXPECT_THAT(verification.checks[1].detail, HasSubstr("v2, which says less"));
}

TEST(CertificateVersionTest, ASecondVersionAboutPublicDataStillSaysThatNothingIsPromised) {
  const Verification verification = VerifyCertificate(OldFile("certificate_v2_public.json"), OldKeys(), {}).value();
  EXPECT_THAT(Names(verification), ElementsAre("signature", "statement", "promise"));
  EXPECT_TRUE(verification.passed());
}

TEST(CertificateVersionTest, AThirdVersionIsVerifiedForWhatItStates) {
  const Verification verification = VerifyCertificate(OldFile("certificate_v3.json"), ThirdKeys(), {}).value();
  EXPECT_THAT(Names(verification),
              ElementsAre("signature", "statement", "mechanism", "epsilon", "ledger", "ledger entry"));
  EXPECT_TRUE(verification.passed());
  EXPECT_EQ(verification.statement.predicate_version, 3);
  EXPECT_EQ(verification.statement.max_degree, 0);
  EXPECT_TRUE(verification.statement.evaluation.has_value());
  EXPECT_THAT(verification.checks[1].detail, HasSubstr("v3, which says less: not whether the dataset, or the budget"));

  const Verification gap = VerifyCertificate(OldFile("certificate_v3_gap.json"), ThirdKeys(), {}).value();
  EXPECT_EQ(Names(gap).size(), 6U);
  EXPECT_TRUE(gap.passed());
  EXPECT_EQ(gap.statement.plan.max_degree(), kExampleMaxDegree);
  EXPECT_THAT(StatementToJson(gap.statement), HasSubstr("{\"quantity\":\"degree promise D\",\"value\":50}"));

  const Verification open = VerifyCertificate(OldFile("certificate_v3_public.json"), ThirdKeys(), {}).value();
  EXPECT_THAT(Names(open), ElementsAre("signature", "statement", "promise"));
}

TEST(CertificateVersionTest, AFourthVersionIsWrittenAsItWas) {
  for (const auto& [name, max_degree] :
       {std::pair("certificate_v4.json", int64_t{0}), {"certificate_v4_gap.json", kExampleMaxDegree}}) {
    const Verification verification = VerifyCertificate(OldFile(name), FourthKeys(), {}).value();
    EXPECT_THAT(Names(verification),
                ElementsAre("signature", "statement", "mechanism", "epsilon", "ledger", "ledger entry"));
    EXPECT_TRUE(verification.passed());
    EXPECT_EQ(verification.statement.predicate_version, 4);
    EXPECT_EQ(verification.statement.max_degree, max_degree);
    EXPECT_EQ(verification.statement.cap_max_degree, max_degree);
  }
  const Verification open = VerifyCertificate(OldFile("certificate_v4_public.json"), FourthKeys(), {}).value();
  EXPECT_THAT(Names(open), ElementsAre("signature", "statement", "promise"));
}

TEST(CertificateVersionTest, FlippedBytesOfOlderVersionsAreRefused) {
  for (const auto& [name, keys] :
       {std::pair("certificate_v2.json", OldKeys()), std::pair("certificate_v3.json", ThirdKeys())}) {
    const std::string envelope = OldFile(name);
    ASSERT_GT(envelope.size(), 5000U);
    for (size_t i = 0; i < envelope.size(); i += 7) {
      std::string altered = envelope;
      altered[i] = static_cast<char>(altered[i] ^ 1);
      const auto verification = VerifyCertificate(altered, keys, {});
      EXPECT_FALSE(verification.ok() && verification->passed()) << name << " " << i;
    }
  }
}

TEST(CertificateVersionTest, NothingNewIsSignedInAnOldVersion) {
  const SigningKey key = SigningKey::Generate().value();
  for (const int version : {2, 3}) {
    Statement statement = ExampleStatement();
    statement.predicate_version = version;
    ASSERT_TRUE(ValidateStatement(statement).ok());
    EXPECT_EQ(SignStatement(statement, key).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(CertificateVersionTest, OtherVersionsAreRefusedWithWhatReadsThem) {
  const SigningKey key = SigningKey::Generate().value();
  const std::string type(kPredicateType);
  for (const auto& [version, advice] :
       {std::pair("urn:dpar:privacy-certificate:v1", "dpar 0.1"), {"urn:dpar:privacy-certificate:v5", "newer dpar"}}) {
    std::string payload = StatementToJson(ExampleStatement());
    payload.replace(payload.find(type), type.size(), version);
    const Verification verification = VerifyCertificate(SignPayload(payload, key), {key.verifying_key()}, {}).value();
    EXPECT_FALSE(verification.passed());
    ASSERT_EQ(verification.checks.size(), 2U);
    EXPECT_EQ(verification.checks[1].name, "statement");
    EXPECT_THAT(verification.checks[1].detail, HasSubstr(advice));
  }
}

}  // namespace
}  // namespace dpar
