// Who calls, and what they may do.
//
// A resource of another tenant is answered exactly as if it were not there, so that names tell nothing. A role that
// does not suffice is only told to those who may know of the resource.
#ifndef DPAR_SERVER_AUTH_IDENTITY_H_
#define DPAR_SERVER_AUTH_IDENTITY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "dpar/v1/operator.pb.h"

namespace dpar {

// Whom a token belongs to.
struct Identity {
  std::string tenant;  // tenants/{t}; empty for an operator
  v1::Role role = v1::ROLE_UNSPECIFIED;
  std::string token;  // the token's resource name
};

// What a method does, as the roles in the API's comments say it.
enum class Access {
  kRead,       // all of the tenant; operator
  kReadOwn,    // all of the tenant
  kWrite,      // owner, member
  kAdminister  // owner
};

// Whether the caller may do this to `resource`, which belongs to `tenant` (tenants/{t}). NOT_FOUND /
// RESOURCE_NOT_FOUND for another tenant's; PERMISSION_DENIED / ROLE_INSUFFICIENT otherwise.
absl::Status Authorise(const Identity& caller, Access access, absl::string_view tenant, absl::string_view resource);

// For OperatorService.
absl::Status RequireOperator(const Identity& caller);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_IDENTITY_H_
