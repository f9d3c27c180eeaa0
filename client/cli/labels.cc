#include "client/cli/labels.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/error.h"

namespace dpar {
namespace {

std::string Spell(const std::string& enumerator) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(enumerator), {{"_", "-"}});
}

std::string Unspell(absl::string_view text) { return absl::StrReplaceAll(absl::AsciiStrToUpper(text), {{"-", "_"}}); }

}  // namespace

std::string MethodLabel(v1::Method method) { return Spell(v1::Method_Name(method)); }
std::string StateLabel(v1::Job::State state) { return Spell(v1::Job::State_Name(state)); }
std::string RoleLabel(v1::Role role) { return Spell(v1::Role_Name(role)); }
std::string KindLabel(v1::LedgerEntry::Kind kind) { return Spell(v1::LedgerEntry::Kind_Name(kind)); }

absl::StatusOr<v1::Method> ParseMethod(absl::string_view text) {
  v1::Method method = v1::METHOD_UNSPECIFIED;
  if (!v1::Method_Parse(Unspell(text), &method) || method == v1::METHOD_UNSPECIFIED) {
    return InvalidField("method", absl::StrCat("--method is one of auto, features, dpar-em0, dpar-em1, dpar-gm, gap, "
                                               "sage; not '",
                                               text, "'"));
  }
  return method;
}

absl::StatusOr<v1::Role> ParseTenantRole(absl::string_view text) {
  v1::Role role = v1::ROLE_UNSPECIFIED;
  if (!v1::Role_Parse(Unspell(text), &role) || role == v1::ROLE_UNSPECIFIED || role == v1::OPERATOR) {
    return InvalidField("role", absl::StrCat("--role is one of owner, member, reader; not '", text,
                                             "' (--operator makes an operator's token)"));
  }
  return role;
}

}  // namespace dpar
