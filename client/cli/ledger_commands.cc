#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/budget_text.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/sdk/names.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr const char* kPopulationHelp =
    "Full name of the population, or of one of its\ndatasets: tenants/TENANT/populations/ID";
constexpr const char* kReasonHelp = "Why, 1 to 500 characters; the ledger keeps it";

absl::StatusOr<int> RunSpend(Session& session, const std::string& tenant) {
  std::string parent;
  if (!tenant.empty()) {
    DPAR_ASSIGN_OR_RETURN(parent, TenantName(tenant));
  }
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const Connection::Budgets all, connection->ListBudgets(parent));
  DPAR_ASSIGN_OR_RETURN(const std::vector<v1::PopulationUsage> usage, connection->ListUsage(parent));
  return PrintSpend(session, all, usage);
}

struct ListArguments {
  std::string population;
  std::string tenant;
};

absl::StatusOr<int> RunList(Session& session, const ListArguments& arguments) {
  if (arguments.population.empty()) {
    return RunSpend(session, arguments.tenant);
  }
  DPAR_ASSIGN_OR_RETURN(const std::string name, PopulationName(session, arguments.population));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const v1::Budget budget, connection->GetBudget(name));
  DPAR_ASSIGN_OR_RETURN(const std::vector<v1::LedgerEntry> entries, connection->ListLedgerEntries(name));
  if (session.json()) {
    Json json = {{"budget", name}, {"entries", ListJson(entries)}};
    session.PrintJson(json);
    return kDone;
  }
  session.out() << name << "\n";
  PrintEntries(session, entries, budget.cap_units());
  return kDone;
}

struct VerifyLedgerArguments {
  std::string population;
  std::optional<int64_t> sequence;
  std::string hash;
};

// Every ledger that the token may see: a tenant's own, or all of them for an operator.
absl::StatusOr<std::vector<std::string>> AllBudgets(Session& session, Connection& connection) {
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, session.Tenant());
  DPAR_ASSIGN_OR_RETURN(const Connection::Budgets all, connection.ListBudgets(tenant));
  std::vector<std::string> names;
  for (const v1::Budget& budget : all.budgets) {
    names.push_back(budget.name());
  }
  return names;
}

absl::StatusOr<int> RunVerifyLedger(Session& session, const VerifyLedgerArguments& arguments) {
  if (arguments.sequence.has_value() == arguments.hash.empty() ||
      (arguments.sequence.has_value() && arguments.population.empty())) {
    return InvalidField("sequence", "--sequence and --hash go together, with a POPULATION: a certificate states both");
  }
  std::vector<std::string> names;
  if (!arguments.population.empty()) {
    DPAR_ASSIGN_OR_RETURN(std::string name, PopulationName(session, arguments.population));
    names.push_back(std::move(name));
  }
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  if (names.empty()) {
    DPAR_ASSIGN_OR_RETURN(names, AllBudgets(session, *connection));
  }
  bool intact = true;
  Json list = Json::array();
  for (const std::string& name : names) {
    v1::VerifyChainRequest request;
    request.set_name(name);
    request.set_known_sequence(arguments.sequence.value_or(0));
    request.set_known_hash(arguments.hash);
    DPAR_ASSIGN_OR_RETURN(const v1::VerifyChainResponse chain, connection->VerifyChain(request));
    intact = intact && chain.intact();
    if (session.json()) {
      Json json = {{"budget", name}};
      json.update(ResourceJson(chain));
      list.push_back(std::move(json));
    } else {
      session.out() << name << "\n" << ChainText(chain, "  ");
    }
  }
  if (session.json()) {
    session.PrintJson({{"intact", intact}, {"ledgers", list}});
  } else if (names.empty()) {
    session.out() << "no private datasets yet\n";
  }
  return intact ? kDone : kFailed;
}

struct CapArguments {
  std::string population;
  double epsilon = 0;
  std::string reason;
};

absl::StatusOr<int> RunCap(Session& session, const CapArguments& arguments) {
  DPAR_ASSIGN_OR_RETURN(const std::string name, PopulationName(session, arguments.population));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  v1::SetBudgetCapRequest request;
  request.set_name(name);
  request.set_cap_epsilon(arguments.epsilon);
  request.set_reason(arguments.reason);
  request.set_request_id(NewRequestId(session.random()));
  DPAR_ASSIGN_OR_RETURN(const v1::Budget budget, connection->SetBudgetCap(request));
  if (session.json()) {
    session.PrintJson({{"budget", ResourceJson(budget)}});
  } else {
    PrintBudget(session, budget);
  }
  return kDone;
}

struct DebitArguments {
  std::string population;
  int64_t units = 0;
  std::string reason;
};

absl::StatusOr<int> RunDebit(Session& session, const DebitArguments& arguments) {
  DPAR_ASSIGN_OR_RETURN(const std::string name, PopulationName(session, arguments.population));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  v1::AdjustLedgerRequest request;
  request.set_name(name);
  request.set_debit_units(arguments.units);
  request.set_reason(arguments.reason);
  request.set_request_id(NewRequestId(session.random()));
  DPAR_ASSIGN_OR_RETURN(const v1::LedgerEntry entry, connection->AdjustLedger(request));
  DPAR_ASSIGN_OR_RETURN(const v1::Budget budget, connection->GetBudget(name));
  if (session.json()) {
    session.PrintJson({{"entry", ResourceJson(entry)}, {"budget", ResourceJson(budget)}});
    return kDone;
  }
  session.out() << "entry " << entry.sequence() << " debits " << entry.units() << " units\n";
  PrintBudget(session, budget);
  return kDone;
}

