#ifndef DPAR_CLIENT_CLI_LABELS_H_
#define DPAR_CLIENT_CLI_LABELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "dpar/v1/budget.pb.h"
#include "dpar/v1/operator.pb.h"
#include "dpar/v1/training.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/repeated_field.h"

namespace dpar {

std::string MethodLabel(v1::Method method);    // "features", "dpar-em0"
std::string StateLabel(v1::Job::State state);  // "queued"
std::string RoleLabel(v1::Role role);          // "owner"
// "read", "train"; of Token.scopes or Identity.scopes
std::vector<std::string> ScopeLabels(const google::protobuf::RepeatedField<int>& scopes);
std::string KindLabel(v1::LedgerEntry::Kind kind);  // "reserve"

// The label of any enumerator: "sqrt-unit".
std::string EnumeratorLabel(const google::protobuf::EnumValueDescriptor& value);
// All but the one that stands for "unset".
std::vector<std::string> EnumeratorLabels(const google::protobuf::EnumDescriptor& type);

// INVALID_FIELD with the allowed spellings when it is none of them. `flag` has no dashes.
absl::StatusOr<const google::protobuf::EnumValueDescriptor*> ParseEnumerator(
    absl::string_view flag, const google::protobuf::EnumDescriptor& type, absl::string_view text);
absl::StatusOr<v1::Method> ParseMethod(absl::string_view text);
absl::StatusOr<v1::Role> ParseTenantRole(absl::string_view text);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_LABELS_H_
