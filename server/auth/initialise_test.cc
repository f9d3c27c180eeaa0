#include "server/auth/initialise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <memory>

#include "absl/strings/ascii.h"
#include "core/error.h"
#include "core/random/testing/fixed_random.h"
#include "server/auth/authenticator.h"
#include "server/auth/tls.h"
#include "server/files.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

class InitialiseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/init_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    directory_ = std::make_unique<DataDirectory>(root_ + "/data");
    ASSERT_TRUE(MakeParentDirectory(directory_->Database()).ok());
    database_ = OpenSqlite(directory_->Database()).value();
    ASSERT_TRUE(Migrate(*database_).ok());
  }
  void TearDown() override {
    database_.reset();
    fs::remove_all(root_);
  }

  absl::StatusOr<MadeFiles> Run(absl::Time now = kNow) {
    return Initialise(*directory_, *database_, std::vector<std::string>{"dpar.example"}, now, random_);
  }
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> contents;
    for (const std::string& path : AllFiles()) {
      contents[path] = ReadWholeFile(path).value();
    }
    return contents;
  }
  std::vector<std::string> AllFiles() const {
    return {directory_->CaCertificate(), directory_->CaKey(),      directory_->ServerCertificate(),
            directory_->ServerKey(),     directory_->SigningKey(), directory_->SigningPublicKey(),
            directory_->OperatorToken()};
  }
  absl::StatusOr<Identity> TokenInFile() const {
    const std::string header =
        "Bearer " + std::string(absl::StripAsciiWhitespace(ReadWholeFile(directory_->OperatorToken()).value()));
    CallMetadata metadata;
    metadata.emplace("authorization", header);
    return Authenticator(*database_).Authenticate({"ServerService/WhoAmI", metadata, "local:"}, kNow);
  }
  void RevokeAll() {
    ASSERT_TRUE(database_
                    ->Write([](Transaction& t) {
                      const TokenPage page = ListTokens(t, "operator", 100, "").value();
                      for (const v1::Token& token : page.tokens) {
                        const std::string id = token.name().substr(token.name().rfind('/') + 1);
                        EXPECT_TRUE(RevokeToken(t, id, kNow).ok());
                      }
                      return absl::OkStatus();
                    })
                    .ok());
  }

  testing::FixedRandom random_{11};
  std::string root_;
  std::unique_ptr<DataDirectory> directory_;
  std::unique_ptr<Database> database_;
};

TEST_F(InitialiseTest, AServerWithACertificateFromElsewhereGetsNoneMade) {
  ASSERT_THAT(
      Initialise(*directory_, *database_, std::nullopt, kNow, random_).value(),
      UnorderedElementsAre(directory_->SigningKey(), directory_->SigningPublicKey(), directory_->OperatorToken()));
  EXPECT_FALSE(fs::exists(directory_->CaCertificate()));
  EXPECT_FALSE(fs::exists(directory_->ServerCertificate()));
}

unsigned Mode(const std::string& path) {
  struct stat file = {};
  EXPECT_EQ(stat(path.c_str(), &file), 0) << path;
  return file.st_mode & 0777;
}

TEST_F(InitialiseTest, AnEmptyDirectoryGetsEverything) {
  const absl::StatusOr<MadeFiles> made = Run();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(*made, ::testing::UnorderedElementsAreArray(AllFiles()));
  EXPECT_TRUE(KeyMatches(
      {ReadWholeFile(directory_->ServerCertificate()).value(), ReadWholeFile(directory_->ServerKey()).value()}));
  const absl::StatusOr<Identity> identity = TokenInFile();
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->role, v1::OPERATOR);
}

TEST_F(InitialiseTest, SecretsAreForTheOwnerOnly) {
  ASSERT_TRUE(Run().ok());
  for (const std::string& path :
       {directory_->CaKey(), directory_->ServerKey(), directory_->SigningKey(), directory_->OperatorToken()}) {
    EXPECT_EQ(Mode(path), 0600U) << path;
    EXPECT_EQ(Mode(fs::path(path).parent_path()), 0700U) << path;
  }
  EXPECT_EQ(Mode(directory_->CaCertificate()), 0644U);
  EXPECT_EQ(Mode(directory_->SigningPublicKey()), 0644U);
}