struct AdjustArguments {
  std::string population;
  std::optional<double> cap_epsilon;
  std::optional<int64_t> debit_units;
  std::string reason;
};

absl::StatusOr<int> RunAdjust(Session& session, const AdjustArguments& arguments) {
  if (arguments.cap_epsilon.has_value() == arguments.debit_units.has_value()) {
    return InvalidField("cap-epsilon", "give --cap-epsilon to set the cap, or --debit-units to debit; one of them");
  }
  if (arguments.cap_epsilon.has_value()) {
    return RunCap(session, {arguments.population, *arguments.cap_epsilon, arguments.reason});
  }
  return RunDebit(session, {arguments.population, *arguments.debit_units, arguments.reason});
}

void AddList(CLI::App& group, Command& chosen) {
  const auto arguments = std::make_shared<ListArguments>();
  CLI::App* command = group.add_subcommand("list", "List all ledgers, or the entries of one");
  CLI::Option* population = command->add_option("POPULATION", arguments->population, kPopulationHelp);
  command->add_option("--tenant", arguments->tenant, "Only this tenant's ledgers")->excludes(population);
  command->footer(Examples("  dpar ledger list\n  dpar ledger list tenants/acme/populations/demo"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunList(s, *arguments); }; });
}

void AddVerify(CLI::App& group, Command& chosen) {
  const auto arguments = std::make_shared<VerifyLedgerArguments>();
  CLI::App* command = group.add_subcommand("verify", "Check the hash chain and the sums of a ledger, or of all");
  command->add_option("POPULATION", arguments->population, kPopulationHelp);
  command->add_option("--sequence", arguments->sequence,
                      "An entry that the chain must still hold, from\na certificate");
  command->add_option("--hash", arguments->hash, "That entry's hash");
  command->footer(Examples("  dpar ledger verify\n  dpar ledger verify tenants/acme/populations/demo"));
  command->callback(
      [arguments, &chosen] { chosen = [arguments](Session& s) { return RunVerifyLedger(s, *arguments); }; });
}

void AddAdjust(CLI::App& group, Command& chosen) {
  const auto arguments = std::make_shared<AdjustArguments>();
  CLI::App* command = group.add_subcommand("adjust", "Set a cap, or debit spend that happened elsewhere");
  command->add_option("POPULATION", arguments->population, kPopulationHelp)->required();
  command->add_option("--cap-epsilon", arguments->cap_epsilon, "The new cap");
  command->add_option("--debit-units", arguments->debit_units,
                      "Renyi divergence at the budget's order, in\nbillionths");
  command->add_option("--reason", arguments->reason, kReasonHelp)->required();
  command->footer(
      Examples("  dpar ledger adjust tenants/acme/populations/demo --cap-epsilon 12 --reason 'agreed'\n"
               "  dpar ledger adjust tenants/acme/populations/demo --debit-units 1000 --reason 'pilot'"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunAdjust(s, *arguments); }; });
}

}  // namespace

void AddLedgerCommands(CLI::App& app, Command& chosen) {
  CLI::App* group = AddCommandGroup(app, "ledger", "list, verify or adjust what budgets have spent", kOperatorGroup);
  AddList(*group, chosen);
  AddVerify(*group, chosen);
  AddAdjust(*group, chosen);
}

void AddLedgerShortForms(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<CapArguments>();
  CLI::App* cap = app.add_subcommand("cap", "Set a budget's cap, with a reason that the ledger keeps");
  cap->group(kShortGroup);
  cap->add_option("POPULATION", arguments->population, kPopulationHelp)->required();
  cap->add_option("--epsilon", arguments->epsilon, "The new cap")->required();
  cap->add_option("--reason", arguments->reason, kReasonHelp)->required();
  cap->footer(Examples("  dpar cap tenants/acme/populations/demo --epsilon 10 --reason 'agreed with the owner'"));
  cap->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunCap(s, *arguments); }; });

  const auto debited = std::make_shared<DebitArguments>();
  CLI::App* debit = app.add_subcommand("debit", "Debit a budget for spend that happened elsewhere");
  debit->group(kShortGroup);
  debit->add_option("POPULATION", debited->population, kPopulationHelp)->required();
  debit->add_option("--units", debited->units, "Renyi divergence at the budget's order, in billionths")->required();
  debit->add_option("--reason", debited->reason, kReasonHelp)->required();
  debit->footer(Examples("  dpar debit tenants/acme/populations/demo --units 250000000 --reason 'pilot study'"));
  debit->callback([debited, &chosen] { chosen = [debited](Session& s) { return RunDebit(s, *debited); }; });

  const auto tenant = std::make_shared<std::string>();
  CLI::App* spend = app.add_subcommand("spend", "Show what was spent and is left, by tenant, population\nand dataset");
  spend->group(kShortGroup);
  spend->add_option("--tenant", *tenant, "Only this tenant's");
  spend->footer(Examples("  dpar spend\n  dpar spend --tenant acme"));
  spend->callback([tenant, &chosen] { chosen = [tenant](Session& s) { return RunSpend(s, *tenant); }; });
}

}  // namespace dpar
