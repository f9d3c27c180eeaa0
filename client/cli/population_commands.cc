#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/budget_text.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/sdk/names.h"
#include "core/error.h"
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
  DPAR_ASSIGN_OR_RETURN(const std::string name, PopulationName(session, text));
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

struct MergeArguments {
  std::string from;
  std::string into;
  std::string reason;
  bool close = false;
  bool yes = false;
};

// Only the server knows whether a merge closes the one that goes on: it refuses until that was said.
bool MayClose(Session& session, const absl::Status& refused) {
  const auto info = GetErrorInfo(refused);
  if (!info.has_value() || info->metadata().count("field") == 0 || info->metadata().at("field") != "allow_closing" ||
      !session.CanAsk()) {
    return false;
  }
  session.err() << refused.message() << "\n";
  return session.Ask("Merge, and close it for good?", /*yes_by_default=*/false);
}

absl::StatusOr<int> RunMerge(Session& session, const MergeArguments& arguments) {
  if (!arguments.yes && !session.CanAsk()) {
    return InvalidField("yes", "a merge cannot be undone, and nobody is there to be asked: add --yes");
  }
  DPAR_ASSIGN_OR_RETURN(const std::string from, session.Resolve("populations", arguments.from));
  DPAR_ASSIGN_OR_RETURN(const std::string into, session.Resolve("populations", arguments.into));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  if (!arguments.yes &&
      !session.Ask(absl::StrCat("Merge ", from, " into ", into, " for good? What both have spent adds up, the smaller ",
                                "cap holds, and nothing is given back.",
                                arguments.close ? " It may be closed by this: no further job, ever." : ""),
                   /*yes_by_default=*/false)) {
    session.err() << "nothing was merged\n";
    return kFailed;
  }
  v1::MergePopulationRequest request;
  request.set_name(from);
  request.set_into(into);
  request.set_reason(arguments.reason);
  request.set_request_id(NewRequestId(session.random()));
  request.set_allow_closing(arguments.close);
  absl::StatusOr<v1::Budget> merged = connection->MergePopulation(request);
  if (!arguments.yes && MayClose(session, merged.status())) {
    request.set_allow_closing(true);
    request.set_request_id(NewRequestId(session.random()));
    merged = connection->MergePopulation(request);
  }
  DPAR_ASSIGN_OR_RETURN(const v1::Budget budget, std::move(merged));
  if (session.json()) {
    session.PrintJson({{"merged", from}, {"budget", ResourceJson(budget)}});
    return kDone;
  }
  session.out() << from << " is part of " << into << " now\n";
  PrintBudget(session, budget);
  if (budget.closed_reason().empty() && budget.left_units() == 0) {
    session.out() << "EXHAUSTED: no further job is admitted\n";
  }
  return kDone;
}

constexpr const char* kPopulationHelp = "Id or full name; or those of one of its datasets";

void AddShow(CLI::App& group, Command& chosen) {
  const auto population = std::make_shared<std::string>();
  CLI::App* command = group.add_subcommand("show", "Show what populations may cost, have cost and have left");
  command->add_option("POPULATION", *population, "As above; all of the tenant's when left out");
  command->footer(Examples("  dpar population show\n  dpar population show demo"));
  command->callback([population, &chosen] {
    chosen = [population](Session& s) {
      return population->empty() ? RunBudgets(s) : RunBudget(s, *population, false);
    };
  });
}

void AddHistory(CLI::App& group, Command& chosen) {
  const auto population = std::make_shared<std::string>();
  CLI::App* command = group.add_subcommand("history", "List what was reserved, posted and given back, and when");
  command->add_option("POPULATION", *population, kPopulationHelp)->required();
  command->footer(Examples("  dpar population history demo"));
  command->callback(
      [population, &chosen] { chosen = [population](Session& s) { return RunBudget(s, *population, true); }; });
}

void AddMerge(CLI::App& group, Command& chosen) {
  const auto arguments = std::make_shared<MergeArguments>();
  CLI::App* command = group.add_subcommand("merge", "Say that two populations hold the same people, for good");
  command->add_option("POPULATION", arguments->from, "Id or full name of the one that ends")->required();
  command->add_option("--into", arguments->into, "Id or full name of the one that goes on")->required();
  command->add_option("--reason", arguments->reason, "Why, 1 to 500 characters; the ledger keeps it")->required();
  command->add_flag("--close", arguments->close,
                    "Merge also where the one that goes on admits no\nfurther job afterwards. Without it that is\n"
                    "refused, or asked at a terminal");
  command->add_flag("--yes", arguments->yes, "Do not ask");
  command->footer(Examples("  dpar population merge april --into customers --reason 'the same people' --yes"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunMerge(s, *arguments); }; });
}

}  // namespace

void AddPopulationCommands(CLI::App& app, Command& chosen) {
  const auto name = std::make_shared<std::string>();
  const auto entries = std::make_shared<bool>(false);
  CLI::App* population = app.add_subcommand("population", "show, history or merge: who the data is about, and budgets");
  population->group(kDataGroup);
  population->fallthrough();
  population->require_subcommand(0, 1);
  population->add_option("POPULATION", *name, "Short for dpar population show POPULATION");
  population->add_flag("--entries", *entries, "Short for dpar population history POPULATION");
  population->footer(Examples("  dpar population\n  dpar population demo --entries"));
  // CLI11 calls this after the callback of a subcommand, which has then chosen.
  population->callback([population, name, entries, &chosen] {
    if (!population->get_subcommands().empty()) {
      return;
    }
    if (name->empty() && *entries) {
      throw CLI::ValidationError("--entries", "name the POPULATION whose entries to list");
    }
    chosen = [name, entries](Session& s) { return name->empty() ? RunBudgets(s) : RunBudget(s, *name, *entries); };
  });
  AddShow(*population, chosen);
  AddHistory(*population, chosen);
  AddMerge(*population, chosen);
}

}  // namespace dpar
