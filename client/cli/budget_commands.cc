#include <memory>
#include <string>
#include <vector>

#include "client/cli/budget_text.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

absl::StatusOr<int> RunBudgets(Session& session) {
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, session.Tenant());
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const Connection::Budgets all, connection->ListBudgets(tenant));
  return PrintBudgets(session, all, /*with_tenant=*/tenant.empty());
}

absl::StatusOr<int> RunBudget(Session& session, const std::string& text, bool entries) {
  DPAR_ASSIGN_OR_RETURN(const std::string name, BudgetName(session, text));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const v1::Budget budget, connection->GetBudget(name));
  std::vector<v1::LedgerEntry> list;
  v1::VerifyChainResponse chain;
  if (entries) {
    DPAR_ASSIGN_OR_RETURN(list, connection->ListLedgerEntries(name));
    DPAR_ASSIGN_OR_RETURN(chain, connection->VerifyChain(name));
  }
  if (session.json()) {
    Json json = {{"budget", ResourceJson(budget)}};
    if (entries) {
      json["entries"] = ListJson(list);
      json["chain"] = ResourceJson(chain);
    }
    session.PrintJson(json);
    return kDone;
  }
  PrintBudget(session, budget);
  if (entries) {
    PrintEntries(session, list, budget.cap_units());
    session.out() << ChainText(chain, "");
  }
  return !entries || chain.intact() ? kDone : kFailed;
}

void AddShow(CLI::App& group, Command& chosen) {
  const auto dataset = std::make_shared<std::string>();
  CLI::App* command = group.add_subcommand("show", "Show what datasets may cost, have cost and have left");
  command->add_option("DATASET", *dataset, "Id or full name; all of the tenant's when left out");
  command->footer(Examples("  dpar budget show\n  dpar budget show demo"));
  command->callback([dataset, &chosen] {
    chosen = [dataset](Session& s) { return dataset->empty() ? RunBudgets(s) : RunBudget(s, *dataset, false); };
  });
}

void AddHistory(CLI::App& group, Command& chosen) {
  const auto dataset = std::make_shared<std::string>();
  CLI::App* command = group.add_subcommand("history", "List what was reserved, posted and given back, and when");
  command->add_option("DATASET", *dataset, "Id or full name of the dataset")->required();
  command->footer(Examples("  dpar budget history demo"));
  command->callback([dataset, &chosen] { chosen = [dataset](Session& s) { return RunBudget(s, *dataset, true); }; });
}

}  // namespace

void AddBudgetCommands(CLI::App& app, Command& chosen) {
  const auto dataset = std::make_shared<std::string>();
  const auto entries = std::make_shared<bool>(false);
  CLI::App* budget = app.add_subcommand("budget", "show, or history: what datasets may cost and have cost");
  budget->group(kDataGroup);
  budget->fallthrough();
  budget->require_subcommand(0, 1);
  budget->add_option("DATASET", *dataset, "Short for dpar budget show DATASET");
  budget->add_flag("--entries", *entries, "Short for dpar budget history DATASET");
  budget->footer(Examples("  dpar budget\n  dpar budget demo --entries"));
  // CLI11 calls this after the callback of a subcommand, which has then chosen.
  budget->callback([budget, dataset, entries, &chosen] {
    if (!budget->get_subcommands().empty()) {
      return;
    }
    if (dataset->empty() && *entries) {
      throw CLI::ValidationError("--entries", "name the DATASET whose entries to list");
    }
    chosen = [dataset, entries](Session& s) {
      return dataset->empty() ? RunBudgets(s) : RunBudget(s, *dataset, *entries);
    };
  });
  AddShow(*budget, chosen);
  AddHistory(*budget, chosen);
}

}  // namespace dpar
