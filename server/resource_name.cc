#include "server/resource_name.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/error.h"
#include "core/validate.h"

namespace dpar {
namespace {

absl::Status Malformed(absl::string_view field, absl::string_view pattern) {
  return InvalidField(field, absl::StrCat(field, " must be of the form ", pattern,
                                          ", with ids of 1 to 63 characters of a-z, 0-9 and '-'"));
}

bool IsId(absl::string_view text) { return ValidateId("id", text).ok(); }

absl::StatusOr<ResourceName> Parse(absl::string_view field, absl::string_view text, absl::string_view collection) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  if (parts.size() != 4 || parts[0] != "tenants" || parts[2] != collection || !IsId(parts[1]) || !IsId(parts[3])) {
    return Malformed(field, absl::StrCat("tenants/{tenant}/", collection, "/{id}"));
  }
  return ResourceName{absl::StrCat("tenants/", parts[1]), std::string(parts[3]), std::string(text)};
}

}  // namespace

std::string TenantOf(absl::string_view name) { return std::string(name.substr(0, name.find('/', name.find('/') + 1))); }

absl::StatusOr<TenantName> ParseTenantName(absl::string_view field, absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  if (parts.size() != 2 || parts[0] != "tenants" || !IsId(parts[1])) {
    return Malformed(field, "tenants/{tenant}");
  }
  return TenantName{std::string(parts[1]), std::string(text)};
}

absl::StatusOr<ResourceName> ParseDatasetName(absl::string_view field, absl::string_view text) {
  return Parse(field, text, "datasets");
}

absl::StatusOr<ResourceName> ParsePopulationName(absl::string_view field, absl::string_view text) {
  return Parse(field, text, "populations");
}

absl::StatusOr<ResourceName> ParseUploadName(absl::string_view field, absl::string_view text) {
  return Parse(field, text, "uploads");
}

absl::StatusOr<ResourceName> ParseJobName(absl::string_view field, absl::string_view text) {
  return Parse(field, text, "jobs");
}

absl::StatusOr<TenantName> ParseTokenParent(absl::string_view field, absl::string_view text) {
  if (text == kOperatorParent) {
    return TenantName{"", std::string(text)};
  }
  absl::StatusOr<TenantName> tenant = ParseTenantName(field, text);
  return tenant.ok() ? tenant : Malformed(field, "tenants/{tenant} or operator");
}

absl::StatusOr<ResourceName> ParseTokenName(absl::string_view field, absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '/');
  if (parts.size() == 3 && parts[0] == kOperatorParent && parts[1] == "tokens" && IsId(parts[2])) {
    return ResourceName{std::string(kOperatorParent), std::string(parts[2]), std::string(text)};
  }
  absl::StatusOr<ResourceName> token = Parse(field, text, "tokens");
  return token.ok() ? token : Malformed(field, "tenants/{tenant}/tokens/{token} or operator/tokens/{token}");
}

}  // namespace dpar
