#include "server/auth/identity.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

constexpr char kDataset[] = "tenants/acme/datasets/d";

Identity Tenant(v1::Role role) { return {"tenants/acme", role, "tenants/acme/tokens/t"}; }
Identity Operator() { return {"", v1::OPERATOR, "operator/tokens/t"}; }

absl::Status Ask(const Identity& caller, Access access) { return Authorise(caller, access, "tenants/acme", kDataset); }

void ExpectRoleInsufficient(const absl::Status& status, const std::string& role, const std::string& required) {
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "ROLE_INSUFFICIENT");
  EXPECT_EQ(info->metadata().at("role"), role);
  EXPECT_EQ(info->metadata().at("required"), required);
}

TEST(AuthoriseTest, AnOwnerMayDoEverythingWithinTheTenant) {
  for (const Access access : {Access::kRead, Access::kReadOwn, Access::kWrite, Access::kAdminister}) {
    EXPECT_TRUE(Ask(Tenant(v1::OWNER), access).ok());
  }
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
    for (const Access access : {Access::kRead, Access::kReadOwn, Access::kWrite, Access::kAdminister}) {
      const std::string name = "tenants/other/datasets/d";
      EXPECT_EQ(Authorise(Tenant(role), access, "tenants/other", name), ResourceNotFound(name));
    }
  }
}

TEST(AuthoriseTest, ATenantWhoseNameIsAPrefixIsAnotherTenant) {
  EXPECT_EQ(Authorise(Tenant(v1::OWNER), Access::kRead, "tenants/acme-2", "tenants/acme-2/datasets/d").code(),
            absl::StatusCode::kNotFound);
}

TEST(AuthoriseTest, ARoleThatIsNoneMayNothing) {
  for (const Access access : {Access::kRead, Access::kReadOwn, Access::kWrite, Access::kAdminister}) {
    EXPECT_EQ(Ask(Tenant(v1::ROLE_UNSPECIFIED), access).code(), absl::StatusCode::kPermissionDenied);
  }
}

TEST(RequireOperatorTest, OnlyOperatorsPass) {
  EXPECT_TRUE(RequireOperator(Operator()).ok());
  ExpectRoleInsufficient(RequireOperator(Tenant(v1::OWNER)), "owner", "operator");
}

}  // namespace
}  // namespace dpar
