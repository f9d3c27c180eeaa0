// Who calls, and what they may do.
//
// A resource of another tenant is answered exactly as if it were not there, so that names tell nothing. A role or a
// scope that does not suffice is only told to those who may know of the resource.
#ifndef DPAR_SERVER_AUTH_IDENTITY_H_
#define DPAR_SERVER_AUTH_IDENTITY_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "dpar/v1/operator.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/auth/method.h"

namespace dpar {

// Whom a token belongs to, for one call.
struct Identity {
  std::string tenant;  // tenants/{t}; empty for an operator
  v1::Role role = v1::ROLE_UNSPECIFIED;
  std::string token;                   // the token's resource name
  std::vector<v1::Scope> scopes = {};  // none is all
  std::optional<google::protobuf::Timestamp> expire_time = std::nullopt;
  // What the method that is being called asks of its caller.
  Method method = {};
};

// Whether the caller may do what it calls to `resource`, which belongs to `tenant` (tenants/{t}, or operator).
// NOT_FOUND / RESOURCE_NOT_FOUND for another tenant's; then PERMISSION_DENIED / ROLE_INSUFFICIENT; then
// PERMISSION_DENIED / SCOPE_INSUFFICIENT.
absl::Status Authorise(const Identity& caller, absl::string_view tenant, absl::string_view resource);

// The same for methods that are about no tenant.
absl::Status RequireOperator(const Identity& caller);

// Whether the caller may hand out a token with these scopes under `parent`: under its own, none that it has not itself.
// PERMISSION_DENIED / SCOPE_INSUFFICIENT.
absl::Status RequireScopesOf(const Identity& caller, absl::string_view parent, const v1::Token& token);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_IDENTITY_H_
