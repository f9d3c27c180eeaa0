#include "client/sdk/names.h"

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {

absl::StatusOr<std::string> TenantName(absl::string_view text) {
  absl::string_view id = text;
  if (IsFullName(text)) {
    const std::vector<std::string> parts = absl::StrSplit(text, '/');
    if (parts.size() != 2 || parts[0] != "tenants") {
      return InvalidField("tenant", absl::StrCat("'", text, "' is not a tenant: give its id, or tenants/ID"));
    }
    id = text.substr(text.find('/') + 1);
  }
  DPAR_RETURN_IF_ERROR(ValidateId("tenant", id));
  return absl::StrCat("tenants/", id);
}

bool IsFullName(absl::string_view text) { return text.find('/') != absl::string_view::npos; }

absl::StatusOr<std::string> ResourceName(absl::string_view collection, absl::string_view text,
                                         absl::string_view tenant) {
  const absl::string_view singular = collection.substr(0, collection.size() - 1);
  if (!IsFullName(text)) {
    DPAR_RETURN_IF_ERROR(ValidateId(singular, text));
    if (tenant.empty()) {
      return InvalidField(singular, absl::StrCat("this token belongs to no tenant, so an id is not enough: give the "
                                                 "full name tenants/TENANT/",
                                                 collection, "/", text));
    }
    return absl::StrCat(tenant, "/", collection, "/", text);
  }
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  if (parts.size() != 4 || parts[0] != "tenants" || parts[2] != collection) {
    return InvalidField(singular, absl::StrCat("'", text, "' is not the name of a ", singular,
                                               ": give its id, or tenants/TENANT/", collection, "/ID"));
  }
  DPAR_RETURN_IF_ERROR(ValidateId("tenant", parts[1]));
  DPAR_RETURN_IF_ERROR(ValidateId(singular, parts[3]));
  return std::string(text);
}

std::string TenantOf(absl::string_view name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '/');
  return parts.size() < 2 ? "" : absl::StrCat(parts[0], "/", parts[1]);
}

std::string IdOf(absl::string_view name) {
  const size_t slash = name.rfind('/');
  return std::string(slash == absl::string_view::npos ? name : name.substr(slash + 1));
}

std::string NewRequestId(RandomSource& random) {
  std::array<uint8_t, 16> bytes{};
  random.Fill(bytes);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace dpar
