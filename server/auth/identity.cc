#include "server/auth/identity.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/error.h"
#include "server/auth/token.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

// In the order in which messages name them.
constexpr std::array kRoles = {v1::OWNER, v1::MEMBER, v1::READER, v1::OPERATOR};

bool Suffices(v1::Role role, Access access) {
  const bool of_tenant = role == v1::OWNER || role == v1::MEMBER || role == v1::READER;
  switch (access) {
    case Access::kAny:
    case Access::kRead:
      return of_tenant || role == v1::OPERATOR;
    case Access::kReadOwn:
      return of_tenant;
    case Access::kWrite:
      return role == v1::OWNER || role == v1::MEMBER;
    case Access::kAdminister:
      return role == v1::OWNER;
    case Access::kManageTokens:
      return role == v1::OWNER || role == v1::OPERATOR;
    case Access::kOperate:
      return role == v1::OPERATOR;
  }
  return false;
}

std::string Lower(const std::string& name) { return absl::AsciiStrToLower(name); }

std::string Required(Access access) {
  std::vector<std::string> names;
  for (const v1::Role role : kRoles) {
    if (Suffices(role, access)) {
      names.push_back(Lower(v1::Role_Name(role)));
    }
  }
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : absl::StrCat(absl::StrJoin(names, ", "), " or ", last);
}

bool Holds(const std::vector<v1::Scope>& scopes, v1::Scope scope) {
  return scopes.empty() || std::find(scopes.begin(), scopes.end(), scope) != scopes.end();
}

absl::Status RoleInsufficient(v1::Role role, absl::string_view required) {
  const std::string held = absl::AsciiStrToLower(v1::Role_Name(role));
  return MakeError(
      absl::StatusCode::kPermissionDenied, v1::ROLE_INSUFFICIENT,
      absl::StrCat("this token has the role ", held, "; the call needs ", required, ". Ask for a token with that role"),
      {{"role", held}, {"required", std::string(required)}});
}

absl::Status ScopeInsufficient(const std::vector<v1::Scope>& scopes, v1::Scope required) {
  const std::string held = absl::StrJoin(
      scopes, ", ", [](std::string* out, v1::Scope scope) { absl::StrAppend(out, Lower(v1::Scope_Name(scope))); });
  const std::string wanted = Lower(v1::Scope_Name(required));
  return MakeError(absl::StatusCode::kPermissionDenied, v1::SCOPE_INSUFFICIENT,
                   absl::StrCat("this token was made for ", held, " only; the call needs the scope ", wanted,
                                ". Ask for a token with that scope"),
                   {{"required", wanted}});
}

// Checks the role first: a scope error would mislead a caller whose role never suffices.
absl::Status CheckMethod(const Identity& caller) {
  if (!Suffices(caller.role, caller.method.access)) {
    return RoleInsufficient(caller.role, Required(caller.method.access));
  }
  if (caller.method.access != Access::kAny && !Holds(caller.scopes, caller.method.scope)) {
    return ScopeInsufficient(caller.scopes, caller.method.scope);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Authorise(const Identity& caller, absl::string_view tenant, absl::string_view resource) {
  if (caller.role != v1::OPERATOR && tenant != caller.tenant) {
    return ResourceNotFound(std::string(resource));
  }
  return CheckMethod(caller);
}

absl::Status RequireOperator(const Identity& caller) {
  return caller.role == v1::OPERATOR ? CheckMethod(caller) : RoleInsufficient(caller.role, "operator");
}

absl::Status RequireScopesOf(const Identity& caller, absl::string_view parent, const v1::Token& token) {
  const bool own = caller.tenant.empty() ? parent == kOperatorParent : parent == caller.tenant;
  if (!own) {
    return absl::OkStatus();
  }
  std::vector<v1::Scope> wanted;
  for (const int scope : token.scopes()) {
    wanted.push_back(static_cast<v1::Scope>(scope));
  }
  for (int number = v1::Scope_MIN + 1; number <= v1::Scope_MAX; ++number) {
    const auto scope = static_cast<v1::Scope>(number);
    if (Holds(wanted, scope) && !Holds(caller.scopes, scope)) {
      return ScopeInsufficient(caller.scopes, scope);
    }
  }
  return absl::OkStatus();
}

}  // namespace dpar
