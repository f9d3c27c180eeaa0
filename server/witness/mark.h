// A mark: how far a budget's ledger had come when something that it paid for was about to leave the server.
//
// What a mark is for. A restored backup is an older ledger that is whole in itself: its chain and its sums are right,
// and it knows nothing of what was released after it was made. Nothing inside the store can tell. So the server keeps,
// outside of what is backed up, one small file for every budget: the last entry of its ledger that somebody may have
// seen results of, and what was spent up to there. A ledger that does not have that entry was rolled back.
//
// Why one entry is enough. Let `marked` be what the mark says was spent. It is never below the price of everything that
// was ever marked: a mark moves along its ledger, and where a rolled-back ledger is settled, it moves to that ledger's
// sum after the debit below. A ledger that lacks the mark's entry notes itself up to which entry it was marked before
// (budgets.marked_sequence), with `known` spent up to there. What is to be covered is everything that was marked, no
// more than `marked`, and what the ledger posted after `known` and may have been marked or not: posted - known. So the
// ledger is debited marked - known, on top of what it posted. For a restored backup that is exact: what was spent
// between the backup's last mark and the last mark. A note that is missing, as after a crash between mark and note,
// makes the debit larger, never too small.
#ifndef DPAR_SERVER_WITNESS_MARK_H_
#define DPAR_SERVER_WITNESS_MARK_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

// What a budget belongs to.
struct Content {
  std::string tenant;  // tenants/{t}
  std::string digest;  // of the canonical content under the tenant's key, lower-case hex

  auto operator<=>(const Content&) const = default;
};

// A budget's terms (core/privacy/budget.h). Units of one order say nothing at another, and a budget that is opened anew
// must not choose it again.
struct MarkedTerms {
  double cap_epsilon = 0;
  double cap_delta = 0;
  int64_t order = 0;
  int64_t cap_units = 0;
  int64_t max_degree = 0;  // the degree promise that the cap rests on; 0: none

  friend bool operator==(const MarkedTerms&, const MarkedTerms&) = default;
};

struct Mark {
  Content content;
  std::string budget_id;
  MarkedTerms terms;
  int64_t sequence = 0;  // of the entry
  std::string hash;
  int64_t spent_units = 0;  // posted or debited, once that entry was written

  friend bool operator==(const Mark&, const Mark&) = default;
};

// Lines of text that end with a digest of what is before it.
std::string FormatMark(const Mark& mark);
// DATA_LOSS / STORE_CORRUPT for anything that FormatMark does not write; UNIMPLEMENTED for what another version wrote,
// which is whole and not to be judged by this one. Every version has the title's first word and the digest.
absl::StatusOr<Mark> ParseMark(absl::string_view text);

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_MARK_H_
