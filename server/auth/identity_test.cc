#include "server/auth/identity.h"

#include <gtest/gtest.h>

#include <array>

#include "core/error.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

constexpr char kDataset[] = "tenants/acme/datasets/d";

constexpr std::array kAccesses = {Access::kAny,        Access::kRead,         Access::kReadOwn, Access::kWrite,
                                  Access::kAdminister, Access::kManageTokens, Access::kOperate};

Identity Tenant(v1::Role role) { return {"tenants/acme", role, "tenants/acme/tokens/t"}; }
Identity Operator() { return {"", v1::OPERATOR, "operator/tokens/t"}; }
Identity WithScopes(Identity caller, const std::vector<v1::Scope>& scopes) {
  caller.scopes = scopes;
  return caller;
}

absl::Status Call(Identity caller, Access access, v1::Scope scope, const std::string& tenant,
                  const std::string& resource) {
  caller.method = {"Service/Method", access, scope};
  return Authorise(caller, tenant, resource);
}
absl::Status Ask(const Identity& caller, Access access) {
  return Call(caller, access, v1::READ, "tenants/acme", kDataset);
}

void ExpectScopeInsufficient(const absl::Status& status, const std::string& required) {
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "SCOPE_INSUFFICIENT");
  EXPECT_EQ(info->metadata().size(), 1U);
  EXPECT_EQ(info->metadata().at("required"), required);
}

void ExpectRoleInsufficient(const absl::Status& status, const std::string& role, const std::string& required) {
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "ROLE_INSUFFICIENT");
  EXPECT_EQ(info->metadata().at("role"), role);
  EXPECT_EQ(info->metadata().at("required"), required);
}

TEST(AuthoriseTest, AnOwnerMayDoEverythingWithinTheTenant) {
  for (const Access access :
       {Access::kRead, Access::kReadOwn, Access::kWrite, Access::kAdminister, Access::kManageTokens}) {
    EXPECT_TRUE(Ask(Tenant(v1::OWNER), access).ok());
  }
  ExpectRoleInsufficient(Ask(Tenant(v1::OWNER), Access::kOperate), "owner", "operator");
}

TEST(AuthoriseTest, TokensAreManagedByOwnersAndOperators) {
  EXPECT_TRUE(Ask(Operator(), Access::kManageTokens).ok());
  ExpectRoleInsufficient(Ask(Tenant(v1::MEMBER), Access::kManageTokens), "member", "owner or operator");
  ExpectRoleInsufficient(Ask(Tenant(v1::READER), Access::kManageTokens), "reader", "owner or operator");
}

TEST(AuthoriseTest, AMemberReadsAndWritesButDoesNotAdminister) {
  EXPECT_TRUE(Ask(Tenant(v1::MEMBER), Access::kRead).ok());
  EXPECT_TRUE(Ask(Tenant(v1::MEMBER), Access::kReadOwn).ok());
  EXPECT_TRUE(Ask(Tenant(v1::MEMBER), Access::kWrite).ok());
  ExpectRoleInsufficient(Ask(Tenant(v1::MEMBER), Access::kAdminister), "member", "owner");
}

TEST(AuthoriseTest, AReaderOnlyReads) {
  EXPECT_TRUE(Ask(Tenant(v1::READER), Access::kRead).ok());
  EXPECT_TRUE(Ask(Tenant(v1::READER), Access::kReadOwn).ok());
  ExpectRoleInsufficient(Ask(Tenant(v1::READER), Access::kWrite), "reader", "owner or member");
  ExpectRoleInsufficient(Ask(Tenant(v1::READER), Access::kAdminister), "reader", "owner");
}

TEST(AuthoriseTest, AnOperatorReadsButGetsNeitherModelsNorWrites) {
  EXPECT_TRUE(Ask(Operator(), Access::kRead).ok());
  ExpectRoleInsufficient(Ask(Operator(), Access::kReadOwn), "operator", "owner, member or reader");
  ExpectRoleInsufficient(Ask(Operator(), Access::kWrite), "operator", "owner or member");
  ExpectRoleInsufficient(Ask(Operator(), Access::kAdminister), "operator", "owner");
}

TEST(AuthoriseTest, AnotherTenantsResourceIsAnsweredExactlyAsOneThatIsNotThere) {
  for (const v1::Role role : {v1::OWNER, v1::MEMBER, v1::READER}) {
    for (const Access access : kAccesses) {
      const std::string name = "tenants/other/datasets/d";
      EXPECT_EQ(Call(Tenant(role), access, v1::READ, "tenants/other", name), ResourceNotFound(name));
      EXPECT_EQ(Call(WithScopes(Tenant(role), {v1::UPLOAD}), access, v1::READ, "tenants/other", name),
                ResourceNotFound(name));
    }
  }
}

