// What every method of the API, and of the operator's page, asks of its caller, and whether it is audited, in one
// table.
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
  // Whether its calls are in the audit log: all that change something or hand out a model, a certificate or a secret.
  bool audited = true;
};

// Null when the API has no method of that name.
const Method* FindMethod(absl::string_view name);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_METHOD_H_
