#include "core/certificate/unverified.h"

#include "core/certificate/digest.h"
#include "core/status_macros.h"
#include "nlohmann/json.hpp"

namespace dpar {
namespace {

absl::Status NoCertificate() { return absl::InvalidArgumentError("the file is not a certificate"); }

// The member at `pointer` of the payload, which is an object.
absl::StatusOr<nlohmann::json> ReadMember(absl::string_view envelope, const char* pointer) {
  const auto outer = nlohmann::json::parse(envelope, nullptr, /*allow_exceptions=*/false);
  if (!outer.is_object() || !outer.contains("payload") || !outer["payload"].is_string()) {
    return NoCertificate();
  }
  DPAR_ASSIGN_OR_RETURN(const std::string payload, Base64Decode(outer["payload"].get<std::string>()));
  const auto statement = nlohmann::json::parse(payload, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer place(pointer);
  if (!statement.is_object() || !statement.contains(place)) {
    return NoCertificate();
  }
  return statement[place];
}

}  // namespace

absl::StatusOr<std::string> DatasetDigest(absl::string_view envelope) {
  DPAR_ASSIGN_OR_RETURN(const nlohmann::json digest, ReadMember(envelope, "/predicate/dataset/digest"));
  return digest.is_string() ? absl::StatusOr<std::string>(digest.get<std::string>()) : NoCertificate();
}

absl::StatusOr<std::vector<std::string>> SubjectNames(absl::string_view envelope) {
  DPAR_ASSIGN_OR_RETURN(const nlohmann::json subjects, ReadMember(envelope, "/subject"));
  if (!subjects.is_array()) {
    return NoCertificate();
  }
  std::vector<std::string> names;
  for (const nlohmann::json& subject : subjects) {
    if (!subject.is_object() || !subject.contains("name") || !subject["name"].is_string()) {
      return NoCertificate();
    }
    auto name = subject["name"].get<std::string>();
    if (name.find('/') == std::string::npos) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace dpar
