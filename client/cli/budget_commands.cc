// dpar budget, dpar cap, dpar debit, dpar spend.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/labels.h"
#include "client/sdk/names.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int kBarWidth = 30;

// The budget's name, from a dataset's id or name, or from its own.
absl::StatusOr<std::string> BudgetName(Session& session, const std::string& text) {
  session.error_context().dataset = text;
  const std::string dataset(absl::StripSuffix(text, "/budget"));
  DPAR_ASSIGN_OR_RETURN(const std::string name, session.Resolve("datasets", dataset));
  return absl::StrCat(name, "/budget");
}

void PrintBudget(Session& session, const v1::Budget& budget) {
  const int64_t cap = budget.cap_units();
  const double used = cap > 0 ? static_cast<double>(budget.posted_units()) / static_cast<double>(cap) : 0;
  const auto share = [cap](int64_t units) { return absl::StrFormat("%6s", FormatPercent(units, cap)); };
  session.out() << budget.name() << "\n"
                << "  cap                 epsilon " << FormatNumber(budget.cap_epsilon()) << " at delta "
                << FormatNumber(budget.cap_delta()) << ", the guarantee for all jobs together\n"
                << "  used                " << share(budget.posted_units()) << "  ["
                << Bar(used, kBarWidth, session.terminal().utf8) << "]\n"
                << "  reserved            " << share(budget.reserved_units()) << "\n"
                << "  left                " << share(budget.left_units()) << "\n"
                << "  largest epsilon     " << FormatNumberDown(budget.largest_admissible_epsilon())
                << " could be admitted now\n"
                << "  equivalent epsilon  " << FormatNumber(budget.equivalent_epsilon())
                << " (all posted, as if planned in advance; not the guarantee)\n"
                << "  jobs counted        " << budget.live_events() << "\n";
}

// "  3: dp-appr 0.4%, dp-sgd 12.3% of the cap", on a second line as far as it does not fit into `width`; 0 is no limit.
std::string StagesText(const v1::LedgerEntry& entry, int64_t cap_units, int width) {
  std::string text = absl::StrCat("  ", entry.sequence(), ":");
  int column = DisplayWidth(text);
  for (int i = 0; i < entry.stages_size(); ++i) {
    const bool last = i + 1 == entry.stages_size();
    const std::string part =
        absl::StrCat(" ", entry.stages(i).stage(), " ", FormatPercent(entry.stages(i).units(), cap_units),
                     last ? " of the cap" : ",");
    if (width > 0 && column + DisplayWidth(part) > width) {
      absl::StrAppend(&text, "\n    ");
      column = 4;
    }
    absl::StrAppend(&text, part);
    column += DisplayWidth(part);
  }
  return text;
}

// Entries whose units are a cap, not a share of one.
bool IsCap(v1::LedgerEntry::Kind kind) { return kind == v1::LedgerEntry::OPEN || kind == v1::LedgerEntry::ADJUST; }

void PrintEntries(Session& session, const std::vector<v1::LedgerEntry>& entries, int64_t cap_units) {
  Table table({"NO", "TIME", "KIND", "JOB", "SHARE", "EPSILON", "HASH"}, {3});
  constexpr size_t kHashShown = 8;
  for (const v1::LedgerEntry& entry : entries) {
    table.Add({absl::StrCat(entry.sequence()), FormatTime(entry.time()), KindLabel(entry.kind()), IdOf(entry.job()),
               IsCap(entry.kind()) ? "" : FormatPercent(entry.units(), cap_units),
               entry.epsilon() > 0 ? FormatNumber(entry.epsilon()) : "", entry.hash().substr(0, kHashShown)});
  }
  session.out() << "\n" << table.Render(session.TableWidth());
  for (const v1::LedgerEntry& entry : entries) {
    const bool holds = entry.kind() == v1::LedgerEntry::RESERVE || entry.kind() == v1::LedgerEntry::POST;
    if (holds && !entry.stages().empty()) {
      session.out() << StagesText(entry, cap_units, session.TableWidth()) << "\n";
    }
    if (!entry.reason().empty()) {
      session.out() << "  " << entry.sequence() << ": " << entry.reason() << " (" << entry.actor() << ")\n";
    }
  }
}

