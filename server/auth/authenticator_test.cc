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
    authenticator_ = std::make_unique<Authenticator>(
        *database_, FailureBrakeOptions{.free_failures = 20, .sleep = [this](absl::Duration d) { slept_ += d; }});
  }
  void TearDown() override {
    authenticator_.reset();
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
    return authenticator_->Authenticate({"ServerService/WhoAmI", metadata, "ipv4:10.0.0.1"}, now);
  }
  absl::StatusOr<Identity> AuthenticateCertificate(const std::vector<std::string>& uris, absl::Time now = kNow) {
    return authenticator_->Authenticate({"ServerService/WhoAmI", CallMetadata(), "ipv4:10.0.0.1", uris}, now);
  }
  void AddCertificate(const std::string& id, const std::string& uri, int64_t life_seconds = 0) {
    v1::Token wanted;
    wanted.set_role(v1::MEMBER);
    wanted.set_certificate_uri(uri);
    if (life_seconds > 0) {
      wanted.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(kNow) + life_seconds);
    }
    const StoredToken stored = SealCertificateToken(id, "tenants/acme", wanted, kNow);
    ASSERT_TRUE(database_->Write([&](Transaction& t) { return InsertToken(t, stored); }).ok());
  }

  testing::FixedRandom random_{7};
  std::string directory_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Authenticator> authenticator_;
  absl::Duration slept_;
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

TEST_F(AuthenticatorTest, ScopesAndExpiryComeWithTheIdentity) {
  v1::Token wanted;
  wanted.set_role(v1::OWNER);
  wanted.add_scopes(v1::TRAIN);
  wanted.add_scopes(v1::READ);
  wanted.add_scopes(v1::TRAIN);
  wanted.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(kNow) + 60);
  const absl::StatusOr<Identity> identity = Authenticate({"Bearer " + AddToken("tenants/acme", wanted)});
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->scopes, (std::vector<v1::Scope>{v1::READ, v1::TRAIN}));
  EXPECT_EQ(identity->expire_time.value().seconds(), absl::ToUnixSeconds(kNow) + 60);
  EXPECT_EQ(identity->method.name, "ServerService/WhoAmI");
  const absl::StatusOr<Identity> plain = Authenticate({"Bearer " + AddOwner()});
  EXPECT_TRUE(plain.value().scopes.empty());
  EXPECT_FALSE(plain.value().expire_time.has_value());
}

TEST_F(AuthenticatorTest, ACallOfNoMethodIsAFault) {
  const std::string header = "Bearer " + AddOwner();
  CallMetadata metadata;
  metadata.emplace("authorization", header);
  EXPECT_EQ(authenticator_->Authenticate({"ServerService/Nothing", metadata, ""}, kNow).status().code(),
            absl::StatusCode::kInternal);
}

TEST_F(AuthenticatorTest, ACertificatesUriStandsForItsToken) {
  AddCertificate("c1", "spiffe://example.org/trainer");
  const absl::StatusOr<Identity> identity = AuthenticateCertificate({"spiffe://example.org/trainer"});
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->token, "tenants/acme/tokens/c1");
  EXPECT_EQ(identity->tenant, "tenants/acme");
  EXPECT_EQ(identity->role, v1::MEMBER);
}

TEST_F(AuthenticatorTest, OnlyTheUriItselfMatches) {
  AddCertificate("c1", "spiffe://example.org/trainer");
  for (const std::string& uri :
       {std::string("spiffe://example.org/trainer/"), std::string("spiffe://example.org/traine"),
        std::string("spiffe://example.org/*"), std::string("SPIFFE://example.org/trainer"), std::string("*"),
        std::string(), std::string("spiffe://example.org/trainer\0", 29), std::string("example.org")}) {
    ExpectRefused(AuthenticateCertificate({uri}), "TOKEN_INVALID");
  }
}

TEST_F(AuthenticatorTest, OneOfSeveralUrisMayMatchButNotTwo) {
  AddCertificate("c1", "spiffe://example.org/a");
  AddCertificate("c2", "spiffe://example.org/b");
  EXPECT_TRUE(AuthenticateCertificate({"spiffe://example.org/x", "spiffe://example.org/a"}).ok());
  EXPECT_TRUE(AuthenticateCertificate({"spiffe://example.org/a", "spiffe://example.org/a"}).ok());
  ExpectRefused(AuthenticateCertificate({"spiffe://example.org/a", "spiffe://example.org/b"}), "TOKEN_INVALID");
  std::vector<std::string> many(8, "spiffe://example.org/x");
  many.back() = "spiffe://example.org/a";
  EXPECT_TRUE(AuthenticateCertificate(many).ok());
  many.insert(many.begin(), "spiffe://example.org/x");
  ExpectRefused(AuthenticateCertificate(many), "TOKEN_INVALID");
}

