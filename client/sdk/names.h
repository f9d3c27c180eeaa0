// Resource names: tenants/{tenant}/datasets/{dataset} and the like.
#ifndef DPAR_CLIENT_SDK_NAMES_H_
#define DPAR_CLIENT_SDK_NAMES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/random/random.h"

namespace dpar {

// "tenants/{id}" from an id or from that name itself.
absl::StatusOr<std::string> TenantName(absl::string_view text);

bool IsFullName(absl::string_view text);

// "tenants/{t}/{collection}/{id}" from a full name, or from an id within `tenant` ("tenants/{t}"). Otherwise
// INVALID_ARGUMENT / INVALID_FIELD, which asks for the full name when an id comes without a tenant.
absl::StatusOr<std::string> ResourceName(absl::string_view collection, absl::string_view text,
                                         absl::string_view tenant);

// "tenants/{t}" of a full resource name.
std::string TenantOf(absl::string_view name);

std::string IdOf(absl::string_view name);

// 128 random bits in hex: an id that this client uses for one request only.
std::string NewRequestId(RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_NAMES_H_