// tenants/acme/datasets/demo/budget as "demo", or as "acme/demo" where several tenants are shown.
std::string ShortName(const v1::Budget& budget, bool with_tenant) {
  const std::string dataset(absl::StripSuffix(budget.name(), "/budget"));
  return with_tenant ? absl::StrCat(IdOf(TenantOf(dataset)), "/", IdOf(dataset)) : IdOf(dataset);
}

// A line for every dataset, and the fullest.
int PrintBudgets(Session& session, const Connection::Budgets& all, bool with_tenant) {
  if (session.json()) {
    Json json = {{"budgets", Json::array()}};
    for (const v1::Budget& budget : all.budgets) {
      json["budgets"].push_back(BudgetJson(budget));
    }
    if (all.fullest.has_value()) {
      json["fullest"] = all.fullest->name();
    }
    session.PrintJson(json);
    return kDone;
  }
  if (all.budgets.empty()) {
    session.out() << "no private datasets yet\n";
    return kDone;
  }
  Table table({"DATASET", "USED", "RESERVED", "LEFT", "LARGEST", "EQUIVALENT", "CAP", "DELTA"}, {0});
  for (const v1::Budget& budget : all.budgets) {
    const auto share = [&](int64_t units) { return FormatPercent(units, budget.cap_units()); };
    table.Add({ShortName(budget, with_tenant), share(budget.posted_units()), share(budget.reserved_units()),
               share(budget.left_units()), FormatNumberDown(budget.largest_admissible_epsilon()),
               FormatNumber(budget.equivalent_epsilon()), FormatNumber(budget.cap_epsilon()),
               FormatNumber(budget.cap_delta())});
  }
  session.out() << table.Render(session.TableWidth())
                << "CAP: the guarantee for all jobs together, an epsilon. LARGEST: what a job could be\n"
                << "admitted with now. EQUIVALENT: all posted, as if planned in advance.\n";
  if (all.fullest.has_value()) {
    session.out() << "fullest: " << ShortName(*all.fullest, with_tenant) << "\n";
  }
  return kDone;
}

absl::StatusOr<int> RunBudgets(Session& session) {
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, session.Tenant());
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const Connection::Budgets all, connection->ListBudgets(tenant));
  return PrintBudgets(session, all, /*with_tenant=*/false);
}

absl::StatusOr<int> RunSpend(Session& session, const std::string& tenant) {
  std::string parent;
  if (!tenant.empty()) {
    DPAR_ASSIGN_OR_RETURN(parent, TenantName(tenant));
  }
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const Connection::Budgets all, connection->ListSpend(parent));
  return PrintBudgets(session, all, /*with_tenant=*/true);
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
    Json json = {{"budget", BudgetJson(budget)}};
    if (entries) {
      json["entries"] = Json::array();
      for (const v1::LedgerEntry& entry : list) {
        json["entries"].push_back(LedgerEntryJson(entry));
      }
      json["chain"] = {
          {"intact", chain.intact()}, {"entry_count", chain.entry_count()}, {"head_hash", chain.head_hash()}};
    }
    session.PrintJson(json);
    return kDone;
  }
  PrintBudget(session, budget);
  if (entries) {
    PrintEntries(session, list, budget.cap_units());
    session.out() << (chain.intact()
                          ? absl::StrCat("chain intact, head ", chain.head_hash())
                          : absl::StrCat("CHAIN BROKEN at entry ", chain.first_bad_sequence(), ": ", chain.fault()))
                  << "\n";
  }
  return !entries || chain.intact() ? kDone : kFailed;
}

struct CapArguments {
  std::string dataset;
  double epsilon = 0;
  std::string reason;
};

absl::StatusOr<int> RunCap(Session& session, const CapArguments& arguments) {
  DPAR_ASSIGN_OR_RETURN(const std::string name, BudgetName(session, arguments.dataset));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  v1::SetBudgetCapRequest request;
  request.set_name(name);
  request.set_cap_epsilon(arguments.epsilon);
  request.set_reason(arguments.reason);
  request.set_request_id(NewRequestId(session.random()));
  DPAR_ASSIGN_OR_RETURN(const v1::Budget budget, connection->SetBudgetCap(request));
  if (session.json()) {
    session.PrintJson({{"budget", BudgetJson(budget)}});
  } else {
    PrintBudget(session, budget);
  }
  return kDone;
}

