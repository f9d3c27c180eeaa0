#ifndef DPAR_SERVER_SERVICES_TENANT_EXISTS_H_
#define DPAR_SERVER_SERVICES_TENANT_EXISTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/status_macros.h"
#include "server/auth/identity.h"
#include "server/resource_name.h"
#include "server/store/database.h"
#include "server/store/datasets.h"

namespace dpar {

// NOT_FOUND / RESOURCE_NOT_FOUND for an unknown tenant, which only operators can name.
inline absl::Status TenantExists(Transaction& transaction, const TenantName& tenant) {
  return TenantContentKey(transaction, tenant.name).status();
}

// The tenant that a parent names, if the caller may ask for it and it exists; empty (all) for operators only.
inline absl::StatusOr<std::string> TenantOrAll(Database& database, const Identity& caller, const std::string& parent) {
  if (parent.empty()) {
    DPAR_RETURN_IF_ERROR(RequireOperator(caller));
    return std::string();
  }
  DPAR_ASSIGN_OR_RETURN(const TenantName tenant, ParseTenantName("parent", parent));
  DPAR_RETURN_IF_ERROR(Authorise(caller, tenant.name, tenant.name));
  DPAR_RETURN_IF_ERROR(database.Read([&](Transaction& transaction) { return TenantExists(transaction, tenant); }));
  return tenant.name;
}

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_TENANT_EXISTS_H_
