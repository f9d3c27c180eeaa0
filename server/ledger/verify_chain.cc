// Reads a budget's whole chain and recomputes everything that the ledger keeps: hashes, sequence numbers, the
// resolution of every reservation, and the sums. O(entries).
#include <map>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status_macros.h"
#include "server/ledger/entries.h"
#include "server/ledger/ledger.h"

namespace dpar {
namespace {

// Replays entries in order. An empty answer means that the entry is as it must be.
class Replay {
 public:
  explicit Replay(std::string budget_id) : budget_id_(std::move(budget_id)) {}

  std::string Apply(const StoredEntry& stored) {
    const v1::LedgerEntry& entry = stored.entry;
    if (entry.sequence() != account_.head_sequence + 1) {
      return absl::StrCat("entry ", account_.head_sequence + 1, " is missing");
    }
    if (entry.hash() != EntryHash(budget_id_, account_.head_hash, entry, stored.event_text)) {
      return "its content does not match its hash, or it does not follow the entry before it";
    }
    account_.head_sequence = entry.sequence();
    account_.head_hash = entry.hash();
    if ((entry.kind() == v1::LedgerEntry::OPEN) != (entry.sequence() == 1)) {
      return "a budget opens with its first entry and only there";
    }
    return ApplySums(entry);
  }

  // The account as the entries make it.
  [[nodiscard]] const Account& account() const { return account_; }

 private:
  std::string ApplySums(const v1::LedgerEntry& entry) {
    switch (entry.kind()) {
      case v1::LedgerEntry::OPEN:
        if (!absl::SimpleAtoi(absl::StripPrefix(entry.reason(), kOrderPrefix), &account_.terms.order)) {
          return "it names no order";
        }
        [[fallthrough]];
      case v1::LedgerEntry::ADJUST:
        account_.terms.cap_units = entry.units();
        account_.terms.cap_epsilon = entry.epsilon();
        account_.terms.cap_delta = entry.delta();
        return "";
      case v1::LedgerEntry::RESERVE:
        account_.reserved_units += entry.units();
        account_.live_events += 1;
        return open_.emplace(entry.job(), entry.units()).second && seen_.insert(entry.job()).second
                   ? ""
                   : "its job was reserved before";
      case v1::LedgerEntry::POST:
      case v1::LedgerEntry::VOID:
        return Resolve(entry);
      default:
        return "its kind is unknown";
    }
  }

  std::string Resolve(const v1::LedgerEntry& entry) {
    const auto reservation = open_.find(entry.job());
    if (reservation == open_.end() || reservation->second != entry.units()) {
      return "it resolves no open reservation of that size";
    }
    open_.erase(reservation);
    account_.reserved_units -= entry.units();
    if (entry.kind() == v1::LedgerEntry::POST) {
      account_.posted_units += entry.units();
    } else {
      account_.live_events -= 1;
    }
    return "";
  }

  const std::string budget_id_;
  Account account_;
  std::map<std::string, int64_t> open_;  // job to reserved units
  std::set<std::string> seen_;           // jobs that ever reserved
};

bool SameSums(const Account& a, const Account& b) {
  return a.head_sequence == b.head_sequence && a.head_hash == b.head_hash && a.posted_units == b.posted_units &&
         a.reserved_units == b.reserved_units && a.live_events == b.live_events && a.terms.order == b.terms.order &&
         a.terms.cap_units == b.terms.cap_units && a.terms.cap_epsilon == b.terms.cap_epsilon &&
         a.terms.cap_delta == b.terms.cap_delta;
}

}  // namespace

absl::StatusOr<v1::VerifyChainResponse> VerifyChain(Transaction& transaction, const std::string& budget_id) {
  DPAR_ASSIGN_OR_RETURN(const Account stored, LoadAccount(transaction, budget_id));
  DPAR_ASSIGN_OR_RETURN(const std::vector<StoredEntry> entries,
                        LoadEntries(transaction, "budget_id = $1 ORDER BY sequence", {budget_id}));
  v1::VerifyChainResponse response;
  response.set_entry_count(static_cast<int64_t>(entries.size()));
  Replay replay(budget_id);
  for (const StoredEntry& entry : entries) {
    const std::string fault = replay.Apply(entry);
    if (!fault.empty()) {
      response.set_first_bad_sequence(entry.entry.sequence());
      response.set_fault(fault);
      return response;
    }
  }
  response.set_head_hash(replay.account().head_hash);
  if (!SameSums(replay.account(), stored)) {
    response.set_first_bad_sequence(replay.account().head_sequence + 1);
    response.set_fault("the entries end before, or do not add up to, what the budget records");
    return response;
  }
  response.set_intact(true);
  return response;
}

}  // namespace dpar
