#include "server/auth/authenticator.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "core/error.h"
#include "core/random/testing/fixed_random.h"

namespace dpar {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

class AuthenticatorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/auth_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    auto database = OpenSqlite(directory_ + "/dpar.sqlite");
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    ASSERT_TRUE(Migrate(*database_).ok());
    authenticator_ = std::make_unique<Authenticator>(*database_);
  }
  void TearDown() override {
    database_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::string AddToken(const std::string& parent, const v1::Token& wanted) {
    const BearerToken bearer = MakeBearerToken(random_);
    const StoredToken stored = SealToken(bearer, parent, wanted, kNow, random_);
    EXPECT_TRUE(database_->Write([&](Transaction& t) { return InsertToken(t, stored); }).ok());
    return FormatBearerToken(bearer);
  }
  std::string AddOwner() {
    v1::Token wanted;
    wanted.set_role(v1::OWNER);
    return AddToken("tenants/acme", wanted);
  }

  absl::StatusOr<Identity> Authenticate(const std::vector<std::string>& headers, absl::Time now = kNow) {
    CallMetadata metadata;
    for (const std::string& header : headers) {
      metadata.emplace("authorization", header);
    }
    return authenticator_->Authenticate(metadata, now);
  }

  testing::FixedRandom random_{7};
  std::string directory_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Authenticator> authenticator_;
};

void ExpectRefused(const absl::StatusOr<Identity>& identity, const std::string& reason) {
  EXPECT_EQ(identity.status().code(), absl::StatusCode::kUnauthenticated);
  const auto info = GetErrorInfo(identity.status());
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), reason);
  EXPECT_TRUE(info->metadata().empty());
}

TEST_F(AuthenticatorTest, AGoodTokenGivesItsTenantRoleAndName) {
  const std::string bearer = AddOwner();
  const absl::StatusOr<Identity> identity = Authenticate({"Bearer " + bearer});
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->tenant, "tenants/acme");
  EXPECT_EQ(identity->role, v1::OWNER);
  EXPECT_EQ(identity->token, "tenants/acme/tokens/" + ParseBearerToken(bearer)->id);
}

TEST_F(AuthenticatorTest, AnOperatorHasNoTenant) {
  v1::Token wanted;
  wanted.set_role(v1::OPERATOR);
  const absl::StatusOr<Identity> identity = Authenticate({"Bearer " + AddToken("operator", wanted)});
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->tenant, "");
  EXPECT_EQ(identity->role, v1::OPERATOR);
}

TEST_F(AuthenticatorTest, TheSchemeIsReadInAnyCase) { EXPECT_TRUE(Authenticate({"bearer " + AddOwner()}).ok()); }

TEST_F(AuthenticatorTest, NoTokenIsMissing) {
  ExpectRefused(Authenticate({}), "TOKEN_MISSING");
  ExpectRefused(Authenticate({"Basic dXNlcjpwYXNz"}), "TOKEN_MISSING");
  ExpectRefused(Authenticate({""}), "TOKEN_MISSING");
}

TEST_F(AuthenticatorTest, WrongUnknownExpiredAndRevokedAreNotToldApart) {
  const std::string good = AddOwner();
  v1::Token expiring;
  expiring.set_role(v1::OWNER);
  expiring.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(kNow) + 60);
  const std::string expired = AddToken("tenants/acme", expiring);
  const std::string revoked = AddOwner();
  ASSERT_TRUE(
      database_->Write([&](Transaction& t) { return RevokeToken(t, ParseBearerToken(revoked)->id, kNow); }).ok());
  std::string wrong = good;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  const std::string unknown = FormatBearerToken(MakeBearerToken(random_));

  EXPECT_TRUE(Authenticate({"Bearer " + expired}).ok());
  const absl::Time later = kNow + absl::Seconds(60);
  const absl::StatusOr<Identity> first = Authenticate({"Bearer " + wrong}, later);
  ExpectRefused(first, "TOKEN_INVALID");
  for (const std::string& token : {unknown, expired, revoked, std::string("nonsense"), std::string()}) {
    EXPECT_EQ(Authenticate({"Bearer " + token}, later).status(), first.status()) << token;
  }
  EXPECT_TRUE(Authenticate({"Bearer " + good}, later).ok());
}

TEST_F(AuthenticatorTest, TheSecretOfOneTokenDoesNotOpenAnother) {
  const BearerToken first = *ParseBearerToken(AddOwner());
  const BearerToken second = *ParseBearerToken(AddOwner());
  ExpectRefused(Authenticate({"Bearer " + FormatBearerToken({first.id, second.secret})}), "TOKEN_INVALID");
}

TEST_F(AuthenticatorTest, TwoHeadersAreRefusedThoughOneIsGood) {
  const std::string good = "Bearer " + AddOwner();
  ExpectRefused(Authenticate({good, good}), "TOKEN_INVALID");
}

TEST_F(AuthenticatorTest, WhatFollowsATokenIsNotIgnored) {
  ExpectRefused(Authenticate({"Bearer " + AddOwner() + " "}), "TOKEN_INVALID");
}

}  // namespace
}  // namespace dpar
