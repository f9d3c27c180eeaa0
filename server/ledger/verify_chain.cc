// Recomputes a budget's whole chain: hashes, sequence numbers, resolutions of reservations, sums. O(entries).
#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status_macros.h"
#include "server/ledger/entries.h"
#include "server/ledger/ledger.h"

namespace dpar {
namespace {

constexpr int64_t kPageRows = 1000;

// The population that a CLOSE entry's reason names, if it was merged.
std::string MergedInto(absl::string_view reason) {
  return absl::ConsumePrefix(&reason, kMergedPrefix) ? std::string(reason.substr(0, reason.find(": "))) : "";
}

// Replays entries in order; returns a fault's text, or empty.
class Replay {
 public:
  Replay(std::string population, std::map<int64_t, std::string> signed_hashes)
      : budget_id_(std::move(population)), signed_hashes_(std::move(signed_hashes)) {}

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
    if (const auto signature = signed_hashes_.find(entry.sequence()); signature != signed_hashes_.end()) {
      if (signature->second != entry.hash()) {
        return "a certificate was signed for another entry in its place";
      }
      signed_hashes_.erase(signature);
    }
    if (!account_.merged_into.empty()) {
      return "it follows the entry that ended a merged population";
    }
    if ((entry.kind() == v1::LedgerEntry::OPEN) != (entry.sequence() == 1)) {
      return "a budget opens with its first entry and only there";
    }
    return ApplySums(entry);
  }

  [[nodiscard]] bool has_unseen_signature() const { return !signed_hashes_.empty(); }
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
      case v1::LedgerEntry::MERGE:
        opened_voids_ += entry.attempt();
        account_.terms.cap_units = entry.units();
        account_.terms.cap_epsilon = entry.epsilon();
        account_.terms.cap_delta = entry.delta();
        return "";
      case v1::LedgerEntry::RESERVE:
        if (!account_.closed_reason.empty()) {
          return "it reserves for a closed population";
        }
        account_.reserved_units += entry.units();
        account_.live_events += 1;
        return open_.emplace(entry.job(), entry.units()).second && seen_.insert(entry.job()).second
                   ? ""
                   : "its job was reserved before";
      case v1::LedgerEntry::POST:
      case v1::LedgerEntry::VOID:
        return Resolve(entry);
      case v1::LedgerEntry::INHERIT:
        account_.live_events += 1;
        [[fallthrough]];
      case v1::LedgerEntry::DEBIT:
        account_.posted_units += entry.units();
        return "";
      case v1::LedgerEntry::CLOSE:
        account_.closed_reason = entry.reason();
        account_.merged_into = MergedInto(entry.reason());
        return "";
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
      return "";
    }
    account_.live_events -= 1;
    if (entry.attempt() == 0) {
      return "";
    }
    // As VoidOrPost decides: what was merged in may have used up all of them before.
    opened_voids_ += 1;
    return opened_voids_ <= kFreeVoids
               ? ""
               : "it gives a price back after the data was opened, more often than a population may";
  }

  const std::string budget_id_;
  std::map<int64_t, std::string> signed_hashes_;  // of entries that were not seen yet
  Account account_;
  std::map<std::string, int64_t> open_;  // job to reserved units
  std::set<std::string> seen_;           // jobs that ever reserved
  int64_t opened_voids_ = 0;             // of jobs whose data was opened, those of merged populations too
};

bool SameSums(const Account& a, const Account& b) {
  return a.head_sequence == b.head_sequence && a.head_hash == b.head_hash && a.posted_units == b.posted_units &&
         a.reserved_units == b.reserved_units && a.live_events == b.live_events && a.terms.order == b.terms.order &&
         a.terms.cap_units == b.terms.cap_units && a.terms.cap_epsilon == b.terms.cap_epsilon &&
         a.terms.cap_delta == b.terms.cap_delta && a.closed_reason == b.closed_reason && a.merged_into == b.merged_into;
}

}  // namespace

absl::StatusOr<v1::VerifyChainResponse> VerifyChain(Transaction& transaction, const std::string& population,
                                                    const std::vector<EntryPosition>& checkpoints,
                                                    const std::atomic<bool>* stop) {
  v1::VerifyChainResponse response;
  const auto fault_at = [&](int64_t sequence, absl::string_view fault) {
    response.set_first_bad_sequence(sequence);
    response.set_fault(std::string(fault));
    return response;
  };
  const absl::StatusOr<Account> stored = LoadAccount(transaction, population);
  if (!stored.ok() && !absl::IsDataLoss(stored.status())) {
    return stored.status();
  }
  std::map<int64_t, std::string> signed_hashes;
  for (const EntryPosition& checkpoint : checkpoints) {
    if (!signed_hashes.emplace(checkpoint.sequence, checkpoint.hash).second) {
      return fault_at(checkpoint.sequence, "two certificates were signed for it");
    }
  }
  Replay replay(population, std::move(signed_hashes));
  // Read in batches, so memory does not grow with the chain. `last` is the stored number, right or wrong.
  int64_t last = std::numeric_limits<int64_t>::min();
  while (true) {
    if (stop != nullptr && *stop) {
      return absl::CancelledError("the chain was not verified to its end, because the server stops");
    }
    DPAR_ASSIGN_OR_RETURN(const std::vector<Row> rows,
                          LoadEntryRows(transaction, "population = $1 AND sequence > $2 ORDER BY sequence LIMIT $3",
                                        {population, last, kPageRows}));
    for (const Row& row : rows) {
      const int64_t expected = replay.account().head_sequence + 1;
      const absl::StatusOr<StoredEntry> entry = ReadEntry(row);
      if (!entry.ok()) {
        return fault_at(expected, entry.status().message());
      }
      last = entry->entry.sequence();
      if (const std::string fault = replay.Apply(*entry); !fault.empty()) {
        return fault_at(last, fault);
      }
      response.set_entry_count(expected);
    }
    if (static_cast<int64_t>(rows.size()) < kPageRows) {
      break;
    }
  }
  response.set_head_hash(replay.account().head_hash);
  const int64_t next = replay.account().head_sequence + 1;
  if (!stored.ok()) {
    return fault_at(next, stored.status().message());
  }
  if (!SameSums(replay.account(), *stored)) {
    return fault_at(next, "the entries end before, or do not add up to, what the budget records");
  }
  if (replay.has_unseen_signature()) {
    return fault_at(next, "a certificate was signed for an entry that is not there");
  }
  response.set_intact(true);
  return response;
}

}  // namespace dpar