TEST(AuthoriseTest, ATenantWhoseNameIsAPrefixIsAnotherTenant) {
  EXPECT_EQ(Call(Tenant(v1::OWNER), Access::kRead, v1::READ, "tenants/acme-2", "tenants/acme-2/datasets/d").code(),
            absl::StatusCode::kNotFound);
}

TEST(AuthoriseTest, TheOperatorsTokensAreNotThereForATenant) {
  EXPECT_EQ(Call(Tenant(v1::OWNER), Access::kManageTokens, v1::ADMINISTER, "operator", "operator/tokens/t"),
            ResourceNotFound("operator/tokens/t"));
}

TEST(AuthoriseTest, ATokenWithScopesMayDoNothingElse) {
  const Identity owner = WithScopes(Tenant(v1::OWNER), {v1::READ, v1::DOWNLOAD});
  EXPECT_TRUE(Call(owner, Access::kRead, v1::READ, "tenants/acme", kDataset).ok());
  EXPECT_TRUE(Call(owner, Access::kReadOwn, v1::DOWNLOAD, "tenants/acme", kDataset).ok());
  ExpectScopeInsufficient(Call(owner, Access::kWrite, v1::UPLOAD, "tenants/acme", kDataset), "upload");
  ExpectScopeInsufficient(Call(owner, Access::kAdminister, v1::ADMINISTER, "tenants/acme", kDataset), "administer");
  EXPECT_TRUE(Call(owner, Access::kAny, v1::SCOPE_UNSPECIFIED, "tenants/acme", kDataset).ok());
}

TEST(AuthoriseTest, WhoLacksTheRoleAndTheScopeIsToldOfTheRole) {
  const Identity reader = WithScopes(Tenant(v1::READER), {v1::READ});
  ExpectRoleInsufficient(Call(reader, Access::kWrite, v1::UPLOAD, "tenants/acme", kDataset), "reader",
                         "owner or member");
}

TEST(AuthoriseTest, ARoleThatIsNoneMayNothing) {
  for (const Access access : kAccesses) {
    EXPECT_EQ(Ask(Tenant(v1::ROLE_UNSPECIFIED), access).code(), absl::StatusCode::kPermissionDenied);
  }
}

TEST(RequireOperatorTest, OnlyOperatorsPass) {
  EXPECT_TRUE(RequireOperator(Operator()).ok());
  ExpectRoleInsufficient(RequireOperator(Tenant(v1::OWNER)), "owner", "operator");
  EXPECT_TRUE(RequireOperator(WithScopes(Operator(), {v1::ADMINISTER})).ok());
  ExpectScopeInsufficient(RequireOperator(WithScopes(Operator(), {v1::READ})), "administer");
}

v1::Token TokenFor(const std::vector<v1::Scope>& scopes) {
  v1::Token token;
  for (const v1::Scope scope : scopes) {
    token.add_scopes(scope);
  }
  return token;
}

TEST(RequireScopesOfTest, NobodyHandsOutMoreThanTheyHaveUnderTheirOwnParent) {
  const Identity owner = WithScopes(Tenant(v1::OWNER), {v1::ADMINISTER, v1::READ});
  EXPECT_TRUE(RequireScopesOf(owner, "tenants/acme", TokenFor({v1::READ})).ok());
  EXPECT_TRUE(RequireScopesOf(owner, "tenants/acme", TokenFor({v1::READ, v1::ADMINISTER})).ok());
  ExpectScopeInsufficient(RequireScopesOf(owner, "tenants/acme", TokenFor({v1::READ, v1::TRAIN})), "train");
  ExpectScopeInsufficient(RequireScopesOf(owner, "tenants/acme", TokenFor({})), "upload");
  const Identity operating = WithScopes(Operator(), {v1::ADMINISTER});
  ExpectScopeInsufficient(RequireScopesOf(operating, "operator", TokenFor({})), "read");
}

TEST(RequireScopesOfTest, WhoHasAllMayHandOutAllAndOperatorsToEveryTenant) {
  EXPECT_TRUE(RequireScopesOf(Tenant(v1::OWNER), "tenants/acme", TokenFor({})).ok());
  EXPECT_TRUE(RequireScopesOf(Operator(), "operator", TokenFor({})).ok());
  EXPECT_TRUE(RequireScopesOf(WithScopes(Operator(), {v1::ADMINISTER}), "tenants/acme", TokenFor({})).ok());
}

}  // namespace
}  // namespace dpar
