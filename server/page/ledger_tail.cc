#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status_macros.h"
#include "server/ledger/entries.h"
#include "server/page/overviews.h"
#include "server/page/recent_jobs.h"
#include "server/page/spend_steps.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

absl::Status AddCertificates(Transaction& transaction, v1::ListLedgerTailResponse& response) {
  const auto is_post = [](const v1::LedgerTailEntry& entry) {
    return entry.entry().kind() == v1::LedgerEntry::POST || entry.entry().kind() == v1::LedgerEntry::INHERIT;
  };
  std::vector<std::string> posted;
  for (const v1::LedgerTailEntry& entry : response.entries()) {
    if (is_post(entry)) {
      posted.push_back(entry.entry().job());
    }
  }
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> found, JobsWithCertificates(transaction, posted));
  const std::set<std::string> with(found.begin(), found.end());
  for (v1::LedgerTailEntry& entry : *response.mutable_entries()) {
    entry.set_has_certificate(is_post(entry) && with.contains(entry.entry().job()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> SharesOfNewest(Transaction& transaction, const std::vector<BudgetHead>& budgets,
                                                    int64_t page_size) {
  std::vector<std::pair<absl::Time, size_t>> newest;
  for (size_t i = 0; i < budgets.size(); ++i) {
    const absl::StatusOr<std::vector<absl::Time>> times =
        ListNewestTimes(transaction, budgets[i].population, page_size);
    if (IsBudgetFault(times.status())) {
      continue;
    }
    DPAR_RETURN_IF_ERROR(times.status());
    for (const absl::Time time : *times) {
      newest.emplace_back(time, i);
    }
  }
  std::stable_sort(newest.begin(), newest.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  newest.resize(std::min(newest.size(), static_cast<size_t>(page_size)));
  std::vector<int64_t> shares(budgets.size(), 0);
  for (const auto& [time, budget] : newest) {
    ++shares[budget];
  }
  return shares;
}

// The newest entries, budget by budget. Skips ledgers that cannot be read: the overview reports them.
absl::StatusOr<std::vector<v1::LedgerTailEntry>> NewestEntries(Transaction& transaction,
                                                               std::vector<BudgetHead> budgets, int64_t page_size) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<int64_t> shares, SharesOfNewest(transaction, budgets, page_size));
  std::vector<v1::LedgerTailEntry> entries;
  for (size_t i = 0; i < budgets.size(); ++i) {
    if (shares[i] == 0) {
      continue;
    }
    absl::StatusOr<std::vector<v1::LedgerEntry>> newest =
        ListEntriesBefore(transaction, budgets[i].population, std::numeric_limits<int64_t>::max(), shares[i]);
    if (IsBudgetFault(newest.status())) {
      budgets.erase(budgets.begin() + static_cast<std::ptrdiff_t>(i));
      return NewestEntries(transaction, std::move(budgets), page_size);
    }
    DPAR_RETURN_IF_ERROR(newest.status());
    for (v1::LedgerEntry& entry : *newest) {
      v1::LedgerTailEntry& shown = entries.emplace_back();
      shown.set_budget(budgets[i].population);
      *shown.mutable_entry() = std::move(entry);
    }
  }
  return entries;
}

}  // namespace

absl::StatusOr<v1::ListLedgerTailResponse> Overviews::Tail(const std::string& tenant, int64_t page_size) const {
  const std::vector<BudgetHead> budgets = sources_.spend.NewestBudgets(tenant, static_cast<size_t>(page_size));
  return ReadFrom(sources_.database, [&](Transaction& transaction) -> absl::StatusOr<v1::ListLedgerTailResponse> {
    DPAR_ASSIGN_OR_RETURN(std::vector<v1::LedgerTailEntry> entries, NewestEntries(transaction, budgets, page_size));
    std::stable_sort(entries.begin(), entries.end(), [](const v1::LedgerTailEntry& a, const v1::LedgerTailEntry& b) {
      return ToMicroseconds(a.entry().time()) > ToMicroseconds(b.entry().time());
    });
    v1::ListLedgerTailResponse response;
    response.mutable_entries()->Assign(entries.begin(), entries.end());
    DPAR_RETURN_IF_ERROR(AddCertificates(transaction, response));
    return response;
  });
}

absl::StatusOr<v1::ListLedgerTailResponse> Overviews::TailOf(const std::string& population, int64_t before_sequence,
                                                             int64_t page_size) const {
  return ReadFrom(sources_.database, [&](Transaction& transaction) -> absl::StatusOr<v1::ListLedgerTailResponse> {
    DPAR_ASSIGN_OR_RETURN(std::vector<v1::LedgerEntry> entries,
                          ListEntriesBefore(transaction, population, before_sequence, page_size));
    v1::ListLedgerTailResponse response;
    for (v1::LedgerEntry& entry : entries) {
      v1::LedgerTailEntry& shown = *response.add_entries();
      shown.set_budget(population);
      *shown.mutable_entry() = std::move(entry);
    }
    if (!entries.empty() && response.entries().rbegin()->entry().sequence() > 1) {
      response.set_next_page_token(absl::StrCat(response.entries().rbegin()->entry().sequence()));
    }
    DPAR_RETURN_IF_ERROR(AddCertificates(transaction, response));
    return response;
  });
}

}  // namespace dpar
