#include "client/cli/budget_text.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/labels.h"
#include "client/sdk/names.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr int kBarWidth = 30;

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
bool IsCap(v1::LedgerEntry::Kind kind) {
  return kind == v1::LedgerEntry::OPEN || kind == v1::LedgerEntry::ADJUST || kind == v1::LedgerEntry::MERGE;
}

// tenants/acme/populations/demo as "demo", or as "acme/demo" where several tenants are shown.
std::string ShortName(const std::string& name, bool with_tenant) {
  return with_tenant ? absl::StrCat(IdOf(TenantOf(name)), "/", IdOf(name)) : IdOf(name);
}

bool IsFuller(const v1::Budget& a, const v1::Budget& b) {
  return a.posted_percent() + a.reserved_percent() > b.posted_percent() + b.reserved_percent();
}

// The largest epsilon that a job could have, or why there is none.
std::string LargestText(const v1::Budget& budget) {
  if (!budget.frozen_reason().empty()) {
    return "frozen";
  }
  if (!budget.closed_reason().empty()) {
    return budget.merged_into().empty() ? "closed" : "merged";
  }
  return FormatNumberDown(budget.largest_admissible_epsilon());
}

std::vector<std::string> BudgetRow(const std::string& name, const v1::Budget& budget) {
  const auto share = [&](int64_t units) { return FormatPercent(units, budget.cap_units()); };
  return {name,
          share(budget.posted_units()),
          share(budget.reserved_units()),
          share(budget.left_units()),
          LargestText(budget),
          FormatNumber(budget.equivalent_epsilon()),
          FormatNumber(budget.cap_epsilon()),
          FormatNumber(budget.cap_delta())};
}

constexpr const char* kLegend =
    "CAP: the guarantee for all jobs together, an epsilon. LARGEST: what a job could\n"
    "be admitted with now. EQUIVALENT: had all posted been planned in advance.\n";

}  // namespace

absl::StatusOr<std::string> PopulationName(Session& session, const std::string& text) {
  session.error_context().dataset = text;
  if (absl::StrContains(text, "/populations/")) {
    return session.Resolve("populations", text);
  }
  DPAR_ASSIGN_OR_RETURN(const std::string dataset_name, session.Resolve("datasets", text));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  if (dataset_name != text) {
    const std::string name = absl::StrCat(TenantOf(dataset_name), "/populations/", text);
    const absl::Status found = connection->GetBudget(name).status();
    if (!absl::IsNotFound(found)) {
      DPAR_RETURN_IF_ERROR(found);
      return name;
    }
  }
  DPAR_ASSIGN_OR_RETURN(const v1::Dataset dataset, connection->GetDataset(dataset_name));
  if (dataset.is_public()) {
    return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND,
                     absl::StrCat(dataset_name, " is public: it has no population and no budget"),
                     {{"resource", dataset_name}});
  }
  return dataset.population();
}

void PrintBudget(Session& session, const v1::Budget& budget) {
  const int64_t cap = budget.cap_units();
  const double used = cap > 0 ? static_cast<double>(budget.posted_units()) / static_cast<double>(cap) : 0;
  // Any spend shows.
  const double bar = used > 0 ? std::max(used, 1.0 / kBarWidth) : 0;
  const auto share = [cap](int64_t units) { return absl::StrFormat("%6s", FormatPercent(units, cap)); };
  session.out() << budget.name() << "\n"
                << "  cap                 epsilon " << FormatNumber(budget.cap_epsilon()) << " at delta "
                << FormatNumber(budget.cap_delta()) << ", for all jobs together\n";
  if (budget.has_max_degree()) {
    session.out() << "  degree promise      the cap is about graphs in which no node has more than "
                  << FormatCount(budget.max_degree()) << " neighbours\n";
  }
  session.out() << "  used                " << share(budget.posted_units()) << "  ["
                << Bar(bar, kBarWidth, session.terminal().utf8) << "]\n"
                << "  reserved            " << share(budget.reserved_units()) << "\n"
                << "  left                " << share(budget.left_units()) << "\n"
                << "  largest epsilon     " << FormatNumberDown(budget.largest_admissible_epsilon())
                << " could be admitted now\n"
                << "  equivalent epsilon  " << FormatNumber(budget.equivalent_epsilon())
                << " (had it all been planned in advance; no guarantee)\n"
                << "  jobs counted        " << budget.live_events() << "\n";
  if (!budget.closed_reason().empty()) {
    session.out() << "  CLOSED              " << budget.closed_reason() << "\n";
  }
  if (!budget.frozen_reason().empty()) {
    session.out() << "  FROZEN              " << budget.frozen_reason() << "\n";
  }
}

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
    const bool holds = entry.kind() == v1::LedgerEntry::RESERVE || entry.kind() == v1::LedgerEntry::POST ||
                       entry.kind() == v1::LedgerEntry::INHERIT;
    if (holds && !entry.stages().empty()) {
      session.out() << StagesText(entry, cap_units, session.TableWidth()) << "\n";
    }
    if (!entry.reason().empty()) {
      session.out() << "  " << entry.sequence() << ": " << entry.reason() << " (" << entry.actor() << ")\n";
    }
  }
}