TEST_F(AuthenticatorTest, ACertificatesTokenExpiresAndIsRevokedLikeAnyOther) {
  AddCertificate("c1", "spiffe://example.org/a", 60);
  AddCertificate("c2", "spiffe://example.org/b");
  EXPECT_TRUE(AuthenticateCertificate({"spiffe://example.org/a"}, kNow + absl::Seconds(59)).ok());
  ExpectRefused(AuthenticateCertificate({"spiffe://example.org/a"}, kNow + absl::Seconds(60)), "TOKEN_INVALID");
  ASSERT_TRUE(database_->Write([](Transaction& t) { return RevokeToken(t, "c2", kNow); }).ok());
  ExpectRefused(AuthenticateCertificate({"spiffe://example.org/b"}), "TOKEN_INVALID");
}

TEST_F(AuthenticatorTest, NoSecretOpensACertificatesToken) {
  AddCertificate("c1", "spiffe://example.org/a");
  ExpectRefused(Authenticate({"Bearer dpar_c1_" + std::string(64, '0')}), "TOKEN_INVALID");
  // What SHA-256 gives for an empty salt and an empty secret.
  ExpectRefused(Authenticate({"Bearer dpar_c1_e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}),
                "TOKEN_INVALID");
}

TEST_F(AuthenticatorTest, AHeaderCountsAloneThoughTheCertificateIsGood) {
  AddCertificate("c1", "spiffe://example.org/a");
  const std::string wrong = "Bearer dpar_c1_" + std::string(64, '0');
  CallMetadata metadata;
  metadata.emplace("authorization", wrong);
  ExpectRefused(authenticator_->Authenticate(
                    {"ServerService/WhoAmI", metadata, "ipv4:10.0.0.1", {"spiffe://example.org/a"}}, kNow),
                "TOKEN_INVALID");
  const std::string owner = "Bearer " + AddOwner();
  CallMetadata good;
  good.emplace("authorization", owner);
  const auto identity =
      authenticator_->Authenticate({"ServerService/WhoAmI", good, "ipv4:10.0.0.1", {"spiffe://example.org/a"}}, kNow);
  EXPECT_EQ(identity.value().role, v1::OWNER);
}

TEST_F(AuthenticatorTest, FailuresAreCountedAndSlowedAndGoodTokensAreNeither) {
  const std::string good = "Bearer " + AddOwner();
  for (int i = 0; i < 20; ++i) {
    ExpectRefused(Authenticate({"Bearer nonsense"}), "TOKEN_INVALID");
  }
  EXPECT_EQ(slept_, absl::ZeroDuration());
  ExpectRefused(Authenticate({}), "TOKEN_MISSING");
  EXPECT_EQ(slept_, absl::Seconds(1));
  EXPECT_TRUE(Authenticate({good}).ok());
  EXPECT_EQ(slept_, absl::Seconds(1));
  EXPECT_EQ(authenticator_->failures(), 21);
}

TEST_F(AuthenticatorTest, AUseIsNotedAndAFailureIsNot) {
  const std::string used = AddOwner();
  const std::string tried = AddOwner();
  ASSERT_TRUE(Authenticate({"Bearer " + used}).ok());
  ExpectRefused(Authenticate({"Bearer " + FormatBearerToken({ParseBearerToken(tried)->id, std::string(64, '0')})}),
                "TOKEN_INVALID");
  ASSERT_TRUE(authenticator_->last_uses().Flush().ok());
  ASSERT_TRUE(database_
                  ->Read([&](Transaction& t) {
                    EXPECT_EQ(GetToken(t, ParseBearerToken(used)->id).value().token.last_use_time().seconds(),
                              absl::ToUnixSeconds(kNow) / 60 * 60);
                    EXPECT_FALSE(GetToken(t, ParseBearerToken(tried)->id).value().token.has_last_use_time());
                    return absl::OkStatus();
                  })
                  .ok());
}

TEST_F(AuthenticatorTest, WhatFollowsATokenIsNotIgnored) {
  ExpectRefused(Authenticate({"Bearer " + AddOwner() + " "}), "TOKEN_INVALID");
}

}  // namespace
}  // namespace dpar
