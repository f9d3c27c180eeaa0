// Resource names, parsed and checked in one place. Every error is INVALID_ARGUMENT / INVALID_FIELD for `field`.
#ifndef DPAR_SERVER_RESOURCE_NAME_H_
#define DPAR_SERVER_RESOURCE_NAME_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

inline constexpr absl::string_view kOperatorParent = "operator";

// tenants/{tenant} of a checked name.
std::string TenantOf(absl::string_view name);

struct TenantName {
  std::string id;
  std::string name;
};
absl::StatusOr<TenantName> ParseTenantName(absl::string_view field, absl::string_view text);

struct ResourceName {
  std::string tenant;  // tenants/{tenant}
  std::string id;
  std::string name;  // the whole
};
// tenants/{tenant}/datasets/{dataset}, .../populations/{population}, .../uploads/{upload} and .../jobs/{job}
absl::StatusOr<ResourceName> ParseDatasetName(absl::string_view field, absl::string_view text);
absl::StatusOr<ResourceName> ParsePopulationName(absl::string_view field, absl::string_view text);
absl::StatusOr<ResourceName> ParseUploadName(absl::string_view field, absl::string_view text);
absl::StatusOr<ResourceName> ParseJobName(absl::string_view field, absl::string_view text);

// tenants/{tenant}, or operator, whose id is empty.
absl::StatusOr<TenantName> ParseTokenParent(absl::string_view field, absl::string_view text);
// tenants/{tenant}/tokens/{token} or operator/tokens/{token}; `tenant` is the parent.
absl::StatusOr<ResourceName> ParseTokenName(absl::string_view field, absl::string_view text);

}  // namespace dpar

#endif  // DPAR_SERVER_RESOURCE_NAME_H_
