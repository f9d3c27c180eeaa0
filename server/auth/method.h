// One table: what every method of the API and of the operator's page requires of its caller, and whether it is audited.
#ifndef DPAR_SERVER_AUTH_METHOD_H_
#define DPAR_SERVER_AUTH_METHOD_H_

#include "absl/strings/string_view.h"
#include "dpar/v1/operator.pb.h"

namespace dpar {

enum class Access {
  kAny,           // any valid token
  kRead,          // all of the tenant; operator
  kReadOwn,       // all of the tenant
  kWrite,         // owner, member
  kAdminister,    // owner
  kManageTokens,  // owner; operator
  kOperate        // operator
};

struct Method {
  absl::string_view name;  // "Service/Method"
  Access access = Access::kOperate;
  // The scope that a token with scopes must have; SCOPE_UNSPECIFIED for kAny, which needs none.
  v1::Scope scope = v1::ADMINISTER;
  // Set for methods that change something or hand out a model, a certificate or a secret.
  bool audited = true;
};

const Method* FindMethod(absl::string_view name);

}  // namespace dpar

#endif  // DPAR_SERVER_AUTH_METHOD_H_
