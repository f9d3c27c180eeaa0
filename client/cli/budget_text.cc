#include "client/cli/budget_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/labels.h"
#include "client/sdk/names.h"
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
bool IsCap(v1::LedgerEntry::Kind kind) { return kind == v1::LedgerEntry::OPEN || kind == v1::LedgerEntry::ADJUST; }

// tenants/acme/datasets/demo/budget as "demo", or as "acme/demo" where several tenants are shown.
std::string ShortName(const v1::Budget& budget, bool with_tenant) {
  const std::string dataset(absl::StripSuffix(budget.name(), "/budget"));
  return with_tenant ? absl::StrCat(IdOf(TenantOf(dataset)), "/", IdOf(dataset)) : IdOf(dataset);
}

}  // namespace

absl::StatusOr<std::string> BudgetName(Session& session, const std::string& text) {
  session.error_context().dataset = text;
  const std::string dataset(absl::StripSuffix(text, "/budget"));
  DPAR_ASSIGN_OR_RETURN(const std::string name, session.Resolve("datasets", dataset));
  return absl::StrCat(name, "/budget");
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
    const bool holds = entry.kind() == v1::LedgerEntry::RESERVE || entry.kind() == v1::LedgerEntry::POST;
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
  Table table({"DATASET", "USED", "RESERVED", "LEFT", "LARGEST", "EQUIVALENT", "CAP", "DELTA"}, {0});
  for (const v1::Budget& budget : all.budgets) {
    const auto share = [&](int64_t units) { return FormatPercent(units, budget.cap_units()); };
    table.Add({ShortName(budget, with_tenant), share(budget.posted_units()), share(budget.reserved_units()),
               share(budget.left_units()),
               budget.frozen_reason().empty() ? FormatNumberDown(budget.largest_admissible_epsilon()) : "frozen",
               FormatNumber(budget.equivalent_epsilon()), FormatNumber(budget.cap_epsilon()),
               FormatNumber(budget.cap_delta())});
  }
  session.out() << table.Render(session.TableWidth())
                << "CAP: the guarantee for all jobs together, an epsilon. LARGEST: what a job could\n"
                << "be admitted with now. EQUIVALENT: had all posted been planned in advance.\n";
  if (all.fullest.has_value()) {
    session.out() << "fullest: " << ShortName(*all.fullest, with_tenant) << "\n";
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
