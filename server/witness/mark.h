// A mark: how far a population's ledger had come when something that it paid for was about to leave the server.
//
// Purpose. A restored backup is an older ledger with a valid chain and valid sums; nothing inside the store shows what
// was released after it. So the server keeps, outside of what is backed up, a file for every population with the last
// entry whose results may have been seen, and the spend up to it. A ledger without that entry was rolled back.
//
// Why several entries. A thaw debits what the mark knows and the ledger lacks. Raising the ledger to the mark's spend
// would be too little: a rolled back ledger that went on has spending of its own. Let `common` be the spend up to the
// newest entry that mark and ledger share, `marked` up to the mark's last, `posted` the ledger's. Then at most posted +
// (marked - common) was ever spent: `posted` holds everything in the ledger, and all else that the mark knows came
// after the common entry. Dropping old entries only makes `common` smaller and the debit larger.
//
// Why not less. With the last entry alone, nothing would be known as common, and a restored population would pay again
// for everything. A note in the store of how far it was marked does not say by which directory: if store and directory
// were rolled back together and went on, and the true directory came back, the note would stand for entries that this
// mark never knew, and the debit would lack their price (AListLeavesOutWhatAForkedLedgerPosted in backup_test.cc).
#ifndef DPAR_SERVER_WITNESS_MARK_H_
#define DPAR_SERVER_WITNESS_MARK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

// An entry, and the spend (posted or debited) up to it.
struct Checkpoint {
  int64_t sequence = 0;
  std::string hash;
  int64_t spent_units = 0;

  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

// Terms (core/privacy/budget.h). Units of different orders do not compare: a reopened population keeps its order.
struct MarkedTerms {
  double cap_epsilon = 0;
  double cap_delta = 0;
  int64_t order = 0;
  int64_t cap_units = 0;
  int64_t max_degree = 0;  // the degree promise that the cap rests on; 0: none
  int64_t node_total = 0;  // the sum of N over its versions, that the next one is added to
  bool closed = false;     // no job is ever admitted again, as after a merge into another population

  friend bool operator==(const MarkedTerms&, const MarkedTerms&) = default;
};

struct Mark {
  std::string population;               // tenants/{t}/populations/{p}
  MarkedTerms terms;                    // when the last checkpoint was made
  std::vector<Checkpoint> checkpoints;  // oldest first, at least one, at most kMaxCheckpoints

  [[nodiscard]] const Checkpoint& last() const { return checkpoints.back(); }
  friend bool operator==(const Mark&, const Mark&) = default;
};

inline constexpr size_t kMaxCheckpoints = 64;

// Adds a checkpoint. Beyond kMaxCheckpoints, drops the inner one that leaves the smallest gap relative to its age.
void AddCheckpoint(Mark& mark, Checkpoint checkpoint);

// Lines of text, the last a digest of those before.
std::string FormatMark(const Mark& mark);
// DATA_LOSS / STORE_CORRUPT for anything that FormatMark does not write; UNIMPLEMENTED for an intact mark of a newer
// version. Every version has the title's first word and the digest.
absl::StatusOr<Mark> ParseMark(absl::string_view text);

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_MARK_H_
