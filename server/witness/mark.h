// A mark: how far a budget's ledger had come when something that it paid for was about to leave the server.
//
// What a mark is for. A restored backup is an older ledger that is whole in itself: its chain and its sums are right,
// and it knows nothing of what was released after it was made. Nothing inside the store can tell. So the server keeps,
// outside of what is backed up, one small file for every budget: the last entry of its ledger that somebody may have
// seen results of, and what was spent up to there. A ledger that does not have that entry was rolled back.
//
// Why a mark holds more than one entry. Of a ledger that does not have the last one it must be found out how much of
// what the mark knows it has: what it lacks is debited. Were it only raised to what the mark says, then a ledger that
// was rolled back, and went on where nobody compared, would have its own spending since count as what it lacks. With
// `common` spent up to the newest entry of the mark that the ledger has, `marked` up to the mark's last, and `posted`
// in the ledger, no more than posted + (marked - common) was ever spent, whatever happened since: everything in the
// ledger is in `posted`, and everything that the mark knows besides came after that common entry. Entries in between
// are dropped as they age, which makes `common` smaller and the debit larger, never too small.
//
// Why less does not do. With the last entry alone, nothing in a ledger that lacks it would be known to be common, and a
// restored budget would pay again for all that it had spent. A note in the store of how far its ledger was marked would
// tell, but not by which directory: where store and directory were rolled back together and went on, and the true
// directory then came back, the note stands for entries that this mark has never known, and the debit would be too
// small by their price (AListLeavesOutWhatAForkedLedgerPosted in tests/end_to_end/backup_test.cc).
#ifndef DPAR_SERVER_WITNESS_MARK_H_
#define DPAR_SERVER_WITNESS_MARK_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

// What a budget belongs to.
struct Content {
  std::string tenant;  // tenants/{t}
  std::string digest;  // of the canonical content under the tenant's key, lower-case hex

  auto operator<=>(const Content&) const = default;
};

// An entry of the ledger, and what was spent, posted or debited, once it was written.
struct Checkpoint {
  int64_t sequence = 0;
  std::string hash;
  int64_t spent_units = 0;

  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
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
  MarkedTerms terms;                    // when the last checkpoint was made
  std::vector<Checkpoint> checkpoints;  // oldest first, at least one, at most kMaxCheckpoints

  [[nodiscard]] const Checkpoint& last() const { return checkpoints.back(); }
  friend bool operator==(const Mark&, const Mark&) = default;
};

inline constexpr size_t kMaxCheckpoints = 64;

// Adds a checkpoint with a higher sequence than the last. Of more than kMaxCheckpoints one in between is dropped: that
// whose loss leaves the smallest gap, as a share of how far back it lies.
void AddCheckpoint(Mark& mark, Checkpoint checkpoint);

// Lines of text that end with a digest of what is before it.
std::string FormatMark(const Mark& mark);
// DATA_LOSS / STORE_CORRUPT for anything that FormatMark does not write; UNIMPLEMENTED for what a newer version wrote,
// which is whole and not to be judged by this one. Every version has the title's first word and the digest.
absl::StatusOr<Mark> ParseMark(absl::string_view text);

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_MARK_H_
