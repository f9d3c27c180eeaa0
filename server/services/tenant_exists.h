// Operators can name tenants that are not there.
#ifndef DPAR_SERVER_SERVICES_TENANT_EXISTS_H_
#define DPAR_SERVER_SERVICES_TENANT_EXISTS_H_

#include "absl/status/status.h"
#include "server/resource_name.h"
#include "server/store/database.h"
#include "server/store/datasets.h"

namespace dpar {

// NOT_FOUND / RESOURCE_NOT_FOUND when there is no such tenant.
inline absl::Status TenantExists(Transaction& transaction, const TenantName& tenant) {
  return TenantContentKey(transaction, tenant.name).status();
}

}  // namespace dpar

#endif  // DPAR_SERVER_SERVICES_TENANT_EXISTS_H_
