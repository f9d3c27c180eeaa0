#ifndef DPAR_CLIENT_CLI_BUDGET_TEXT_H_
#define DPAR_CLIENT_CLI_BUDGET_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/session.h"
#include "client/sdk/connection.h"
#include "dpar/v1/budget.pb.h"
#include "dpar/v1/overview.pb.h"

namespace dpar {

// A population's full name, from its id or name, or from those of one of its datasets. Asks the server unless it is in
// full.
absl::StatusOr<std::string> PopulationName(Session& session, const std::string& text);

void PrintBudget(Session& session, const v1::Budget& budget);
// A line for every population, and the fullest; or all of it as JSON. Returns the exit code.
int PrintBudgets(Session& session, const Connection::Budgets& all, bool with_tenant);
// The same by tenant, population and dataset. A tenant's line has its fullest population.
int PrintSpend(Session& session, const Connection::Budgets& all, const std::vector<v1::PopulationUsage>& usage);
void PrintEntries(Session& session, const std::vector<v1::LedgerEntry>& entries, int64_t cap_units);

// "chain intact, 7 entries" and the head's hash, or where and how it is broken. Each line begins with `indent`.
std::string ChainText(const v1::VerifyChainResponse& chain, absl::string_view indent);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_BUDGET_TEXT_H_
