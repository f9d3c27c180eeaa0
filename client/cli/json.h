// The API's resources as the objects that --json prints.
#ifndef DPAR_CLIENT_CLI_JSON_H_
#define DPAR_CLIENT_CLI_JSON_H_

#include "dpar/v1/budget.pb.h"
#include "dpar/v1/dataset.pb.h"
#include "dpar/v1/operator.pb.h"
#include "dpar/v1/server.pb.h"
#include "dpar/v1/training.pb.h"
#include "nlohmann/json.hpp"

namespace dpar {

using Json = nlohmann::ordered_json;

Json DatasetJson(const v1::Dataset& dataset);
Json ImportReportJson(const v1::ImportReport& report);
Json JobJson(const v1::Job& job);
Json WatchEventJson(const v1::WatchJobResponse& event);
Json BudgetJson(const v1::Budget& budget);
Json LedgerEntryJson(const v1::LedgerEntry& entry);
Json TenantJson(const v1::Tenant& tenant);
Json TokenJson(const v1::Token& token);
Json IdentityJson(const v1::Identity& identity);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_JSON_H_
