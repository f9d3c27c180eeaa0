// Reads a store and its data directory, and says what of the rules 2 and 3 (ARCHITECTURE.md) they break.
#ifndef DPAR_TESTS_CRASH_STORE_CHECKER_H_
#define DPAR_TESTS_CRASH_STORE_CHECKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/certificate/signing_key.h"
#include "server/queue/queue.h"
#include "server/store/data_directory.h"
#include "server/store/database.h"
#include "server/witness/mark.h"
#include "tests/crash/promises.h"
#include "tests/crash/snapshot.h"

namespace dpar::crash {

// How a store was left.
enum class Rest {
  kInterrupted,  // by a crash: jobs may be live, and files without an entry not swept yet
  kSettled,      // in order, after every job had ended: nothing may be live or left over
};

// One for the life of a store: what an earlier check saw ended or written must still be so at every later one.
class StoreChecker {
 public:
  // `postgres_uri` is empty for the SQLite store below `data_directory`.
  StoreChecker(std::string data_directory, std::string postgres_uri, int max_attempts)
      : directory_(std::move(data_directory)), postgres_uri_(std::move(postgres_uri)), max_attempts_(max_attempts) {}

  // Every fault; empty when there is none. No server runs on an SQLite store meanwhile.
  std::vector<std::string> Check(const Promised& promised, Rest rest);

  // Of the last check.
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }

 private:
  [[nodiscard]] absl::StatusOr<Snapshot> Read() const;
  [[nodiscard]] absl::StatusOr<std::vector<Mark>> ReadMarks() const;
  void Fault(std::string what) { faults_.push_back(std::move(what)); }

  void CheckPromises(const Promised& promised, Rest rest);
  void CheckJob(const JobRecord& record, const Promised& promised);
  void CheckOutput(const JobRecord& record, const VerifyingKey& key);
  void CheckBudget(const BudgetRecord& budget, Rest rest);
  void CheckHistory();
  void CheckMarks(const std::vector<Mark>& marks, const Promised& promised);
  void CheckModelFiles(Rest rest);
  void CheckSwept();

  const DataDirectory directory_;
  const std::string postgres_uri_;
  const int max_attempts_;
  Snapshot snapshot_;
  std::vector<std::string> faults_;
  // What was seen before, by job and by budget.
  std::map<std::string, std::string> endings_;
  std::map<std::string, std::vector<std::string>> chains_;  // hashes of entries
  std::set<std::string> verified_;                          // envelopes whose price was recomputed
};

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_STORE_CHECKER_H_