int PrintBudgets(Session& session, const Connection::Budgets& all, bool with_tenant) {
  if (session.json()) {
    Json json = {{"budgets", ListJson(all.budgets)}};
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
  Table table({"POPULATION", "USED", "RESERVED", "LEFT", "LARGEST", "EQUIVALENT", "CAP", "DELTA"}, {0});
  for (const v1::Budget& budget : all.budgets) {
    table.Add(BudgetRow(ShortName(budget.name(), with_tenant), budget));
  }
  session.out() << table.Render(session.TableWidth()) << kLegend;
  if (all.fullest.has_value()) {
    session.out() << "fullest: " << ShortName(all.fullest->name(), with_tenant) << "\n";
  }
  return kDone;
}

int PrintSpend(Session& session, const Connection::Budgets& all, const std::vector<v1::PopulationUsage>& usage) {
  std::map<std::string, const v1::PopulationUsage*> usage_of;
  std::map<std::string, std::vector<const v1::Budget*>> tenants;
  for (const v1::PopulationUsage& one : usage) {
    usage_of[one.budget().name()] = &one;
  }
  for (const v1::Budget& budget : all.budgets) {
    tenants[TenantOf(budget.name())].push_back(&budget);
  }
  if (session.json()) {
    Json json = {{"budgets", ListJson(all.budgets)}, {"populations", ListJson(usage)}};
    if (all.fullest.has_value()) {
      json["fullest"] = all.fullest->name();
    }
    session.PrintJson(json);
    return kDone;
  }
  if (tenants.empty()) {
    session.out() << "no private datasets yet\n";
    return kDone;
  }
  Table table({"TENANT/POPULATION/DATASET", "USED", "RESERVED", "LEFT", "LARGEST", "EQUIVALENT", "CAP", "DELTA"}, {0});
  for (const auto& [tenant, budgets] : tenants) {
    const v1::Budget* fullest = budgets.front();
    for (const v1::Budget* budget : budgets) {
      fullest = budget->merged_into().empty() && (!fullest->merged_into().empty() || IsFuller(*budget, *fullest))
                    ? budget
                    : fullest;
    }
    table.Add(BudgetRow(IdOf(tenant), *fullest));
    for (const v1::Budget* budget : budgets) {
      table.Add(BudgetRow(absl::StrCat("  ", IdOf(budget->name())), *budget));
      const auto found = usage_of.find(budget->name());
      if (found == usage_of.end()) {
        continue;
      }
      for (const v1::DatasetSpend& dataset : found->second->datasets()) {
        table.Add({absl::StrCat("    ", IdOf(dataset.dataset()), dataset.deleted() ? " (deleted)" : ""),
                   FormatPercent(dataset.posted_units(), budget->cap_units()), "", "", "", "", "", ""});
      }
    }
  }
  session.out() << table.Render(session.TableWidth()) << kLegend
                << "A tenant's line is that of its fullest population; a dataset's, what its jobs used.\n";
  if (all.fullest.has_value()) {
    session.out() << "fullest: " << ShortName(all.fullest->name(), /*with_tenant=*/true) << "\n";
  }
  return kDone;
}

std::string ChainText(const v1::VerifyChainResponse& chain, absl::string_view indent) {
  return chain.intact()
             ? absl::StrCat(indent, "chain intact, ", FormatCount(chain.entry_count()), " entries\n", indent, "head ",
                            chain.head_hash(), "\n")
             : absl::StrCat(indent, "CHAIN BROKEN at entry ", chain.first_bad_sequence(), ": ", chain.fault(), "\n");
}

}  // namespace dpar
