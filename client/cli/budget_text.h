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

namespace dpar {

// The budget's name, from a dataset's id or name, or from its own.
absl::StatusOr<std::string> BudgetName(Session& session, const std::string& text);

void PrintBudget(Session& session, const v1::Budget& budget);
// A line for every dataset, and the fullest; or all of it as JSON. Returns the exit code.
int PrintBudgets(Session& session, const Connection::Budgets& all, bool with_tenant);
void PrintEntries(Session& session, const std::vector<v1::LedgerEntry>& entries, int64_t cap_units);

// "chain intact, 7 entries" and the head's hash, or where and how it is broken. Each line begins with `indent`.
std::string ChainText(const v1::VerifyChainResponse& chain, absl::string_view indent);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_BUDGET_TEXT_H_