struct DebitArguments {
  std::string dataset;
  int64_t units = 0;
  std::string reason;
};

absl::StatusOr<int> RunDebit(Session& session, const DebitArguments& arguments) {
  DPAR_ASSIGN_OR_RETURN(const std::string name, BudgetName(session, arguments.dataset));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  v1::AdjustLedgerRequest request;
  request.set_name(name);
  request.set_debit_units(arguments.units);
  request.set_reason(arguments.reason);
  request.set_request_id(NewRequestId(session.random()));
  DPAR_ASSIGN_OR_RETURN(const v1::LedgerEntry entry, connection->AdjustLedger(request));
  DPAR_ASSIGN_OR_RETURN(const v1::Budget budget, connection->GetBudget(name));
  if (session.json()) {
    session.PrintJson({{"entry", LedgerEntryJson(entry)}, {"budget", BudgetJson(budget)}});
    return kDone;
  }
  session.out() << "entry " << entry.sequence() << " debits " << entry.units() << " units\n";
  PrintBudget(session, budget);
  return kDone;
}

void AddOperatorBudgetCommands(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<CapArguments>();
  CLI::App* cap = app.add_subcommand("cap", "Set a budget's cap, with a reason that the ledger keeps");
  cap->group(kOperatorGroup);
  cap->add_option("DATASET", arguments->dataset, "Full name of the dataset: tenants/TENANT/datasets/ID")->required();
  cap->add_option("--epsilon", arguments->epsilon, "The new cap")->required();
  cap->add_option("--reason", arguments->reason, "Why, 1 to 500 characters")->required();
  cap->footer(Examples("  dpar cap tenants/acme/datasets/demo --epsilon 10 --reason 'agreed with the owner'"));
  cap->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunCap(s, *arguments); }; });

  const auto debited = std::make_shared<DebitArguments>();
  CLI::App* debit = app.add_subcommand("debit", "Debit a budget for spend that happened elsewhere, with a reason");
  debit->group(kOperatorGroup);
  debit->add_option("DATASET", debited->dataset, "Full name of the dataset: tenants/TENANT/datasets/ID")->required();
  debit->add_option("--units", debited->units, "Renyi divergence at the budget's order, in billionths")->required();
  debit->add_option("--reason", debited->reason, "Why, 1 to 500 characters")->required();
  debit->footer(Examples("  dpar debit tenants/acme/datasets/demo --units 250000000 --reason 'pilot study'"));
  debit->callback([debited, &chosen] { chosen = [debited](Session& s) { return RunDebit(s, *debited); }; });

  const auto tenant = std::make_shared<std::string>();
  CLI::App* spend = app.add_subcommand("spend", "Show what every dataset of every tenant has spent and has left");
  spend->group(kOperatorGroup);
  spend->add_option("--tenant", *tenant, "Only this tenant's");
  spend->footer(Examples("  dpar spend\n  dpar spend --tenant acme"));
  spend->callback([tenant, &chosen] { chosen = [tenant](Session& s) { return RunSpend(s, *tenant); }; });
}

}  // namespace

void AddBudgetCommands(CLI::App& app, Command& chosen) {
  const auto dataset = std::make_shared<std::string>();
  const auto entries = std::make_shared<bool>(false);
  CLI::App* budget = app.add_subcommand("budget", "Show what datasets may cost, have cost and have left");
  budget->group(kDataGroup);
  budget->add_option("DATASET", *dataset, "Id or full name of the dataset; all of the tenant's when left out");
  budget->add_flag("--entries", *entries, "List the ledger's entries and check their chain");
  budget->footer(Examples("  dpar budget\n  dpar budget demo --entries"));
  budget->callback([dataset, entries, &chosen] {
    if (dataset->empty() && *entries) {
      throw CLI::ValidationError("--entries", "name the DATASET whose entries to list");
    }
    chosen = [dataset, entries](Session& s) {
      return dataset->empty() ? RunBudgets(s) : RunBudget(s, *dataset, *entries);
    };
  });
  AddOperatorBudgetCommands(app, chosen);
}

}  // namespace dpar
