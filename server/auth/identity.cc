#include "server/auth/identity.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

bool Suffices(v1::Role role, Access access) {
  switch (access) {
    case Access::kRead:
      return role == v1::OPERATOR || role == v1::OWNER || role == v1::MEMBER || role == v1::READER;
    case Access::kReadOwn:
      return role == v1::OWNER || role == v1::MEMBER || role == v1::READER;
    case Access::kWrite:
      return role == v1::OWNER || role == v1::MEMBER;
    case Access::kAdminister:
      return role == v1::OWNER;
  }
  return false;
}

absl::string_view Required(Access access) {
  switch (access) {
    case Access::kRead:
      return "owner, member, reader or operator";
    case Access::kReadOwn:
      return "owner, member or reader";
    case Access::kWrite:
      return "owner or member";
    case Access::kAdminister:
      return "owner";
  }
  return "";
}

absl::Status RoleInsufficient(v1::Role role, absl::string_view required) {
  const std::string held = absl::AsciiStrToLower(v1::Role_Name(role));
  return MakeError(
      absl::StatusCode::kPermissionDenied, v1::ROLE_INSUFFICIENT,
      absl::StrCat("this token has the role ", held, "; the call needs ", required, ". Ask for a token with that role"),
      {{"role", held}, {"required", std::string(required)}});
}

}  // namespace

absl::Status Authorise(const Identity& caller, Access access, absl::string_view tenant, absl::string_view resource) {
  if (caller.role != v1::OPERATOR && tenant != caller.tenant) {
    return ResourceNotFound(std::string(resource));
  }
  if (!Suffices(caller.role, access)) {
    return RoleInsufficient(caller.role, Required(access));
  }
  return absl::OkStatus();
}

absl::Status RequireOperator(const Identity& caller) {
  return caller.role == v1::OPERATOR ? absl::OkStatus() : RoleInsufficient(caller.role, "operator");
}

}  // namespace dpar
