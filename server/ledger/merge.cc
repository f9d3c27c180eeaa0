#include "server/ledger/merge.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/privacy/budget.h"
#include "core/status_macros.h"
#include "dpar/v1/privacy.pb.h"
#include "server/ledger/entries.h"
#include "server/resource_name.h"
#include "server/seam.h"
#include "server/store/datasets.h"
#include "server/store/message_text.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

constexpr size_t kShownHash = 16;

bool IsSpend(v1::LedgerEntry::Kind kind) {
  return kind == v1::LedgerEntry::POST || kind == v1::LedgerEntry::INHERIT || kind == v1::LedgerEntry::DEBIT;
}

absl::Status ChangedMeanwhile() {
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   "a population changed while the merge was priced; try again");
}

absl::Status CheckMergeable(const std::string& population, const Account& account) {
  if (!account.merged_into.empty()) {
    return PopulationClosed(population, account);
  }
  if (!account.frozen_reason.empty()) {
    return BudgetFrozen(population, account.frozen_reason);
  }
  return account.reserved_units == 0
             ? absl::OkStatus()
             : MakeError(absl::StatusCode::kFailedPrecondition, v1::POPULATION_IN_USE,
                         absl::StrCat("jobs of ", population,
                                      " are queued or running; wait for them or cancel them, then merge again"),
                         {{"resource", population}});
}

// The smaller cap, at the order of `into`, with the delta that all versions allow.
absl::StatusOr<BudgetTerms> MergedTerms(const Account& from, const Account& into) {
  BudgetTerms terms = into.terms;
  terms.cap_epsilon = std::min(from.terms.cap_epsilon, into.terms.cap_epsilon);
  terms.cap_delta = std::min(from.terms.cap_delta, into.terms.cap_delta);
  const int64_t slots = from.node_total + into.node_total;
  if (slots > 0) {
    DPAR_ASSIGN_OR_RETURN(const double most, DefaultDelta(slots));
    terms.cap_delta = std::min(terms.cap_delta, most);
  }
  DPAR_ASSIGN_OR_RETURN(terms.cap_units, CapUnits(terms.cap_epsilon, terms.cap_delta, terms.order));
  return terms;
}

// Whether nothing that depends on the people of the population may have left it: no job was posted, nothing debited,
// and none was cancelled after its data was opened. Jobs that are queued or running are for CheckMergeable.
bool ReleasedNothing(const Account& account, int64_t opened_voids) {
  return account.live_events == 0 && account.posted_units == 0 && opened_voids == 0;
}

// A debit names no event, so at another order nothing proves its price. Divergence does not fall with the order, so at
// a smaller one the same units suffice. At a larger one they grow in proportion, as a Gaussian's do, rounded up.
int64_t DebitUnits(int64_t units, int64_t from_order, int64_t into_order) {
  if (into_order <= from_order) {
    return units;
  }
  const absl::uint128 scaled = (absl::uint128(static_cast<uint64_t>(units)) * static_cast<uint64_t>(into_order) +
                                static_cast<uint64_t>(from_order - 1)) /
                               static_cast<uint64_t>(from_order);
  return scaled > static_cast<uint64_t>(kMaxUnits) ? kMaxUnits : static_cast<int64_t>(scaled);
}

class Merging {
 public:
  Merging(Transaction& transaction, std::string from, std::string into, const MergePrices& prices,
          const EntryContext& context)
      : transaction_(transaction), from_(std::move(from)), into_(std::move(into)), prices_(prices), context_(context) {}

