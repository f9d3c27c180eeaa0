#include "client/sdk/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/random/secure_random.h"

namespace dpar {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

void ExpectInvalidField(const absl::Status& status, const std::string& field) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  const auto info = GetErrorInfo(status);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->reason(), "INVALID_FIELD");
  EXPECT_EQ(info->metadata().at("field"), field);
}

TEST(NamesTest, AnIdIsCompletedWithTheTenant) {
  EXPECT_EQ(*ResourceName("datasets", "demo", "tenants/acme"), "tenants/acme/datasets/demo");
}

TEST(NamesTest, AFullNameIsTakenAsItIs) {
  EXPECT_EQ(*ResourceName("jobs", "tenants/other/jobs/j1", "tenants/acme"), "tenants/other/jobs/j1");
}

TEST(NamesTest, AnIdWithoutATenantAsksForTheFullName) {
  const absl::Status status = ResourceName("datasets", "demo", "").status();
  ExpectInvalidField(status, "dataset");
  EXPECT_THAT(std::string(status.message()), HasSubstr("tenants/TENANT/datasets/demo"));
}

TEST(NamesTest, BadNamesAreRefused) {
  ExpectInvalidField(ResourceName("datasets", "", "tenants/acme").status(), "dataset");
  ExpectInvalidField(ResourceName("datasets", "Upper", "tenants/acme").status(), "dataset");
  ExpectInvalidField(ResourceName("datasets", "tenants/acme/jobs/j1", "tenants/acme").status(), "dataset");
  ExpectInvalidField(ResourceName("jobs", "tenants/acme/jobs", "tenants/acme").status(), "job");
  ExpectInvalidField(ResourceName("jobs", "tenants/../jobs/a", "tenants/acme").status(), "tenant");
  ExpectInvalidField(ResourceName("jobs", "tenants/acme/jobs/-", "tenants/acme").status(), "job");
}

TEST(NamesTest, ATenantIsAnIdOrAName) {
  EXPECT_EQ(*TenantName("acme"), "tenants/acme");
  EXPECT_EQ(*TenantName("tenants/acme"), "tenants/acme");
  ExpectInvalidField(TenantName("tenants/acme/jobs/j").status(), "tenant");
  ExpectInvalidField(TenantName("jobs/acme").status(), "tenant");
  ExpectInvalidField(TenantName("a b").status(), "tenant");
}

TEST(NamesTest, PartsOfAName) {
  EXPECT_EQ(TenantOf("tenants/acme/jobs/j1"), "tenants/acme");
  EXPECT_EQ(TenantOf("j1"), "");
  EXPECT_EQ(IdOf("tenants/acme/jobs/j1"), "j1");
  EXPECT_EQ(IdOf("j1"), "j1");
}

TEST(NamesTest, RequestIdsAre128BitsInHexAndDiffer) {
  SecureRandom random;
  const std::string first = NewRequestId(random);
  EXPECT_THAT(first, MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(first.size(), 32U);
  EXPECT_NE(first, NewRequestId(random));
}

}  // namespace
}  // namespace dpar
