#include "server/resource_name.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace dpar {
namespace {

template <typename T>
void ExpectMalformed(const absl::StatusOr<T>& name, const std::string& text) {
  EXPECT_EQ(name.status().code(), absl::StatusCode::kInvalidArgument) << text;
  const auto info = GetErrorInfo(name.status());
  ASSERT_TRUE(info.has_value()) << text;
  EXPECT_EQ(info->reason(), "INVALID_FIELD") << text;
  EXPECT_EQ(info->metadata().at("field"), "the_field") << text;
}

TEST(ResourceNameTest, ATenantIsParsed) {
  const TenantName tenant = ParseTenantName("parent", "tenants/acme-1").value();
  EXPECT_EQ(tenant.id, "acme-1");
  EXPECT_EQ(tenant.name, "tenants/acme-1");
}

TEST(ResourceNameTest, DatasetsUploadsAndJobsAreParsed) {
  const ResourceName dataset = ParseDatasetName("name", "tenants/a/datasets/d").value();
  EXPECT_EQ(dataset.tenant, "tenants/a");
  EXPECT_EQ(dataset.id, "d");
  EXPECT_EQ(dataset.name, "tenants/a/datasets/d");
  EXPECT_EQ(ParseUploadName("name", "tenants/a/uploads/u").value().id, "u");
  EXPECT_EQ(ParseJobName("name", "tenants/a/jobs/j").value().id, "j");
}

TEST(ResourceNameTest, APopulationIsParsed) {
  const ResourceName population = ParsePopulationName("name", "tenants/a/populations/p").value();
  EXPECT_EQ(population.tenant, "tenants/a");
  EXPECT_EQ(population.id, "p");
  EXPECT_EQ(population.name, "tenants/a/populations/p");
}

TEST(ResourceNameTest, TokensBelongToATenantOrToOperators) {
  EXPECT_EQ(ParseTokenParent("parent", "operator").value().id, "");
  EXPECT_EQ(ParseTokenParent("parent", "tenants/a").value().id, "a");
  EXPECT_EQ(ParseTokenName("name", "operator/tokens/t").value().tenant, "operator");
  EXPECT_EQ(ParseTokenName("name", "tenants/a/tokens/t").value().tenant, "tenants/a");
  EXPECT_EQ(ParseTokenName("name", "tenants/a/tokens/t").value().id, "t");
}

TEST(ResourceNameTest, MalformedTenantsAreRefused) {
  for (const std::string text : {"", "tenants", "tenants/", "tenant/a", "tenants/A", "tenants/a/", "/tenants/a",
                                 "tenants/a/datasets", "tenants/-a", "tenants/.."}) {
    ExpectMalformed(ParseTenantName("the_field", text), text);
  }
  ExpectMalformed(ParseTenantName("the_field", "tenants/" + std::string(64, 'a')), "64 characters");
  EXPECT_TRUE(ParseTenantName("the_field", "tenants/" + std::string(63, 'a')).ok());
}

TEST(ResourceNameTest, MalformedResourcesAreRefused) {
  for (const std::string text :
       {"", "tenants/a", "tenants/a/datasets", "tenants/a/datasets/", "tenants/a/datasets/d/", "tenants/a/jobs/d",
        "tenants/a/datasets/../x", "tenants/../datasets/d", "tenants/a/datasets/d\n", "tenants//datasets/d",
        "Tenants/a/datasets/d", "tenants/a/datasets/d/budget", "tenants/a/datasets/d%2f"}) {
    ExpectMalformed(ParseDatasetName("the_field", text), text);
  }
  ExpectMalformed(ParseDatasetName("the_field", std::string("tenants/a/datasets/d\0", 21)), "a zero byte");
  ExpectMalformed(ParseJobName("the_field", "tenants/a/datasets/d"), "a dataset");
  ExpectMalformed(ParseUploadName("the_field", "tenants/a/datasets/d"), "a dataset");
}

TEST(ResourceNameTest, MalformedPopulationsAndTokensAreRefused) {
  for (const std::string text : {"", "p", "populations/p", "tenants/a/datasets/d", "tenants/a/populations/",
                                 "tenants/a/populations/P", "tenants/a/populations/p/x", "tenants/a/population/p"}) {
    ExpectMalformed(ParsePopulationName("the_field", text), text);
  }
  for (const std::string text : {"", "operator", "operator/tokens", "operator/tokens/", "operators/tokens/t",
                                 "operator/token/t", "tenants/a/tokens", "operator/tokens/t/x"}) {
    ExpectMalformed(ParseTokenName("the_field", text), text);
  }
  ExpectMalformed(ParseTokenParent("the_field", "operators"), "operators");
}

}  // namespace
}  // namespace dpar