TEST_F(InitialiseTest, ASecondRunChangesNothing) {
  ASSERT_TRUE(Run().ok());
  const auto before = Contents();
  const absl::StatusOr<MadeFiles> made = Run();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(*made, IsEmpty());
  EXPECT_EQ(Contents(), before);
}

// A run that is cut short leaves a prefix of the files, in the order in which they are written.
TEST_F(InitialiseTest, WhateverACrashLeftIsCompleted) {
  const MadeFiles order = Run().value();
  for (size_t kept = 0; kept < order.size(); ++kept) {
    RevokeAll();
    for (size_t i = kept; i < order.size(); ++i) {
      fs::remove(order[i]);
    }
    const absl::StatusOr<MadeFiles> made = Run();
    ASSERT_TRUE(made.ok()) << kept << ": " << made.status();
    EXPECT_THAT(AllFiles(), ::testing::Each(::testing::ResultOf([](const std::string& p) { return fs::exists(p); },
                                                                ::testing::IsTrue())));
    EXPECT_TRUE(KeyMatches(
        {ReadWholeFile(directory_->ServerCertificate()).value(), ReadWholeFile(directory_->ServerKey()).value()}));
    EXPECT_TRUE(TokenInFile().ok());
    EXPECT_THAT(Run().value(), IsEmpty());
  }
}

TEST_F(InitialiseTest, ATokenFileThatTheStoreDoesNotKnowYetIsTakenUp) {
  const BearerToken bearer = MakeBearerToken(random_);
  ASSERT_TRUE(WriteFileDurably(directory_->OperatorToken(), FormatBearerToken(bearer) + "\n", 0600).ok());
  ASSERT_TRUE(Run().ok());
  const absl::StatusOr<Identity> identity = TokenInFile();
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->token, "operator/tokens/" + bearer.id);
}

TEST_F(InitialiseTest, ATokenFileThatWasPutElsewhereIsNotMissed) {
  ASSERT_TRUE(Run().ok());
  fs::remove(directory_->OperatorToken());
  EXPECT_THAT(Run().value(), IsEmpty());
  EXPECT_FALSE(fs::exists(directory_->OperatorToken()));
}

TEST_F(InitialiseTest, WhenEveryOperatorTokenIsRevokedAnotherIsMade) {
  ASSERT_TRUE(Run().ok());
  RevokeAll();
  EXPECT_EQ(TokenInFile().status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Run().value(), UnorderedElementsAre(directory_->OperatorToken()));
  EXPECT_TRUE(TokenInFile().ok());
}

TEST_F(InitialiseTest, TheAuthoritysKeyMayBeKeptElsewhere) {
  ASSERT_TRUE(Run().ok());
  fs::remove(directory_->CaKey());
  EXPECT_THAT(Run().value(), IsEmpty());
}

TEST_F(InitialiseTest, ALostServerKeyIsReplacedUnderTheSameAuthority) {
  ASSERT_TRUE(Run().ok());
  const std::string authority = ReadWholeFile(directory_->CaCertificate()).value();
  fs::remove(directory_->ServerKey());
  EXPECT_THAT(Run().value(), SizeIs(2));
  EXPECT_EQ(ReadWholeFile(directory_->CaCertificate()).value(), authority);
}

void ExpectCorrupt(const absl::Status& status, const std::string& resource) {
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "STORE_CORRUPT");
  EXPECT_EQ(info->metadata().at("resource"), resource);
}

TEST_F(InitialiseTest, ALostSigningKeyIsNotReplacedSilently) {
  ASSERT_TRUE(Run().ok());
  fs::remove(directory_->SigningKey());
  ExpectCorrupt(Run().status(), directory_->SigningKey());
}

TEST_F(InitialiseTest, AServerCertificateCannotBeMadeWithoutTheAuthoritysKey) {
  ASSERT_TRUE(Run().ok());
  fs::remove(directory_->CaKey());
  fs::remove(directory_->ServerKey());
  ExpectCorrupt(Run().status(), directory_->CaKey());
}

TEST_F(InitialiseTest, AKeyThatIsNotTheCertificatesIsReported) {
  ASSERT_TRUE(Run().ok());
  fs::copy_file(directory_->CaKey(), directory_->ServerKey(), fs::copy_options::overwrite_existing);
  ExpectCorrupt(Run().status(), directory_->ServerKey());
}

}  // namespace
}  // namespace dpar
