// A signing key, models on the disk, and what verifying says.
#ifndef DPAR_CORE_CERTIFICATE_TESTING_CERTIFICATE_FIXTURE_H_
#define DPAR_CORE_CERTIFICATE_TESTING_CERTIFICATE_FIXTURE_H_

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/certificate/certificate.h"
#include "core/certificate/testing/example_statement.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dpar::testing {

class CertificateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) / ("certificate_test_" + std::to_string(getpid()));
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

inline const Check* Find(const Verification& verification, const std::string& name) {
  for (const Check& check : verification.checks) {
    if (check.name == name) {
      return &check;
    }
  }
  return nullptr;
}

// Only the check of this name failed, with this in its detail.
inline void ExpectOnlyFailure(const Verification& verification, const std::string& name, const std::string& detail) {
  EXPECT_FALSE(verification.passed());
  for (const Check& check : verification.checks) {
    EXPECT_EQ(check.passed, check.name != name) << check.name << ": " << check.detail;
  }
  const Check* failed = Find(verification, name);
  ASSERT_NE(failed, nullptr);
  EXPECT_THAT(failed->detail, ::testing::HasSubstr(detail));
}

// A plan of this method with every part that it can have, all of whose mechanisms are Gaussian.
inline v1::TrainingSpec FullSpec() {
  v1::TrainingSpec spec = ExampleSpec();
  spec.set_method(v1::DPAR_GM);
  spec.mutable_options()->set_center(true);
  spec.mutable_options()->set_hidden_size(4);
  spec.mutable_evaluation()->set_held_out_share(0.25);
  spec.mutable_evaluation()->set_budget_share(0.1);
  return spec;
}

}  // namespace dpar::testing

#endif  // DPAR_CORE_CERTIFICATE_TESTING_CERTIFICATE_FIXTURE_H_
