// A plan as the object that --json prints.
#ifndef DPAR_CLIENT_CLI_PLAN_JSON_H_
#define DPAR_CLIENT_CLI_PLAN_JSON_H_

#include "dpar/v1/training.pb.h"
#include "nlohmann/json.hpp"

namespace dpar {

// Every field under its own name, enumerators as people type them; what is not set is left out.
nlohmann::ordered_json PlanJson(const v1::Plan& plan);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_PLAN_JSON_H_
