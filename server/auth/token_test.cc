#include "server/auth/token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/random/testing/fixed_random.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

using ::testing::MatchesRegex;
using ::testing::Not;

const std::string kSecret(64, 'a');

v1::Token Wanted(v1::Role role) {
  v1::Token token;
  token.set_role(role);
  token.set_purpose("tests");
  return token;
}

TEST(BearerTokenTest, AFreshTokenHasAnIdAnd256BitsInHex) {
  testing::FixedRandom random(1);
  const BearerToken token = MakeBearerToken(random);
  EXPECT_THAT(FormatBearerToken(token), MatchesRegex("dpar_[0-9a-f]{16}_[0-9a-f]{64}"));
}

TEST(BearerTokenTest, TwoTokensShareNothing) {
  testing::FixedRandom random(1);
  const BearerToken first = MakeBearerToken(random);
  const BearerToken second = MakeBearerToken(random);
  EXPECT_NE(first.id, second.id);
  EXPECT_NE(first.secret, second.secret);
}

TEST(BearerTokenTest, FormattingAndParsingAreInverse) {
  testing::FixedRandom random(2);
  const BearerToken token = MakeBearerToken(random);
  const std::optional<BearerToken> parsed = ParseBearerToken(FormatBearerToken(token));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->id, token.id);
  EXPECT_EQ(parsed->secret, token.secret);
}

TEST(BearerTokenTest, AnythingElseIsNoToken) {
  for (const std::string& text :
       {std::string(), std::string("dpar_"), std::string("dpar_id"), "dpar__" + kSecret, "dpar_id_" + kSecret + "a",
        "dpar_id_" + kSecret.substr(1), "dpar_id_" + std::string(64, 'A'), "dpar_id_" + std::string(64, 'g'),
        "dpar_ID_" + kSecret, "dpar_a/b_" + kSecret, "DPAR_id_" + kSecret, " dpar_id_" + kSecret,
        "dpar_id_" + kSecret + "\n", "dpar_a_b_" + kSecret, "dpar_-_" + kSecret}) {
    EXPECT_FALSE(ParseBearerToken(text).has_value()) << text;
  }
}

TEST(SealTokenTest, TheSecretIsNotStored) {
  testing::FixedRandom random(3);
  const BearerToken bearer = MakeBearerToken(random);
  const StoredToken stored =
      SealToken(bearer, "tenants/acme", Wanted(v1::MEMBER), absl::FromUnixSeconds(1'000), random);
  EXPECT_EQ(stored.token.name(), "tenants/acme/tokens/" + bearer.id);
  EXPECT_EQ(stored.token.role(), v1::MEMBER);
  EXPECT_EQ(stored.token.purpose(), "tests");
  EXPECT_EQ(stored.token.create_time().seconds(), 1'000);
  EXPECT_FALSE(stored.token.has_expire_time());
  EXPECT_EQ(stored.tenant, "tenants/acme");
  EXPECT_THAT(stored.salt, MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(stored.hash, MatchesRegex("[0-9a-f]{64}"));
  EXPECT_THAT(stored.hash + stored.salt + stored.token.DebugString(), Not(::testing::HasSubstr(bearer.secret)));
}

TEST(SealTokenTest, AnOperatorsTokenBelongsToNoTenant) {
  testing::FixedRandom random(3);
  const StoredToken stored =
      SealToken({"id", kSecret}, kOperatorParent, Wanted(v1::OPERATOR), absl::FromUnixSeconds(0), random);
  EXPECT_EQ(stored.token.name(), "operator/tokens/id");
  EXPECT_EQ(stored.tenant, "");
}

TEST(SealTokenTest, TheSameSecretGetsAnotherHashUnderAnotherSalt) {
  testing::FixedRandom random(4);
  const absl::Time now = absl::FromUnixSeconds(0);
  const StoredToken first = SealToken({"id", kSecret}, kOperatorParent, Wanted(v1::OPERATOR), now, random);
  const StoredToken second = SealToken({"id", kSecret}, kOperatorParent, Wanted(v1::OPERATOR), now, random);
  EXPECT_NE(first.hash, second.hash);
}

TEST(SecretMatchesTest, OnlyTheSecretItselfMatches) {
  testing::FixedRandom random(5);
  const StoredToken stored =
      SealToken({"id", kSecret}, kOperatorParent, Wanted(v1::OPERATOR), absl::FromUnixSeconds(0), random);
  EXPECT_TRUE(SecretMatches(stored, kSecret));
  EXPECT_FALSE(SecretMatches(stored, std::string(63, 'a') + "b"));
  EXPECT_FALSE(SecretMatches(stored, ""));
  EXPECT_FALSE(SecretMatches(stored, stored.hash));
}

TEST(IsLiveTest, ATokenLivesUntilItExpiresOrIsRevoked) {
  v1::Token token;
  EXPECT_TRUE(IsLive(token, absl::FromUnixSeconds(1'000)));
  token.mutable_expire_time()->set_seconds(1'000);
  EXPECT_TRUE(IsLive(token, absl::FromUnixSeconds(999)));
  EXPECT_FALSE(IsLive(token, absl::FromUnixSeconds(1'000)));
  token.clear_expire_time();
  token.mutable_revoke_time()->set_seconds(500);
  EXPECT_FALSE(IsLive(token, absl::FromUnixSeconds(1'000)));
}

}  // namespace
}  // namespace dpar
