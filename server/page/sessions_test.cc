#include "server/page/sessions.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/random/secure_random.h"

namespace dpar {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
constexpr char kToken[] = "operator/tokens/a";

class SessionsTest : public ::testing::Test {
 protected:
  std::string Open(const std::string& token, absl::Duration after) {
    return sessions_.Open(token, kStart + after, random_);
  }
  std::optional<std::string> Find(const std::string& secret, absl::Duration after) {
    return sessions_.Find(secret, kStart + after);
  }

  SecureRandom random_;
  Sessions sessions_{
      {.idle = absl::Minutes(15), .life = absl::Hours(8), .max_of_tenants = 5, .max_of_owner = 4, .max_of_token = 3}};
};

TEST_F(SessionsTest, ASecretStandsForItsTokenAndIsOf256RandomBits) {
  const std::string secret = Open(kToken, absl::ZeroDuration());
  EXPECT_EQ(secret.size(), 64U);
  EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(Find(secret, absl::Minutes(1)), kToken);
  EXPECT_NE(Open(kToken, absl::ZeroDuration()), secret);
}

TEST_F(SessionsTest, WhatIsNoSecretStandsForNobody) {
  const std::string secret = Open(kToken, absl::ZeroDuration());
  for (const std::string& wrong : {std::string(), std::string("-"), secret.substr(1), secret + "0",
                                   std::string(64, '0'), std::string(1 << 16, 'a'), std::string(kToken)}) {
    EXPECT_EQ(Find(wrong, absl::ZeroDuration()), std::nullopt);
  }
}

TEST_F(SessionsTest, EndsWhenItIsNotUsed) {
  const std::string secret = Open(kToken, absl::ZeroDuration());
  EXPECT_EQ(Find(secret, absl::Minutes(14)), kToken);
  EXPECT_EQ(Find(secret, absl::Minutes(28)), kToken);
  EXPECT_EQ(Find(secret, absl::Minutes(43)), std::nullopt);
  EXPECT_EQ(Find(secret, absl::Minutes(28)), std::nullopt) << "over is over";
  EXPECT_EQ(sessions_.size(), 0U);
}

TEST_F(SessionsTest, EndsAfterItsLifeHoweverMuchItIsUsed) {
  const std::string secret = Open(kToken, absl::ZeroDuration());
  for (absl::Duration at = absl::ZeroDuration(); at < absl::Hours(8); at += absl::Minutes(10)) {
    ASSERT_EQ(Find(secret, at), kToken);
  }
  EXPECT_EQ(Find(secret, absl::Hours(8)), std::nullopt);
}

TEST_F(SessionsTest, ClosedItStandsForNobody) {
  const std::string kept = Open(kToken, absl::ZeroDuration());
  const std::string closed = Open(kToken, absl::ZeroDuration());
  sessions_.Close(closed);
  sessions_.Close("no secret");
  EXPECT_EQ(Find(closed, absl::ZeroDuration()), std::nullopt);
  EXPECT_EQ(Find(kept, absl::ZeroDuration()), kToken);
}

TEST_F(SessionsTest, OneTokenPushesOutItsOwnAndNobodyElses) {
  const std::string other = Open("tenants/t/tokens/b", absl::ZeroDuration());
  const std::string first = Open(kToken, absl::Seconds(1));
  const std::string second = Open(kToken, absl::Seconds(2));
  const std::string third = Open(kToken, absl::Seconds(3));
  EXPECT_EQ(Find(first, absl::Seconds(4)), kToken);
  Open(kToken, absl::Seconds(5));
  EXPECT_EQ(Find(second, absl::Seconds(6)), std::nullopt) << "it was used longest ago";
  EXPECT_EQ(Find(first, absl::Seconds(6)), kToken);
  EXPECT_EQ(Find(third, absl::Seconds(6)), kToken);
  EXPECT_EQ(Find(other, absl::Seconds(6)), "tenants/t/tokens/b");
}

TEST_F(SessionsTest, OneTenantPushesOutItsOwnAndNobodyElses) {
  const std::string other = Open("tenants/b/tokens/z", absl::ZeroDuration());
  const std::string first = Open("tenants/a/tokens/0", absl::Seconds(1));
  for (int i = 1; i < 5; ++i) {
    Open("tenants/a/tokens/" + std::to_string(i), absl::Seconds(1 + i));
  }
  EXPECT_EQ(Find(first, absl::Seconds(7)), std::nullopt);
  EXPECT_EQ(Find(other, absl::Seconds(7)), "tenants/b/tokens/z");
  EXPECT_EQ(sessions_.size(), 5U);
}

TEST_F(SessionsTest, ThereIsALimitToAllOfThemAndNoTenantPushesOutAnOperator) {
  const std::string first = Open(kToken, absl::ZeroDuration());
  for (int i = 0; i < 20; ++i) {
    Open("tenants/" + std::to_string(i) + "/tokens/a", absl::Seconds(i));
    EXPECT_LE(sessions_.size(), 6U);
  }
  EXPECT_EQ(sessions_.size(), 6U) << "five of tenants";
  EXPECT_EQ(Find(first, absl::Seconds(20)), kToken);
  for (int i = 0; i < 20; ++i) {
    Open("operator/tokens/" + std::to_string(i), absl::Seconds(21 + i));
  }
  EXPECT_EQ(sessions_.size(), 9U) << "and four of operators";
}

TEST_F(SessionsTest, AClockThatWasSetBackEndsThemAndAMomentDoesNot) {
  const std::string secret = Open(kToken, absl::Hours(1));
  EXPECT_EQ(Find(secret, absl::Hours(1) - absl::Milliseconds(1)), kToken) << "requests that overtake one another";
  EXPECT_EQ(Find(secret, absl::Minutes(50)), std::nullopt);
  EXPECT_EQ(Find(secret, absl::Hours(1)), std::nullopt) << "over is over";
}

}  // namespace
}  // namespace dpar
