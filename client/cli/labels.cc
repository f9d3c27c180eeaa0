#include "client/cli/labels.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/error.h"
#include "core/plan/method.h"

namespace dpar {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;

std::string Spell(const std::string& enumerator) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(enumerator), {{"_", "-"}});
}

std::string Unspell(absl::string_view text) { return absl::StrReplaceAll(absl::AsciiStrToUpper(text), {{"-", "_"}}); }

}  // namespace

std::string MethodLabel(v1::Method method) { return Spell(v1::Method_Name(method)); }
std::string StateLabel(v1::Job::State state) { return Spell(v1::Job::State_Name(state)); }
std::string RoleLabel(v1::Role role) { return Spell(v1::Role_Name(role)); }
std::string KindLabel(v1::LedgerEntry::Kind kind) { return Spell(v1::LedgerEntry::Kind_Name(kind)); }

std::vector<std::string> ScopeLabels(const google::protobuf::RepeatedField<int>& scopes) {
  std::vector<std::string> labels;
  for (const int scope : scopes) {
    labels.push_back(Spell(v1::Scope_Name(static_cast<v1::Scope>(scope))));
  }
  return labels;
}

std::string EnumeratorLabel(const EnumValueDescriptor& value) { return Spell(value.name()); }

std::vector<std::string> EnumeratorLabels(const EnumDescriptor& type) {
  std::vector<std::string> labels;
  for (int i = 0; i < type.value_count(); ++i) {
    if (type.value(i)->number() != 0) {
      labels.push_back(EnumeratorLabel(*type.value(i)));
    }
  }
  return labels;
}

absl::StatusOr<const EnumValueDescriptor*> ParseEnumerator(absl::string_view flag, const EnumDescriptor& type,
                                                           absl::string_view text) {
  const EnumValueDescriptor* value = type.FindValueByName(Unspell(text));
  if (value == nullptr || value->number() == 0) {
    return InvalidField(
        flag, absl::StrCat("--", flag, " must be ", absl::StrJoin(EnumeratorLabels(type), " or "), ", got ", text));
  }
  return value;
}

absl::StatusOr<v1::Method> ParseMethod(absl::string_view text) {
  v1::Method method = v1::METHOD_UNSPECIFIED;
  if (!v1::Method_Parse(Unspell(text), &method) || method == v1::METHOD_UNSPECIFIED) {
    return InvalidField("method", absl::StrCat("--method is one of ", MethodNames(), "; not '", text, "'"));
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
