// What every method of the API, and of the operator's page, asks of its caller, in one table.
#ifndef DPAR_SERVER_AUTH_METHOD_H_
#define DPAR_SERVER_AUTH_METHOD_H_

#include "absl/strings/string_view.h"
#include "dpar/v1/operator.pb.h"

namespace dpar {

// Which roles may call a method, as the API's comments say it.
enum class Access {
  kAny,           // any valid token
  kRead,          // all of the tenant; operator
  kReadOwn,       // all of the tenant
  kWrite,         // owner, member
  kAdminister,    // owner
  kManageTokens,  // owner; operator
  kOperate        // operator
};

// One row of the table.
struct Method {
  absl::string_view name;  // "Service/Method"
  Access access = Access::kOperate;
  // The part of the role that a token with scopes must have been made for; SCOPE_UNSPECIFIED for kAny, which needs
  // none.
  v1::Scope scope = v1::ADMINISTER;
  // Whether it changes nothing and hands out no model, certificate or secret.
  bool looks = false;
};

// Null when the API has no method of that name.
const Method* FindMethod(absl::string_view name);

// Whether calls of a method are written to the audit log: all but those that only look.
bool IsAudited(absl::string_view name);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_METHOD_H_
