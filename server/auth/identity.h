// Who calls, and what they may do. Another tenant's resource is answered as if it did not exist, so names reveal
// nothing. Role and scope errors go only to callers who may know of the resource.
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

struct Identity {
  std::string tenant;  // tenants/{t}; empty for an operator
  v1::Role role = v1::ROLE_UNSPECIFIED;
  std::string token;                   // the token's resource name
  std::vector<v1::Scope> scopes = {};  // none is all
  std::optional<google::protobuf::Timestamp> expire_time = std::nullopt;
  Method method = {};
};

// Whether the caller may call its method on `resource` of `tenant` (tenants/{t}, or operator). In this order: NOT_FOUND
// / RESOURCE_NOT_FOUND for another tenant's; PERMISSION_DENIED / ROLE_INSUFFICIENT; / SCOPE_INSUFFICIENT.
absl::Status Authorise(const Identity& caller, absl::string_view tenant, absl::string_view resource);

// The same for methods that concern no tenant.
absl::Status RequireOperator(const Identity& caller);

// PERMISSION_DENIED / SCOPE_INSUFFICIENT when the caller would give a token under its own parent a scope that it lacks.
absl::Status RequireScopesOf(const Identity& caller, absl::string_view parent, const v1::Token& token);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_IDENTITY_H_