  // Tenant, datasets, populations: the order of all locks. Populations by name, against a merge the other way round.
  absl::Status Lock() {
    DPAR_RETURN_IF_ERROR(transaction_.Lock(Guard::kTenant, TenantOf(from_)));
    DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> datasets, DatasetsOf(transaction_, from_));
    for (const std::string& dataset : datasets) {
      DPAR_RETURN_IF_ERROR(transaction_.Lock(Guard::kDataset, dataset));
    }
    DPAR_RETURN_IF_ERROR(LockAccount(transaction_, std::min(from_, into_)).status());
    DPAR_RETURN_IF_ERROR(LockAccount(transaction_, std::max(from_, into_)).status());
    DPAR_ASSIGN_OR_RETURN(old_, LoadAccount(transaction_, from_));
    DPAR_ASSIGN_OR_RETURN(account_, LoadAccount(transaction_, into_));
    return absl::OkStatus();
  }

  [[nodiscard]] bool done() const { return old_.merged_into == into_; }

  absl::Status Check() {
    DPAR_RETURN_IF_ERROR(CheckMergeable(from_, old_));
    DPAR_RETURN_IF_ERROR(CheckMergeable(into_, account_));
    if (prices_.order != account_.terms.order) {
      return ChangedMeanwhile();
    }
    // An altered entry must not become spend of another ledger.
    DPAR_ASSIGN_OR_RETURN(const v1::VerifyChainResponse chain, VerifyChain(transaction_, from_, {}));
    return chain.intact()
               ? absl::OkStatus()
               : CorruptBudget(absl::StrCat("entry ", chain.first_bad_sequence(), ": ", chain.fault()), from_);
  }

  // Finds out whether `into` is closed by this, which must not come as a surprise.
  absl::Status CheckClosing(Closing closing) {
    DPAR_ASSIGN_OR_RETURN(voids_, CountOpenedVoids(transaction_, from_));
    std::string what_else;
    if (!old_.closed_reason.empty()) {
      why_closed_ = absl::StrCat(from_, ", which was closed, was merged into it: ", old_.closed_reason);
    } else if (old_.terms.order != account_.terms.order && !ReleasedNothing(old_, voids_)) {
      why_closed_ = absl::StrCat(from_, " was merged into it, whose ledger counts at order ", old_.terms.order,
                                 " and this one at ", account_.terms.order, ": no cap holds for a sum of both");
      DPAR_ASSIGN_OR_RETURN(const int64_t voids, CountOpenedVoids(transaction_, into_));
      if (ReleasedNothing(account_, voids)) {
        what_else = absl::StrCat("Merge ", into_, " into ", from_, " instead, which closes neither: ", into_,
                                 " has spent nothing. Or repeat");
      }
    }
    if (why_closed_.empty() || !account_.closed_reason.empty() || closing == Closing::kAllowed) {
      return absl::OkStatus();
    }
    return MakeError(
        absl::StatusCode::kFailedPrecondition, v1::INVALID_FIELD,
        absl::StrCat("after this merge ", into_, " would admit no further job, for good: ", why_closed_, ". ",
                     what_else.empty() ? "Repeat" : what_else, " this with allow_closing (--close) if it may end"),
        {{"field", "allow_closing"}});
  }

  absl::Status Inherit(const std::string& reason) {
    DPAR_ASSIGN_OR_RETURN(account_.terms, MergedTerms(old_, account_));
    StoredEntry heading = CapEntry(v1::LedgerEntry::MERGE, account_.terms,
                                   absl::StrCat("from ", from_, " at entry ", old_.head_sequence, " (",
                                                old_.head_hash.substr(0, kShownHash), "): ", reason));
    heading.entry.set_attempt(static_cast<int32_t>(voids_));
    DPAR_RETURN_IF_ERROR(Append(transaction_, into_, account_, std::move(heading), context_).status());
    constexpr int64_t kPageRows = 1000;
    for (int64_t last = 0; last < old_.head_sequence; last += kPageRows) {
      DPAR_ASSIGN_OR_RETURN(
          std::vector<StoredEntry> entries,
          LoadUnparsedEntries(transaction_, "population = $1 AND sequence > $2 AND sequence <= $3 ORDER BY sequence",
                              {from_, last, last + kPageRows}));
      for (StoredEntry& entry : entries) {
        if (IsSpend(entry.entry.kind())) {
          DPAR_RETURN_IF_ERROR(Take(std::move(entry)));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Finish(const std::string& reason) {
    DPAR_RETURN_IF_ERROR(MovePopulation(transaction_, from_, into_, old_.node_total));
    if (old_.max_degree > 0) {
      DPAR_RETURN_IF_ERROR(NarrowToDegree(transaction_, into_, old_.max_degree));
    }
    if (!why_closed_.empty()) {
      DPAR_RETURN_IF_ERROR(Close(transaction_, into_, why_closed_, context_));
    }
    old_.merged_into = into_;
    old_.closed_reason = absl::StrCat(kMergedPrefix, into_, ": ", reason);
    StoredEntry end;
    end.entry.set_kind(v1::LedgerEntry::CLOSE);
    end.entry.set_reason(old_.closed_reason);
    return Append(transaction_, from_, old_, std::move(end), context_).status();
  }

 private:
  absl::Status Take(StoredEntry stored) {
    v1::LedgerEntry& entry = stored.entry;
    const bool debit = entry.kind() == v1::LedgerEntry::DEBIT;
    if (debit) {
      entry.set_units(DebitUnits(entry.units(), old_.terms.order, account_.terms.order));
    } else if (old_.terms.order != account_.terms.order) {
      const auto units = prices_.units.find(stored.event_text);
      if (units == prices_.units.end()) {
        return ChangedMeanwhile();
      }
      entry.set_units(units->second);
    }
    if (entry.units() > kMaxUnits - account_.used_units()) {
      return InvalidField("name", "the two populations together have spent more than a ledger can hold");
    }
    entry.set_reason(
        absl::StrCat("entry ", entry.sequence(), " of ", from_, entry.reason().empty() ? "" : ": ", entry.reason()));
    entry.set_kind(debit ? v1::LedgerEntry::DEBIT : v1::LedgerEntry::INHERIT);
    account_.posted_units += entry.units();
    account_.live_events += debit ? 0 : 1;
    return Append(transaction_, into_, account_, std::move(stored), context_).status();
  }

  Transaction& transaction_;
  const std::string from_;
  const std::string into_;
  const MergePrices& prices_;
  const EntryContext& context_;
  Account old_;        // of `from`
  Account account_;    // of `into`
  int64_t voids_ = 0;  // of `from`, after the data was opened
  std::string why_closed_;
};

}  // namespace

absl::StatusOr<MergePrices> PriceMerge(Database& database, const std::string& from, const std::string& into) {
  MergePrices prices;
  std::vector<std::string> texts;
  DPAR_RETURN_IF_ERROR(database.Read([&](Transaction& transaction) -> absl::Status {
    DPAR_ASSIGN_OR_RETURN(const Account old, LoadAccount(transaction, from));
    DPAR_ASSIGN_OR_RETURN(const Account account, LoadAccount(transaction, into));
    prices.order = account.terms.order;
    texts.clear();
    if (old.terms.order == account.terms.order) {
      return absl::OkStatus();
    }
    DPAR_ASSIGN_OR_RETURN(
        texts,
        transaction.QueryTexts("SELECT DISTINCT event FROM ledger_entries WHERE population = $1 AND kind IN ($2, $3)",
                               {from, int64_t{v1::LedgerEntry::POST}, int64_t{v1::LedgerEntry::INHERIT}}));
    return absl::OkStatus();
  }));
  for (const std::string& text : texts) {
    v1::PrivacyEvent event;
    DPAR_RETURN_IF_ERROR(TextToMessage(text, event));
    DPAR_ASSIGN_OR_RETURN(prices.units[text], EventUnits(event, prices.order));
  }
  return prices;
}

absl::Status Merge(Transaction& transaction, const std::string& from, const std::string& into,
                   const MergePrices& prices, const std::string& reason, const EntryContext& context, Closing closing) {
  if (from == into) {
    return InvalidField("into", "into must be another population than name");
  }
  Merging merging(transaction, from, into, prices, context);
  DPAR_RETURN_IF_ERROR(merging.Lock());
  if (merging.done()) {
    return absl::OkStatus();
  }
  DPAR_RETURN_IF_ERROR(merging.Check());
  DPAR_RETURN_IF_ERROR(merging.CheckClosing(closing));
  DPAR_RETURN_IF_ERROR(merging.Inherit(reason));
  DPAR_SEAM("merge-inherited");
  DPAR_RETURN_IF_ERROR(merging.Finish(reason));
  DPAR_SEAM("merge-finished");
  return absl::OkStatus();
}

}  // namespace dpar
